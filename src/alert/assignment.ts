/** The sinks that an alert is sent to, and why others that a route names do not get it. */
export interface Assignment {
  /** Each sink once. */
  readonly sinks: readonly AssignedSink[]
  /** Each reason once; the stored record of the alert has the route and the end. */
  readonly withheld: readonly WithheldKind[]
}

export interface AssignedSink {
  readonly sink: string
  /** How many alerts a throttle held back since the last one that this sink got. */
  readonly heldBack?: number
}

export type WithheldKind = 'muted' | 'silenced' | 'throttled'
