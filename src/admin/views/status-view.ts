import type { PollerFault } from '../../poller/settings.ts'
import type { AnnouncedView, DecisionReason } from '../../schedule/schedule.ts'
import type { Purpose } from '../../telemetry/metrics.ts'
import type { Saying } from '../finding.ts'
import type { OrphanView } from './orphan-view.ts'

/**
 * The state of the bridge as people and programs read it: the body of GET /api/v1/status and all that the status page
 * shows. Instants are ISO 8601 in UTC, spans are seconds; null means "not known (yet)".
 */
export interface StatusView extends StatusFacts {
  readonly ready: Readiness
  readonly verdict: Verdict
}

/** All that `verdictOf` needs. */
export interface StatusFacts {
  readonly version: string
  readonly startedAt: string
  readonly uptimeSeconds: number
  /** What this process does: `all`, `poller` or `sender`. */
  readonly role: string
  /** The process was asked to stop, and ends after its last send. */
  readonly draining: boolean
  readonly redis: {
    readonly ok: boolean
    readonly error?: string
    /** What is wrong with the settings of a Redis that answers. */
    readonly trouble?: string
  }
  readonly sources: readonly SourceView[]
  readonly sinks: readonly SinkView[]
  /** Alerts for which no route has a sink. */
  readonly unrouted: number | null
  /** Rows of the feed that could not be read and are quarantined. */
  readonly quarantined: number | null
  /** Rows whose copy is gone because the quarantine was full. */
  readonly quarantineFellOut: number | null
  /** What is left of names that are not in the config; null while Redis is away. */
  readonly orphans: readonly OrphanView[] | null
  /** The processes that work on this Redis under this prefix, with this one; empty while Redis is away. */
  readonly processes: readonly ProcessView[]
  /** Why the last reload was refused, one mistake each; null when none was, or a later one was taken. */
  readonly refusedReload: { readonly at: string; readonly mistakes: readonly string[] } | null
}

export interface ProcessView {
  /** Machine, number and start. */
  readonly name: string
  readonly role: string
  /** The same for processes with the same config, but for what belongs to one process and for secrets. */
  readonly configHash: number
  /** Whether that is the config of the process that answers. */
  readonly hasOurConfig: boolean
  /** Whether it has refused its last reload. */
  readonly refusedReload: boolean
}

/** The state of the bridge, and what is wrong with it. */
export interface Verdict {
  /** /readyz answers 200 when it is true. */
  readonly ready: boolean
  readonly level: Level
  readonly headline: string
  /** First what makes the process "not ready", then the worst. */
  readonly findings: readonly Finding[]
}

export type Level = 'ok' | 'warning' | 'failed'

export type Finding = Saying & {
  readonly level: Exclude<Level, 'ok'>
  /** The sentence of `code` and `data` in English. */
  readonly text: string
  /** Where the status page shows more: a part of it, or a list of it. */
  readonly href: string
  /** Whether it makes this process "not ready". */
  readonly blocks: boolean
  /** Its name among troubles, where operators get a notice with this very text once it lasts. */
  readonly trouble?: string
}

/** The verdict in short: whether /readyz answers 200, and all findings in one sentence. */
interface Readiness {
  readonly ok: boolean
  readonly reason?: string | undefined
}

export type SourceState =
  | 'starting' // nothing was polled yet
  | 'running'
  | 'catching_up' // more pages wait than one poll may read
  | 'retrying' // the last call failed, the API asked to wait, or Redis is away; the call will be made again
  | 'failing' // no poll has succeeded for a quarter of an hour: a person should look
  | 'budget_spent' // no units are left, or no more than the API grants
  | 'queues_full' // polling waits until fewer jobs do
  | 'standby' // another replica polls
  | 'stopped' // a person is needed

export interface SourceView {
  readonly name: string
  readonly state: SourceState
  /** One sentence on the state, when its name does not say enough. */
  readonly reason: string | null
  /** Whether this process polls it. */
  readonly here: boolean
  /** What is wrong with the polling loop of this process; null when nothing is. */
  readonly fault: { readonly why: PollerFault; readonly reason: string } | null
  /** The process that stored this state last; null where that is not known. */
  readonly polledBy: string | null
  /** By how much the next poll is late; 0 where none is planned, or a little is to be expected. */
  readonly overdueSeconds: number
  readonly lastPollAt: string | null
  readonly nextPollAt: string | null
  readonly nextReason: DecisionReason | null
  readonly budget: BudgetStatus | null
  readonly plan: PlanStatus | null
  /** What its alert rules showed when they were last read; null where that is not known. */
  readonly rules: RulesStatus | null
  /** Unusual things that do not stop this source, or which replica polls it; a sentence each. Text from outside. */
  readonly notes: readonly string[]
  readonly behind: boolean
  /** When it was last known that every alert of the feed was handled. */
  readonly lastCompleteWalkAt: string | null
  /** From firing to seen. */
  readonly lag: LagView | null
}

/** What the polling plan is based on. */
export interface PlanStatus {
  /** How many alerts it was learned from; old ones count less. */
  readonly learnedFrom: number
  /** The marks of the alert engine's clock that polls follow, or why they follow none. */
  readonly firing: string
  /** Whether polls follow what the API announces of the evaluations of its rules; null where it announces none. */
  readonly announced: AnnouncedView | null
  /** Until when polls are more frequent because an operator asked for it. */
  readonly hotUntil: string | null
}

export interface RulesStatus {
  readonly readAt: string
  /** How many were read, the newest, and how many there are beside these. */
  readonly count: number
  readonly unread: number
  /** Rules that may not fire; `silent` lists the first of them. Names and texts are from outside. */
  readonly silentCount: number
  readonly silent: readonly { readonly id: string; readonly name: string; readonly text: string }[]
}

export interface BudgetStatus {
  readonly unitsUsed: number
  /**
   * What they were spent for, the most first; units that other programs of the account may have spent are in none. Unknown is last: what
   * was spent of the API's own day before a refusal showed when that begins, and what Redis has lost.
   */
  readonly spentFor: readonly { readonly purpose: Purpose | 'unknown'; readonly units: number }[]
  readonly unitsPerDay: number
  readonly startedAt: string
  readonly resetsAt: string
  /** How the budget that the API grants differs from the config; null when no difference is known. */
  readonly note: string | null
  /** Why these units do not buy what the config asks for, a sentence each. */
  readonly tooThin: readonly string[]
}

/** Seconds; those of `lagSecondsMax` may be more. */
export interface LagView {
  readonly p50: number
  readonly p95: number
}

/** A row of the feed that could not be read, as it came. Text from outside. */
export interface QuarantinedRow {
  readonly source: string
  /** `raw-` and a hash, where the row has no id that can be used. */
  readonly key: string
  readonly reason: string
  readonly seenAt: string
  /** JSON, cut to 65,536 characters. */
  readonly raw: string
}

export type SinkState =
  | 'active'
  | 'paused' // by an operator
  | 'open' // the breaker has stopped its sends for a while
  | 'stuck' // its alerts wait and are not sent, though nothing prevents it

export interface SinkView {
  readonly name: string
  readonly type: string
  readonly state: SinkState
  readonly reason: string | null
  /** Since when its breaker is open, and when it is probed next; null where it is closed, or this is not known. A paused sink is not probed. */
  readonly failingSince: string | null
  readonly nextProbeAt: string | null
  /** When the pause ends that the sink itself asked for; null where there is none, or something else keeps it from sending. */
  readonly heldUntil: string | null
  /** When the pause ends by itself; null where it does not, or there is none. */
  readonly pausedUntil: string | null
  /** Jobs by state; null while Redis is away. */
  readonly waiting: number | null
  readonly active: number | null
  readonly delayed: number | null
  readonly dead: number | null
  /** Counted among the deliveries that are kept: at most `retention.count`. */
  readonly deliveredToday: number | null
  /** From firing to acknowledged. */
  readonly lag: LagView | null
  readonly lastResult: LastResult | null
  /** When the alert was queued that has waited the longest to be sent; null where none waits. */
  readonly oldestWaitingAt: string | null
  /** How long the sink needs for all that wait, at the pace of the last minutes; null where none waits, none was sent, or the sink is not active; without the pause until `heldUntil`. */
  readonly drainSeconds: number | null
  /** Alerts given up on since the last one was acknowledged, as far as they are still dead letters; a mail to several is one. */
  readonly refusedInARow: number | null
  /** When an alert was queued that was tried in vain and waits for another attempt; null where none waits so, or one was acknowledged since. */
  readonly putOffSince: string | null
}

export interface LastResult {
  readonly at: string
  readonly kind: 'delivered' | 'retry' | 'dead'
  /** What it means, in a few words. */
  readonly text: string
}
