import type { FeedClient } from '../feed/client.ts'
import type { PollDeps, PollResult } from '../intake/poll-types.ts'
import type { SweepResult } from '../intake/sweep.ts'
import type { Clock } from '../lib/clock.ts'
import type { SilentRule } from '../routing/rule-health.ts'
import type { RuleBook, RulesRead } from '../routing/rules.ts'
import type { BudgetDay, Schedule } from '../schedule/schedule.ts'
import type { RedisClient } from '../store/connection/redis.ts'
import type { Ledger } from '../store/ledger/ledger.ts'
import { type Lease, leaseTtlMs } from '../store/source/lease.ts'
import type { PollerStatus } from '../store/source/source-status.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { UnitsShare } from './budget.ts'

/** The loop that polls one source for as long as the process runs. */
export interface Poller {
  readonly source: string
  /**
   * Resolves some time after the signal aborts: the page under way is finished first, within `drainTimeoutMs` for its call and
   * `pauses.compareMs` for its comparisons. Never rejects; whatever goes wrong inside is logged and tried again.
   */
  run(signal: AbortSignal): Promise<void>
  /** What this process knows; where another replica polls, the status in Redis is newer. */
  status(): PollerStatus
  health(): PollerHealth
  /** Why the loop will not continue in this process; undefined where it may. */
  hung(): string | undefined
  /** Polls as soon as limits and the shortest interval allow, also where a person had to correct something first. */
  pollNow(): void
}

export type PollerHealth =
  | { readonly ok: true }
  /** `reason` is one sentence for people, `why` is for programs. */
  | { readonly ok: false; readonly why: PollerFault; readonly reason: string }

/** Why a polling loop does not work. */
export type PollerFault = 'starting' | 'crashed' | 'redis_down' | 'stuck' | 'failing'

export type ReadPage = PollDeps['readPage']

export interface PollerDeps {
  readonly source: string
  readonly prefix: string
  /** A connection that fails fast. */
  readonly redis: RedisClient
  readonly ledger: Ledger
  /** The account as the ledger has it; and this source's part of its units now. */
  readonly account: string | undefined
  readonly share: UnitsShare
  /** Those that its backlog may take half of. */
  readonly backlogShare: UnitsShare
  /** How often the first page is read while a catch-up waits for the minute. */
  readonly freshPauseMs: () => number
  /** How many other sources, with a learned pace, have the units of that part, too. */
  readonly planners: () => number
  readonly feed: Pick<FeedClient, 'deliveries' | 'tokenTrouble' | 'tokenFingerprint'>
  /** The rules of the account, of which the plan reads what they announce. */
  readonly rules: Pick<RuleBook, 'lastReading' | 'readAnew' | 'lastRead'>
  /** Called with every reading of the rules that is not older than the last; returns the rules that may not fire. */
  readonly onRules: (reading: RulesRead) => readonly SilentRule[]
  /** `runPoll` of poll.ts with everything but the page reader, which is the poller's. */
  readonly poll: (readPage: ReadPage, ending: AbortSignal) => Promise<PollResult>
  /** `runSweep` of sweep.ts in the same way, for units that would expire. */
  readonly sweep: (readPage: ReadPage, pagesMax: number, ending: AbortSignal) => Promise<SweepResult>
  /** Called with the lease, before the first poll: does what has to be done first, or returns why this replica has to wait. */
  readonly prepare: () => Promise<string | undefined>
  /** Called with each lease under which this replica polls. */
  readonly onLease: (lease: Lease) => void
  /** Called now and then while another replica polls: reads what this replica needs to notice a loss of Redis later, and to walk back. */
  readonly onStandby: () => Promise<void>
  /** Called once each time this replica becomes the one that polls. */
  readonly createSchedule: (saved: unknown) => Schedule
  readonly budgetDay: (nowMs: number) => BudgetDay
  readonly limits: PollerLimits
  /** True while so many jobs are queued that more polls would only fill Redis. */
  readonly tooManyWaiting: () => Promise<boolean>
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

/** The numbers of a poller: those of the config, and pauses that tests shorten. */
export interface PollerLimits {
  readonly unitsPerDay: number
  readonly minIntervalMs: number
  /** Pages of the past that a cold start may read, once, so that the plan learns when alerts fire. */
  readonly historyPages?: number
  /** The largest share of a day's units that sweeps may spend; left out, all that would expire. */
  readonly sweepShare?: number
  /** The share of a day's units, at most, for reading the rules to see which may not fire; left out, none. */
  readonly rulesShare?: number
  readonly leaseTtlMs?: number
  /** How long the page under way may still take after the signal aborted. */
  readonly drainTimeoutMs?: number
  /** How often a source is tried whose token or feed a person must correct. */
  readonly stoppedIntervalMs?: number
  /** How often the queues are checked while they are too full. */
  readonly backpressureIntervalMs?: number
  /** The pause after the loop itself threw, doubled each time up to a minute. */
  readonly restartDelayMs?: number
}

/** Waits that no config names. */
export const pauses = {
  restartMsMax: 60_000,
  redisMs: 1_000,
  /** How long the rows of the page under way may still be compared with patterns after the signal aborted. */
  compareMs: 1_000,
  /** A long wait checks this often whether a person asked for something, the clock was set, or Redis is away. */
  lookUpMs: 10_000,
} as const

export function withDefaults(limits: PollerLimits): Required<PollerLimits> {
  return {
    historyPages: 0,
    sweepShare: 1,
    rulesShare: 0,
    leaseTtlMs,
    drainTimeoutMs: 10_000,
    stoppedIntervalMs: 5 * 60_000,
    backpressureIntervalMs: 5_000,
    restartDelayMs: 5_000,
    ...limits,
  }
}
