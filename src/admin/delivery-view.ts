import type { WrittenMatch } from '../alert/match-form.ts'

/**
 * Deliveries as the API shows them. Instants are ISO 8601 in UTC; null means "not known". Headline, symbol, why and the
 * answers of remotes are text from outside: whoever shows them escapes them.
 */
export const deliveryStates = ['waiting', 'active', 'delayed', 'delivered', 'dead'] as const
export type DeliveryState = (typeof deliveryStates)[number]

export interface DeliveryQuery {
  readonly state?: DeliveryState
  readonly sink?: string
  readonly limit: number
}

export interface AlertView {
  readonly source: string
  readonly id: number
  readonly kind: string
  readonly symbol: string | null
  readonly headline: string
  readonly url: string
  readonly firedAt: string
  readonly seenAt: string | null
}

/** One alert on its way to one target of one sink. */
export interface DeliveryRow extends AlertView {
  readonly sink: string
  readonly target?: string
  readonly state: DeliveryState
  readonly attempts: number
  /** When the last thing happened to it. */
  readonly updatedAt: string | null
  /** Why it waits or was given up; null when there is nothing to explain. */
  readonly reason: string | null
  readonly nextAttemptAt?: string | null
}

export interface DeadLetter extends DeliveryRow {
  readonly state: 'dead'
  readonly reason: string
}

/** One alert's whole way: seen, routed, every attempt with its answer. */
export interface AlertHistory extends AlertView {
  readonly why: string | null
  readonly ruleIds: readonly string[]
  readonly deliveries: readonly DeliveryHistory[]
  /** What did not go out although it was seen, route by route. */
  readonly held: readonly WithheldView[]
}

export interface WithheldView {
  /** null where no route wanted the alert. */
  readonly route: string | null
  /** The sinks that did not get it by this route, nor by any other. */
  readonly sinks: readonly string[]
  readonly reason: 'silenced' | 'muted' | 'throttled' | 'unrouted'
  readonly until: string | null
  /** The id of the silence, where it was one. */
  readonly silence: string | null
  /** All of that in a sentence. */
  readonly text: string
}

export interface DeliveryHistory {
  readonly sink: string
  readonly target?: string
  readonly state: DeliveryState
  readonly reason: string | null
  readonly nextAttemptAt: string | null
  readonly attempts: readonly AttemptView[]
}

export interface AttemptView {
  /** From 1. */
  readonly number: number
  readonly at: string
  readonly outcome: 'delivered' | 'retry' | 'dead'
  readonly reason: string | null
  /** The HTTP or SMTP status, when there was one. */
  readonly status: number | null
  readonly text: string
}

/** A match as it is written, the same as that of a route: a field that is absent matches everything. */
export type SilenceMatch = WrittenMatch

export interface NewSilence {
  readonly match: SilenceMatch
  readonly startsAtMs: number
  readonly endsAtMs: number
  readonly comment: string
}

export interface SilenceView {
  readonly id: string
  readonly match: SilenceMatch
  readonly startsAt: string
  readonly endsAt: string
  readonly comment: string
}
