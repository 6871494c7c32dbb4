import type { OrphanPortion, OrphanOrder as QueueOrder } from '../delivery/orphans/steps.ts'
import type { DeadLetterQuery } from '../delivery/records/dead-letters.ts'
import type { Order, Portion } from '../delivery/records/selection.ts'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../telemetry/log.ts'
import type {
  AlertHistory,
  DeadLetter,
  DeliveryQuery,
  DeliveryRow,
  DeliveryState,
  NewSilence,
  SilenceView,
} from './delivery-view.ts'
import type { OrphanKind, OrphanView } from './orphan-view.ts'
import type { QuarantinedRow, StatusView } from './status-view.ts'

/**
 * What the admin server asks of the rest of the bridge. Each port is as narrow as its one user, so that the server can
 * be built without Redis, queues or pollers. Ports reject when Redis is away; the server answers 503 for them.
 */
export interface AdminPorts {
  /** Prometheus text, version 0.0.4. Must answer without Redis: series that need it keep their last value or go. */
  metricsText(): Promise<string>
  /** Why this process lives and will do its work no more, so that only a new one helps; asks nobody. */
  hung(): string | undefined
  /** Must answer without Redis, and within seconds: what only Redis knows is null. */
  status(): Promise<StatusView>
  reload(): Promise<ReloadResult>
  readonly quarantine: QuarantinePort
  readonly deliveries: DeliveriesPort
  readonly deadLetters: DeadLettersPort
  /**
   * Sends alerts again on purpose, to every sink they were routed to or to `sink` alone. What is `missing` of the ids
   * is what the bridge holds no story of (any more).
   */
  replay(order: Order): Promise<Portion>
  readonly sinks: SinksPort
  readonly sources: SourcesPort
  readonly orphans: OrphansPort
  /** Without it there are no routes under /api/v1/silences. */
  readonly silences?: SilencesPort
  /**
   * The alert rules that are known, with the fields that routes can ask of, each with its source. Without it there is no
   * /api/v1/rules.
   */
  rules?(): Promise<readonly Readonly<Record<string, unknown>>[]>
}

export interface DeliveriesPort {
  /** One row a sink and target, what changed last first. */
  list(query: DeliveryQuery): Promise<readonly DeliveryRow[]>
  story(source: string, id: number): Promise<AlertHistory | undefined>
}

export interface DeadLettersPort {
  /** Given up last first, with the number of all that there are; the cursor of the next page, unless this is the last. */
  list(query: DeadLetterQuery): Promise<{ data: readonly DeadLetter[]; total: number; cursor?: string }>
  /** Puts them back into their queues with fresh attempts. */
  retry(order: Order): Promise<Portion>
  /** Removes them for good. */
  drop(order: Order): Promise<Portion>
}

export interface QuarantinePort {
  /** Rows of the feed that could not be read, the newest first; the last few hundred of each source are kept. */
  list(query: { limit: number; source?: string }): Promise<readonly QuarantinedRow[]>
  /** Reads them again and sends what can be read. */
  retry(selection: QuarantineSelection): Promise<QuarantineRetry>
  /**
   * Forgets them for good: they are not sent, also when a later version could read them. (With another id a row is another
   * one.) Tells how many.
   */
  drop(selection: QuarantineSelection): Promise<number>
}

/** `ids` are `SOURCE.KEY`; without them all of `source`, and without that all there are. */
export interface QuarantineSelection {
  readonly ids?: readonly string[]
  readonly source?: string
}

export interface QuarantineRetry {
  readonly retried: number
  /** Rows that still cannot be read. */
  readonly unreadable: number
}

export interface SinksPort {
  /** False when there is no sink of that name. Pausing what is paused is fine. */
  pause(name: string): Promise<boolean>
  resume(name: string): Promise<boolean>
}

/**
 * What is left of names that the config does not have. Without a kind the name says which; a sink and a source may share
 * one, and then a UserError asks for the kind. A NotFoundError where nothing is left of a name.
 */
export interface OrphansPort {
  list(): Promise<readonly OrphanView[]>
  /** The alerts of a sink, what changed last first. */
  deliveries(name: string, query: { limit: number; state?: DeliveryState }): Promise<readonly DeliveryRow[]>
  /** To a sink or a source of the config. `retry`: dead letters are sent again. */
  move(
    order: OrphanOrder & { readonly name: string; readonly to: string; readonly retry: boolean },
  ): Promise<OrphanPortion>
  drop(order: OrphanOrder & { readonly name: string }): Promise<OrphanPortion>
}

export interface OrphanOrder extends QueueOrder {
  readonly kind?: OrphanKind
}

export interface SourcesPort {
  /**
   * Polls more often until `untilMs`, within the budget. False when there is no such source; a UserError where its pace
   * is fixed.
   */
  hot(name: string, untilMs: number): Promise<boolean>
}

export interface SilencesPort {
  list(): Promise<readonly SilenceView[]>
  add(silence: NewSilence): Promise<SilenceView>
  /** False when there is none with this id. */
  expire(id: string): Promise<boolean>
}

export type ReloadResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly mistakes: readonly string[] }

/** How the status page shows time. */
export interface DisplayOptions {
  /** IANA name. */
  readonly timeZone: string
  readonly calendar: 'jalali' | 'gregorian' | 'both'
}

export interface AdminDeps {
  readonly ports: AdminPorts
  /** Asked at every request, so that a reload can set, change or remove it. */
  adminToken(): { reveal(): string } | undefined
  /** The names that the bridge is reached by, beside loopback ones and IP addresses. Asked at every request. */
  hosts(): readonly string[]
  display(): DisplayOptions
  readonly clock: Clock
  readonly log: Logger
}
