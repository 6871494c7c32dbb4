import { setTimeout as delay } from 'node:timers/promises'
import { onTestFinished, vi } from 'vitest'
import { createFeedClient } from '../../src/feed/client.ts'
import type { PollResult } from '../../src/intake/poll-types.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Secret } from '../../src/lib/secret.ts'
import { createPoller } from '../../src/poller/poller.ts'
import { countExchanges } from '../../src/poller/reader.ts'
import type { Poller, PollerDeps, PollerLimits, ReadPage } from '../../src/poller/settings.ts'
import { createSandbox, type Sandbox, type SandboxOptions, sandboxToken } from '../../src/sandbox/sandbox.ts'
import { emptyAttempts, nextAfter, noteAttempt } from '../../src/schedule/memory.ts'
import type { BudgetDay, PollReport, Schedule } from '../../src/schedule/schedule.ts'
import type { RedisClient } from '../../src/store/connection/redis.ts'
import { createLedger, type Ledger } from '../../src/store/ledger/ledger.ts'
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'
import { initialiseMetrics } from '../../src/telemetry/series.ts'
import { type CapturedLog, captureLog } from './log.ts'
import { freshPrefix } from './redis.ts'

/** A poller on a real Redis and the sandbox, with a walk of one page and a pace of its own. */
export interface PollerRig {
  readonly prefix: string
  readonly sandbox: Sandbox
  /** Where the sandbox answers. */
  readonly url: string
  readonly redis: RedisClient
  readonly ledger: Ledger
  readonly metrics: Metrics
  readonly captured: CapturedLog
  /** What the poller reported to the schedule. */
  readonly reports: readonly PollReport[]
  /** Another replica on the same Redis and feed. */
  replica(redis: RedisClient, overrides?: Partial<PollerDeps>): PollerRun
}

interface PollerRun {
  readonly poller: Poller
  /** Resolves when the loop has ended. */
  stop(): Promise<void>
  /** What `run` resolved to, for those who abort by themselves. */
  readonly ended: Promise<void>
}

export interface RigOptions {
  readonly redis: RedisClient
  readonly sandbox?: SandboxOptions
  readonly limits?: Partial<PollerLimits>
  readonly requestsPerMinute?: number
  readonly budgetDay?: (nowMs: number) => BudgetDay
  readonly everyMs?: number
  /** Rests as the plan does once quick tries have failed; without it, what failed is tried again at the usual pace. */
  readonly restsAfterFailures?: boolean
}

export async function pollerRig(options: RigOptions): Promise<PollerRig> {
  const prefix = freshPrefix()
  const sandbox = createSandbox({ history: 3, ...options.sandbox })
  const { url } = await sandbox.start()
  onTestFinished(() => sandbox.stop())
  const captured = captureLog()
  const metrics = createMetrics({ version: 'test', node: process.version })
  initialiseMetrics(metrics, { sources: ['main'], sinks: [] })
  const feed = createFeedClient({
    source: 'main',
    baseUrl: url,
    token: new Secret(sandboxToken),
    timeoutMs: 3_000,
    onExchange: countExchanges(metrics, 'main'),
  })
  onTestFinished(() => feed.close())
  const limits = { unitsPerDay: 1_000, minIntervalMs: 10, ...options.limits }
  const budgetDay = options.budgetDay ?? farFromReset
  const reports: PollReport[] = []
  const ledgerOn = (redis: RedisClient) =>
    createLedger({
      ...{ redis, prefix, source: 'main', budgetDay },
      unitsPerDay: limits.unitsPerDay,
      requestsPerMinute: options.requestsPerMinute ?? 10_000,
    })
  const depsOn = (redis: RedisClient): PollerDeps => ({
    ...{ source: 'main', prefix, redis, feed, limits, budgetDay, metrics },
    ...{ account: undefined, ledger: ledgerOn(redis) },
    ...{ share: (units) => units, backlogShare: (units) => units, planners: () => 0 },
    freshPauseMs: () => 5_000,
    rules: { lastReading: () => undefined, readAnew: async () => true, lastRead: async () => noRules },
    ...{ onRules: () => [], onLease() {}, prepare: async () => undefined, onStandby: async () => {} },
    tooManyWaiting: async () => false,
    poll: pollOnePage,
    sweep: async () => ({ reason: 'round_done', pages: 0, newAlerts: 0, quarantined: 0, depth: 0 }),
    createSchedule: () => steadySchedule(options, limits.minIntervalMs, reports),
    clock: systemClock,
    log: captured.log,
  })
  return {
    ...{ prefix, sandbox, url, metrics, captured, reports, redis: options.redis },
    ledger: ledgerOn(options.redis),
    replica: (redis, overrides = {}) => start({ ...depsOn(redis), ...overrides }),
  }
}

const noRules = { atMs: 0, pages: 1 }

/** Seconds that the sandbox was left alone, in the sense of calls, from now. */
export async function callsDuring(sandbox: Sandbox, ms: number): Promise<number> {
  const before = sandbox.requests.length
  await delay(ms)
  return sandbox.requests.length - before
}

export async function untilCalls(sandbox: Sandbox, count: number): Promise<void> {
  await vi.waitFor(
    () => {
      if (sandbox.requests.length < count) throw new Error(`${sandbox.requests.length} calls of ${count}`)
    },
    { timeout: 10_000, interval: 5 },
  )
}

/** A poll of one page, as a caught-up walk makes it. */
export async function pollOnePage(readPage: ReadPage): Promise<PollResult> {
  const answer = await readPage(1, 'poll')
  if (answer.kind === 'refused') return pollResult({ reason: `refused_${answer.why}`, ok: false })
  if (answer.kind === 'failed') return pollResult({ reason: 'failed', ok: false, error: answer.error })
  return pollResult({ pages: 1, total: answer.page.total })
}

export function pollResult(fields: Partial<PollResult> = {}): PollResult {
  const { ok = true } = fields
  return {
    ...{ reason: 'caught_up', ok, pages: 0, newAlerts: 0, unrouted: 0, passedOver: 0, duplicates: 0 },
    ...{
      quarantined: 0,
      fired: [],
      doubt: null,
      behind: false,
      finished: ok,
      lastCompleteMs: null,
      feedGap: 0,
      total: null,
    },
    ...{ stopped: null, lost: false },
    ...fields,
  }
}

function start(deps: PollerDeps): PollerRun {
  const poller = createPoller(deps)
  const abort = new AbortController()
  const ended = poller.run(abort.signal)
  const stop = () => {
    abort.abort(new Error('the test is over'))
    return ended
  }
  onTestFinished(stop)
  return { poller, stop, ended }
}

/** Evenly paced, and quick to try again: the plans of real schedules have tests of their own. */
export function steadySchedule(
  { everyMs = 30, restsAfterFailures = false }: Partial<RigOptions> = {},
  minIntervalMs = 10,
  reports: PollReport[] = [],
): Schedule {
  const attempts = emptyAttempts()
  let hotUntilMs = 0
  return {
    observe(report) {
      reports.push(report)
      noteAttempt(attempts, report)
    },
    next(nowMs) {
      const failures = restsAfterFailures ? attempts.failures : 0
      return nextAfter({ ...attempts, failures }, nowMs, minIntervalMs, (lastMs) => ({
        atMs: nowMs < hotUntilMs ? nowMs : lastMs + everyMs,
        reason: 'fixed',
      }))
    },
    learnHistory() {},
    wantsRules: () => false,
    learnRules() {},
    setHot(untilMs) {
      hotUntilMs = untilMs
    },
    snapshot: () => ({ polls: reports.length }),
    describe: () => ({
      learnedFrom: 0,
      memory: 'fresh',
      firing: '',
      onMarks: false,
      announced: null,
      hotUntilMs,
    }),
  }
}

function farFromReset(nowMs: number): BudgetDay {
  return { key: 'today', startMs: nowMs - 3_600_000, endMs: nowMs + 3_600_000 }
}
