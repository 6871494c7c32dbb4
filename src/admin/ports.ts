import type { WrittenMatch } from '../alert/match/match-form.ts'
import type { Display } from '../alert/text/display.ts'
import type { OrphanPortion } from '../delivery/orphans/steps.ts'
import type { SinkActivity } from '../delivery/records/activity.ts'
import type { DeadLetterQuery } from '../delivery/records/dead-letters.ts'
import type { Order, Portion, PortionOrder } from '../delivery/records/selection.ts'
import type { Clock } from '../lib/clock.ts'
import type { IdempotencyStore, KeyedRequest } from '../store/operators/idempotency.ts'
import type { NewSilence } from '../store/operators/silences.ts'
import type { Logger } from '../telemetry/log.ts'
import type { AuditRow } from './views/audit-view.ts'
import type {
  AlertStory,
  DeadLetterRow,
  DeliveryPage,
  DeliveryQuery,
  DeliveryRow,
  DeliveryState,
  ExplanationView,
  LetterGroupsView,
  SilenceView,
  StoredAlertPage,
  StoredAlertQuery,
} from './views/delivery-view.ts'
import type { OrphanKind, OrphanView } from './views/orphan-view.ts'
import type { QuarantinedRow, StatusView } from './views/status-view.ts'

/** The text format of Prometheus, version 0.0.4, or OpenMetrics 1.0, which has exemplars. */
export type MetricsFormat = 'prometheus' | 'openmetrics'

/**
 * What the admin server needs from the rest of the bridge. Each port has only what its one user needs, so that the server
 * can be built without Redis, queues or pollers. Ports reject when Redis is away; the server then answers 503.
 */
export interface AdminPorts {
  /** Must answer without Redis: series that need it keep their last value or end. */
  metricsText(format: MetricsFormat): Promise<string>
  /** Why this process cannot work any more and has to be restarted; undefined while it can. Must not ask Redis. */
  hung(): string | undefined
  /** Must answer without Redis, and within seconds: values that are only in Redis are null then. */
  status(): Promise<StatusView>
  reload(): Promise<ReloadResult>
  readonly quarantine: QuarantinePort
  readonly deliveries: DeliveriesPort
  readonly deadLetters: DeadLettersPort
  /**
   * Sends alerts again on purpose, to every sink they were routed to or only to `sink`. `missing` are the ids of which
   * the bridge has no record (any more).
   */
  replay(order: Order): Promise<Portion>
  readonly audit: AuditPort
  /** Of requests that name a key. */
  readonly idempotency: IdempotencyStore
  readonly sinks: SinksPort
  readonly sources: SourcesPort
  readonly orphans: OrphansPort
  readonly silences: SilencesPort
  /**
   * The alert rules as they were last read, each with its source, with the fields that routes can match and `silent`: why it
   * may not fire, or null. A NotFoundError for an unknown source.
   */
  rules(source?: string): Promise<readonly Readonly<Record<string, unknown>>[]>
}

/** What operators did, the newest first. */
interface AuditPort {
  add(row: AuditRow): Promise<void>
  list(limit: number): Promise<readonly AuditRow[]>
}

interface DeliveriesPort {
  /** One row per sink and target, in the order in which the alerts fired. A NotFoundError for an unknown sink or source. */
  search(query: DeliveryQuery): Promise<DeliveryPage>
  /** The one that changed last comes first. */
  changed(
    query: Pick<DeliveryQuery, 'limit' | 'sink'> & { state?: DeliveryState },
  ): Promise<readonly DeliveryRow[]>
  /** Alerts with their rows, for a caller that decides again where they go. */
  stored(query: StoredAlertQuery): Promise<StoredAlertPage>
  story(source: string, id: number): Promise<AlertStory | undefined>
  /** By the config in force, as of `atMs`; undefined where nothing is kept of it. */
  explain(source: string, id: number, atMs: number): Promise<ExplanationView | undefined>
}

interface DeadLettersPort {
  /** The newest first, with the number of all dead letters; `cursor`: of the next page, absent on the last one. */
  list(query: DeadLetterQuery): Promise<{ data: readonly DeadLetterRow[]; total: number; cursor?: string }>
  /** By sink and reason, the largest group first. */
  groups(): Promise<LetterGroupsView>
  /** Puts them back into their queues with fresh attempts. */
  retry(order: Order): Promise<Portion>
  /** Removes them for ever. */
  drop(order: Order): Promise<Portion>
}

export interface QuarantinePort {
  /** Rows of the feed that could not be read, the newest first; the last few hundred of each source are kept. */
  list(query: { limit: number; source?: string }): Promise<readonly QuarantinedRow[]>
  /** Reads them again and sends what can be read. */
  retry(selection: QuarantineSelection): Promise<QuarantineRetry>
  /**
   * Deletes them for ever: they are not sent, even if a later version could read them. (With another id a row is another
   * one.) Returns how many. `keepThrough` is `KeyedRequest.keep`: an order that is sent again takes what was there at the first
   * time.
   */
  drop(order: QuarantineSelection & { keepThrough?: KeyedRequest['keep'] }): Promise<number>
}

/** `ids` are `SOURCE.KEY`; without them it means all rows of `source`, and without `source` all rows. */
export interface QuarantineSelection {
  readonly ids?: readonly string[]
  readonly source?: string
}

export interface QuarantineRetry {
  readonly retried: number
  /** Rows that still cannot be read. */
  readonly unreadable: number
}

interface SinksPort {
  /** Returns the id of the pause, undefined when there is no sink of that name. One that is paused gets the new end and comment. */
  pause(name: string, order: PauseOrder): Promise<string | undefined>
  /** False when there is no sink of that name. With the id of a pause, a UserError where another one is in its place. */
  resume(name: string, id?: string): Promise<boolean>
  /** What each did with its alerts, hour by hour over the last day, the oldest hour first. */
  activity(): Promise<readonly SinkActivity[]>
  /** Sends one alert now to a sink whose breaker is open. A UserError when it is not open. */
  probe(name: string): Promise<boolean>
}

export interface PauseOrder {
  /** Without it, until somebody resumes it. */
  readonly untilMs?: number
  readonly comment: string
  /** A sink that is paused stays as it is: a UserError. */
  readonly unlessPaused?: true
}

/**
 * What is left of names that the config does not have. A kind is needed only when a sink and a source have the same name;
 * without it there is a UserError then. A NotFoundError when nothing is left of a name.
 */
export interface OrphansPort {
  list(): Promise<readonly OrphanView[]>
  /** The alerts of a sink, in the order in which they fired. */
  deliveries(
    name: string,
    query: Pick<DeliveryQuery, 'limit' | 'cursor'> & { state?: DeliveryState },
  ): Promise<DeliveryPage>
  /** Moves all to the sink or source `to` of the config. `retry`: dead letters are sent again. */
  move(
    order: OrphanOrder & { readonly name: string; readonly to: string; readonly retry: boolean },
  ): Promise<OrphanPortion>
  drop(order: OrphanOrder & { readonly name: string }): Promise<OrphanPortion>
}

interface OrphanOrder extends PortionOrder {
  readonly kind?: OrphanKind
}

interface SourcesPort {
  /**
   * Polls more often until `untilMs`, within the budget. False when there is no such source; a UserError when its pace
   * is fixed.
   */
  hot(name: string, untilMs: number): Promise<boolean>
  /** Ends that; with `untilMs` only where it is still to last until then: else a UserError. */
  cool(name: string, untilMs: number | undefined): Promise<boolean>
  /** The budget day that runs, hour by hour; undefined when there is no such source. */
  day(name: string): Promise<SourceDayView | undefined>
  /** What the walk knows of a row of the feed; undefined when there is no such source. */
  seen(name: string, id: number): Promise<SeenView | undefined>
  /** What its plan is made from; undefined when there is no such source. */
  plan(name: string): Promise<SourcePlanView | undefined>
}

/** Whether the feed was seen to have an alert, whatever became of it. */
export interface SeenView {
  readonly source: string
  readonly id: number
  readonly seen: boolean
  /** Whether rows that it no longer shows were forgotten (`seenWindow`): an old one of them counts as not seen. */
  readonly forgets: boolean
  /** Whether `startFrom` leaves out what fired before it, and how many such rows were seen. */
  readonly leavesOut: boolean
  readonly leftOut: number
  /** Whether an operator dropped it, as far as is remembered. */
  readonly dropped: boolean
}

/** From this the command `plan` draws the coming hours, as the bridge itself plans them. */
export interface SourcePlanView {
  readonly source: string
  /** As the config has them, with their defaults; spans in milliseconds. */
  readonly budget: Readonly<Record<string, unknown>>
  readonly poll: Readonly<Record<string, unknown>>
  /** That its plan may use a day: its share of what the API grants the account. */
  readonly unitsPerDay: number
  /**
   * The units a day that the API grants its account, and of each source that spends them, itself included, `poll.every` in
   * milliseconds, null where the pace is learned. Bridges of before left both out.
   */
  readonly unitsOfAccount?: number | undefined
  readonly paces?: readonly (number | null)[] | undefined
  /**
   * When its budget days begin, `HH:MM` on the clock of the budget's zone; the API may begin them at another time than the config.
   * Bridges of before left it out.
   */
  readonly resetsAt?: string | undefined
  /** As the bridge stores it, which another version may do in another way; null when nothing is. */
  readonly learned: unknown
}

export interface SourceDayView {
  readonly source: string
  readonly startedAt: string
  readonly resetsAt: string
  /** How many sources of the account spend these units, this one included; alerts and plan are of this one alone. */
  readonly sharers: number
  /** The first hour first, by the clock of the plan's zone. */
  readonly hours: readonly SourceHour[]
}

export interface SourceHour {
  readonly startedAt: string
  /** Polls of the whole hour, by the plan as it is drawn now. */
  readonly planned: number
  /** Units that were spent in it, for whatever purpose, by all sources of the account. */
  readonly units: number
  /** Alerts first seen in it. */
  readonly alerts: number
}

export interface SilencesPort {
  list(): Promise<readonly SilenceView[]>
  add(silence: NewSilence): Promise<SilenceView>
  /** How many of the last day's alerts a silence with this match would have matched, also of those held back already. */
  preview(match: WrittenMatch): Promise<SilencePreview>
  /** False when there is none with this id. */
  expire(id: string): Promise<boolean>
}

export interface SilencePreview {
  readonly matching: number
  /** Of how many alerts. */
  readonly looked: number
  /** Where not all could be read in time: of each sink, the newest were looked at. */
  readonly partial?: true | undefined
  readonly sample: readonly { readonly source: string; readonly id: number; readonly headline: string }[]
}

export type ReloadResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly mistakes: readonly string[] }

export interface AdminToken {
  /** Throws where it is in a file that cannot be read. */
  reveal(): string
  readonly file?: string | undefined
}

export interface AdminDeps {
  readonly ports: AdminPorts
  /** Called at every request, so that a reload can set, change or remove it. */
  adminToken(): AdminToken | undefined
  /** The names that the bridge answers to, beside loopback ones and IP addresses. Called at every request. */
  hosts(): readonly string[]
  /** How the status page shows times and words. */
  display(): Display
  readonly clock: Clock
  readonly log: Logger
}
