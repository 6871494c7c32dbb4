/** What becomes of an alert: the sinks it goes to, and why others that a route names do not get it. */
export interface Assignment {
  /** Each sink once. */
  readonly shares: readonly Share[]
  /** Each reason once; the story of the alert tells which route and until when. */
  readonly held: readonly HoldKind[]
}

export interface Share {
  readonly sink: string
  /** How many alerts a throttle held back since the last one that this sink got. */
  readonly heldBack?: number
}

export type HoldKind = 'muted' | 'silenced' | 'throttled'
