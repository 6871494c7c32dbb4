import { sendMsMax } from '../attempt/deliver.ts'
import type { SinkSettings } from '../settings.ts'

/** How long a lane of these settings may take to stop, at most: every send that runs has the time that its sink gives it. */
export function stopMsMaxOf(settings: Pick<SinkSettings, 'timeoutMs'>): number {
  return sendMsMax(settings) + recordMsMax + abortReserveMs + endMsMax
}

/** Of that, for sends to end once they are aborted. */
export const abortReserveMs = 3_000
/** For Redis to record what was sent. */
export const recordMsMax = 3_000
/** For connections to be closed. */
export const endMsMax = 500
