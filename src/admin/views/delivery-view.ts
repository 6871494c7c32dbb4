import type { Alert } from '../../alert/alert.ts'
import type { WrittenMatch } from '../../alert/match/match-form.ts'
import type { RouteDecision } from '../../alert/route.ts'
import type { AuditRow } from './audit-view.ts'
import type { SinkView } from './status-view.ts'

/**
 * Deliveries as the API shows them. Instants are ISO 8601 in UTC; null means "not known". Headline, symbol, why and the
 * answers of receivers are text from outside: code that shows them must escape them.
 */
export const deliveryStates = ['waiting', 'active', 'delayed', 'delivered', 'dead'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** Of the rows of a list: also what no sink got, because it was silenced, muted, throttled or wanted by no route. */
export const rowStates = [...deliveryStates, 'held'] as const
export type RowState = (typeof rowStates)[number]

/** Which deliveries a list has; all conditions must be true. */
export interface DeliveryFilter {
  readonly state?: RowState
  readonly sink?: string
  readonly source?: string
  /** Of one alert, with or without its source: `4711`, `main.4711`. */
  readonly id?: string
  /** Texts of which one must be that of the alert; `*` and `?` are those of a glob. Symbols are compared as routes do. */
  readonly symbol?: readonly string[]
  readonly kind?: readonly string[]
  readonly rule?: readonly string[]
  /** When it fired. */
  readonly sinceMs?: number
  readonly untilMs?: number
}

export interface DeliveryQuery extends DeliveryFilter {
  readonly limit: number
  /** Of the page before. */
  readonly cursor?: string
  /** As many rows as are asked for, though those of an alert come on two pages; else they do where it has more than a page. */
  readonly isFull?: true
}

/** The last to fire comes first. */
export interface DeliveryPage {
  readonly data: readonly DeliveryRow[]
  /** Absent on the last page. A page may be short, or empty, and have one: only so many alerts are looked at for it. */
  readonly cursor?: string
  /** How many alerts were looked at for this page. */
  readonly looked: number
}

interface AlertView
  extends Pick<Alert, 'source' | 'id' | 'kind' | 'symbol' | 'headline' | 'url' | 'firedAt'> {
  readonly seenAt: string | null
}

/** The delivery of one alert to one target of one sink. */
export interface DeliveryRow extends AlertView {
  readonly sink: string
  readonly target?: string
  readonly state: RowState
  readonly attempts: number
  /** When its state last changed. */
  readonly updatedAt: string | null
  /** Why it waits or was given up; null when there is no special reason. */
  readonly reason: string | null
  readonly nextAttemptAt?: string | null
  /** The facts behind `reason`, where `state` is `held`. */
  readonly withheld?: WithheldCause
}

export interface DeadLetterRow extends Omit<DeliveryRow, 'withheld'> {
  readonly state: 'dead'
  readonly reason: string
}

/** Which routes would take an alert, and why the others would not. */
export interface ExplanationView {
  readonly alert: Pick<Alert, 'source' | 'id' | 'kind' | 'symbol' | 'ruleIds'>
  readonly at: string
  readonly sinks: readonly string[]
  readonly decisions: readonly RouteDecision[]
  /** The same for people. */
  readonly text: string
}

/** An alert with its row of the feed, and where it went. */
export interface StoredAlert {
  readonly source: string
  readonly id: number
  readonly seenAt: string
  readonly row: Readonly<Record<string, unknown>>
  /** `routes`: what those were called that took it; null where an operator sent it, or that is not known. */
  readonly sent: readonly { readonly sink: string; readonly routes: readonly string[] | null }[]
  readonly held: readonly Pick<WithheldView, 'route' | 'sinks' | 'reason'>[]
}

export interface StoredAlertQuery extends Pick<DeliveryQuery, 'limit' | 'sinceMs' | 'untilMs' | 'cursor'> {}

/** The last to fire comes first. */
export interface StoredAlertPage {
  readonly data: readonly StoredAlert[]
  /** `SOURCE.ID` of those in its span of which a dead letter was dropped: where else they had gone is not known. */
  readonly dropped: readonly string[]
  readonly cursor?: string
}

/** Dead letters of one sink that were given up on for the same reason. */
export interface LetterGroupView {
  readonly sink: string
  readonly reason: string
  readonly count: number
  readonly firstAt: string
  readonly lastAt: string
  /** Why the newest of them was given up on, with the answer of the receiver. */
  readonly sample: string
  readonly sampleAlert: { readonly source: string; readonly id: number }
}

export interface LetterGroupsView {
  readonly data: readonly LetterGroupView[]
  /** Of each sink, only the newest are looked at. */
  readonly looked: number
  readonly total: number
}

/** The whole story of one alert: when it was seen, how it was routed, every attempt with its answer. */
export interface AlertStory extends AlertView {
  /** The page of the feed that first showed it; null where that is not known. */
  readonly page: number | null
  readonly why: string | null
  readonly ruleIds: readonly string[]
  readonly deliveries: readonly DeliveryStory[]
  /** What was withheld, route by route. */
  readonly held: readonly WithheldView[]
  /** What operators dropped of its deliveries, the latest first, as far as it is remembered. */
  readonly dropped: readonly {
    readonly sink: string
    /** Of a sink with several; absent where the config has it no more. */
    readonly target?: string
    readonly at: string
  }[]
  /** What operators did with it, the newest first, as far as it is still known. */
  readonly actions: readonly AuditRow[]
}

export interface WithheldView extends WithheldCause {
  /** The sinks that got it neither by this route nor by another. */
  readonly sinks: readonly string[]
  /** All of that in a sentence. */
  readonly text: string
}

export interface WithheldCause {
  /** null when no route matched the alert. */
  readonly route: string | null
  readonly reason: 'silenced' | 'muted' | 'throttled' | 'unrouted'
  /** null also of a silence that was ended before its time. */
  readonly until: string | null
  /** The id of the silence, if a silence withheld it. */
  readonly silence: string | null
  /** What an operator wrote in that silence. */
  readonly comment: string | null
}

export interface DeliveryStory {
  readonly sink: string
  readonly target?: string
  /** What the routes that took it were called then; null where an operator sent it here, or this is not known. */
  readonly routes: readonly string[] | null
  readonly state: DeliveryState
  /** It is not delivered, and its sink is in no config: nobody sends it until it is moved, or the name comes back. */
  readonly orphaned?: true
  /** Where it waits, and its sink sends nothing now. */
  readonly heldUpBy?: SinkHold
  readonly reason: string | null
  readonly nextAttemptAt: string | null
  /** When an operator last asked to send it again. */
  readonly requestedAt: string | null
  readonly attempts: readonly AttemptView[]
}

/** As the status has it: an operator paused the sink, it rests after faults, it is stuck, or (`active`) it asked for a pause. */
export type SinkHold = Pick<
  SinkView,
  'state' | 'reason' | 'failingSince' | 'nextProbeAt' | 'heldUntil' | 'pausedUntil'
>

export interface AttemptView {
  /**
   * Counted from 1, over all rounds; those that the limit of attempts does not count have theirs, too. The last 100 records are kept: of an
   * alert with more, the numbers are the least that they can be.
   */
  readonly number: number
  /** Also from 1: each time that an operator sends the alert again is another round. */
  readonly round: number
  readonly at: string
  readonly durationSeconds: number
  readonly outcome: 'delivered' | 'retry' | 'dead'
  readonly reason: string | null
  /** The HTTP or SMTP status, when there was one. */
  readonly status: number | null
  readonly text: string
  /** What of its context it was delivered without, and why. */
  readonly skipped?: readonly { readonly what: string; readonly why: string }[]
}

export interface SilenceView {
  readonly id: string
  /** As a route of the config has it: a field that is absent matches everything. */
  readonly match: WrittenMatch
  readonly startsAt: string
  readonly endsAt: string
  readonly comment: string
  /** Why it holds nothing back, or null. */
  readonly problem: string | null
}
