import { formatDuration } from '../lib/duration.ts'
import type { PollerStatus } from '../store/source-status.ts'
import type { PollerHealth } from './poller-types.ts'

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
 * Whether the loop does what it should: also on standby, and while a limit keeps it waiting. A source that needs a
 * person is no fault of this process: the reason is there, and restarting would not help.
 */
export function healthOf({ status, expectActMs, lastActMs, crash }: Vitals, nowMs: number): PollerHealth {
  const { source, state, reason } = status
  const bad = (why: string): PollerHealth => ({ ok: false, reason: `source ${source}: ${why}` })
  if (crash !== undefined) return bad(`the polling loop failed and was started again: ${crash}`)
  if (state === 'redis_down') return bad(`polling pauses while Redis is away: ${reason}`)
  if (nowMs > expectActMs + lateMsMax) {
    return bad(`the polling loop is stuck (${state}): nothing for ${formatDuration(nowMs - lastActMs)}`)
  }
  if (state === 'starting') return bad('no poll was tried yet')
  const restsByRight =
    state === 'standby' || state === 'held' || state === 'budget_spent' || state === 'stopped'
  if (status.lastPollAtMs === null && !restsByRight) return bad('no poll was tried yet')
  return state === 'stopped' ? { ok: true, reason: `source ${source} is stopped: ${reason}` } : { ok: true }
}
