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
  /** The last thing that happened to it. */
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
export interface DeliveryStory extends AlertView {
  readonly why: string | null
  readonly deliveries: readonly DeliveryHistory[]
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

/** Which dead letters; what is given narrows, `{}` means all of them. */
export interface Selection {
  /** `SOURCE.ID`. */
  readonly ids?: readonly string[]
  readonly sink?: string
  /** Given up at or after, in milliseconds since the epoch. */
  readonly sinceMs?: number
}

/** A field that is absent matches everything; within a field any of the values does. */
export interface SilenceMatch {
  readonly source?: readonly string[]
  readonly kind?: readonly string[]
  readonly symbol?: readonly string[]
  readonly ruleId?: readonly string[]
}

export interface NewSilence {
  readonly match: SilenceMatch
  readonly startsAtMs: number
  readonly endsAtMs: number
  readonly comment: string
}

export interface Silence {
  readonly id: string
  readonly match: SilenceMatch
  readonly startsAt: string
  readonly endsAt: string
  readonly comment: string
}
