import { needsPerson } from '../feed/errors.ts'
import { formatDuration } from '../lib/duration.ts'
import type { PollerState, PollerStatus } from '../store/source/source-status.ts'
import type { PollerDeps, PollerFault, PollerHealth } from './settings.ts'

/** Whether the loop does what it should and its feed is of use, for whoever watches it: from its status and the clock. */

/** What the watchdog checks; pure. Instants are those of the monotonic clock. */
export interface LoopActivity {
  readonly status: PollerStatus
  /** When the loop last did anything: a decision, a call, a try to take the lease. */
  readonly actedAtMs: number
  /** When the loop plans to act next; while it polls, by when something must have happened. */
  readonly dueAtMs: number
  /** What the loop threw, until a poll succeeds again. */
  readonly crash: string | undefined
}

/** A loop that is this late is stuck: longer than any call and any pause of the process that is not itself a fault. */
export const lateMsMax = 60_000

/**
 * A loop that is this late will not continue: its calls and commands have limits of seconds, without Redis it tries once a
 * second, and a wait for a budget or a 429 is made of short ones. Only a new process helps.
 */
export const hungMsMin = 5 * 60_000

/** A feed that has failed at every poll for so long will not recover by itself: a person should look. */
export const failingMsMax = 15 * 60_000

/** What is wrong with a feed that has failed for too long; undefined where it is well, or where the state says it already. */
export function lastingFailure({ state, lastError, failingSinceMs }: PollerStatus): string | undefined {
  if (lastError === null || failingSinceMs === null || state === 'stopped' || state === 'standby') return
  if (needsPerson(lastError.code)) return
  // From the first to the last poll that failed, so that a time without polls does not count.
  const forMs = lastError.atMs - failingSinceMs
  return forMs < failingMsMax
    ? undefined
    : `no poll has gone well for ${formatDuration(forMs)}: ${lastError.message}`
}

/**
 * By how much the next poll is late; 0 where none is planned, or a little is to be expected. A process that ended leaves its last
 * status, also that it would soon continue.
 */
export function overdueMs(
  { state, behind, nextPollAtMs }: Pick<PollerStatus, 'state' | 'behind' | 'nextPollAtMs'>,
  nowMs: number,
): number {
  if (nextPollAtMs === null || !planned.has(state)) return 0
  const lateMs = nowMs - nextPollAtMs
  return lateMs > (behind ? walkMsMax : lateMsMax) ? lateMs : 0
}

export function collectOverdue(
  status: PollerStatus,
  { metrics, clock }: Pick<PollerDeps, 'metrics' | 'clock'>,
) {
  // Nothing is planned before the first poll, and another process polls while this one is on standby.
  if (status.nextPollAtMs === null || status.state === 'standby') return
  metrics.pollOverdue.set({ source: status.source }, overdueMs(status, clock.now()) / 1_000)
}

const planned: ReadonlySet<PollerState> = new Set<PollerState>([
  ...(['polling', 'waiting', 'held', 'budget_spent', 'backpressure'] as const),
])
/** The next poll is planned after this one, which may read many pages. */
const walkMsMax = 60 * 60_000

/**
 * Whether the loop does what it should and the feed is of use: also on standby, and while a limit keeps it waiting. A
 * source that is stopped is no fault of this process: its state says so, and another process would be refused as well.
 */
export function healthOf({ status, dueAtMs, actedAtMs, crash }: LoopActivity, nowMs: number): PollerHealth {
  const { state, reason } = status
  const bad = (why: PollerFault, text: string): PollerHealth => ({ ok: false, why, reason: text })
  if (crash !== undefined) return bad('crashed', `the polling loop failed and was started again: ${crash}`)
  if (state === 'redis_down') return bad('redis_down', `polling pauses while Redis is away: ${reason}`)
  if (nowMs > dueAtMs + lateMsMax) return bad('stuck', stuckText(state, nowMs - actedAtMs))
  if (state === 'starting') return bad('starting', 'no poll was tried yet')
  const failure = lastingFailure(status)
  if (failure !== undefined) return bad('failing', failure)
  const mayRest = state === 'standby' || state === 'held' || state === 'budget_spent' || state === 'stopped'
  if (status.lastPollAtMs === null && !mayRest) return bad('starting', 'no poll was tried yet')
  return { ok: true }
}

/** Why only a new process helps; undefined where the loop may continue by itself. */
export function hungOf({ status, dueAtMs, actedAtMs }: LoopActivity, nowMs: number): string | undefined {
  if (nowMs <= dueAtMs + hungMsMin) return undefined
  return `source ${status.source}: ${stuckText(status.state, nowMs - actedAtMs)}`
}

function stuckText(state: PollerState, forMs: number): string {
  return `the polling loop is stuck (${state}): nothing for ${formatDuration(forMs)}`
}
