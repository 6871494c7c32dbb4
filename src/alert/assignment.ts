import type { Alert } from './alert.ts'

/** The sinks that an alert is sent to, and why others that a route names do not get it. */
export interface Assignment {
  /** Each sink once. */
  readonly sinks: readonly AssignedSink[]
  /** Each reason once; the stored record of the alert has the route and the end. */
  readonly withheld: readonly WithheldKind[]
}

export interface AssignedSink {
  readonly sink: string
  /** What the routes that took it are called, in their order. */
  readonly routes: readonly string[]
  /** How many alerts a throttle held back since the last one that this sink got. */
  readonly heldBack?: number
}

type WithheldKind = 'muted' | 'silenced' | 'throttled'

/**
 * Returns where the routes send these alerts (oldest first), in their order; to no sink is a decision too. What is withheld
 * is stored when it resolves. After a throw it is called again for the same alerts. Comparing many patterns with long texts can take
 * minutes: it rejects once `ending` is aborted meanwhile.
 */
export type Assign = (
  alerts: readonly Alert[],
  seenAtMs: number,
  ending?: AbortSignal,
) => Promise<readonly Assignment[]>
