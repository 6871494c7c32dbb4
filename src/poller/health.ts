import { formatDuration } from '../lib/duration.ts'
import type { PollerState, PollerStatus } from '../store/source-status.ts'
import { needsPerson } from './outcome.ts'
import type { PollerFault, PollerHealth } from './settings.ts'

/** What the watchdog looks at; pure. Instants are those of the monotonic clock. */
export interface Vitals {
  readonly status: PollerStatus
  /** When the loop last did anything: a decision, a call, a look at a waiting lease. */
  readonly lastActMs: number
  /** When the loop means to act next; while it polls, by when something must have happened. */
  readonly expectActMs: number
  /** What the loop threw, until a poll goes well again. */
  readonly crash: string | undefined
}

/** A loop that is this late is stuck: longer than any call and any pause of the process that is not itself a fault. */
export const lateMsMax = 60_000

/**
 * A loop that is this late will not go on: every call and every command of it has a limit of seconds, without Redis it
 * tries once a second, and a wait for a budget or a 429 is made of naps. Only a new process helps.
 */
export const hungMsMin = 5 * 60_000

/** A feed that has failed at every poll for so long will not mend itself: a person should look. */
export const failingMsMax = 15 * 60_000

/** What is wrong with a feed that has failed for too long; undefined where it is well, or where that is told otherwise. */
export function lastingFailure({ state, lastError, failingSinceMs }: PollerStatus): string | undefined {
  if (lastError === null || failingSinceMs === null || state === 'stopped' || state === 'standby') return
  if (needsPerson(lastError.code)) return
  // From the first to the last poll that failed, so that a time without polls makes nothing worse.
  const forMs = lastError.atMs - failingSinceMs
  return forMs < failingMsMax
    ? undefined
    : `no poll has gone well for ${formatDuration(forMs)}: ${lastError.message}`
}

/**
 * Whether the loop does what it should and the feed is of use: also on standby, and while a limit keeps it waiting. A
 * source that is stopped is no fault of this process: its state says so, and another process would be refused as well.
 */
export function healthOf({ status, expectActMs, lastActMs, crash }: Vitals, nowMs: number): PollerHealth {
  const { state, reason } = status
  const bad = (why: PollerFault, text: string): PollerHealth => ({ ok: false, why, reason: text })
  if (crash !== undefined) return bad('crashed', `the polling loop failed and was started again: ${crash}`)
  if (state === 'redis_down') return bad('redis_down', `polling pauses while Redis is away: ${reason}`)
  if (nowMs > expectActMs + lateMsMax) return bad('stuck', stuckText(state, nowMs - lastActMs))
  if (state === 'starting') return bad('starting', 'no poll was tried yet')
  const failure = lastingFailure(status)
  if (failure !== undefined) return bad('failing', failure)
  const restsByRight =
    state === 'standby' || state === 'held' || state === 'budget_spent' || state === 'stopped'
  if (status.lastPollAtMs === null && !restsByRight) return bad('starting', 'no poll was tried yet')
  return { ok: true }
}

/** Why only a new process helps; undefined where the loop may go on by itself. */
export function hungOf({ status, expectActMs, lastActMs }: Vitals, nowMs: number): string | undefined {
  if (nowMs <= expectActMs + hungMsMin) return undefined
  return `source ${status.source}: ${stuckText(status.state, nowMs - lastActMs)}`
}

function stuckText(state: PollerState, forMs: number): string {
  return `the polling loop is stuck (${state}): nothing for ${formatDuration(forMs)}`
}
