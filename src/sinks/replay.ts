import type { Parcel } from './sink.ts'

/** The header of an alert that an operator asked to send again: when. Programs find it in webhooks and in mails. */
export const replayHeader = 'alert-bridge-replay'

/** Empty for an alert that nobody asked for. */
export function replayHeaders({ requestedAtMs }: Pick<Parcel, 'requestedAtMs'>): Record<string, string> {
  return requestedAtMs === undefined ? {} : { [replayHeader]: new Date(requestedAtMs).toISOString() }
}
