import type { PollReport } from '../schedule.ts'

const retryAfterMs = 2_000
const retriesMax = 3
/** Reports may come a little out of order, and clocks of replicas differ a little. */
const clockSlackMs = 60_000

/**
 * When the last poll was and how many calls failed since one went well. A failed call is tried again soon, a few
 * times; after that the plan goes on as if it had gone well, so that an outage does not eat the day's units.
 */
export interface Attempts {
  lastAtMs: number | null
  failures: number
}

export function noteAttempt(attempts: Attempts, poll: Pick<PollReport, 'atMs' | 'ok'>): void {
  attempts.failures = poll.ok ? 0 : attempts.failures + 1
  const lastAtMs = attempts.lastAtMs ?? poll.atMs
  // An instant far ahead of now is of before the clock was set back: with it, nothing would be due until then.
  attempts.lastAtMs = lastAtMs - poll.atMs > clockSlackMs ? poll.atMs : Math.max(lastAtMs, poll.atMs)
}

/** The instant of the next retry, or undefined when the plan decides. */
export function retryAt(attempts: Attempts, minIntervalMs: number): number | undefined {
  const { lastAtMs, failures } = attempts
  if (lastAtMs === null || failures === 0 || failures > retriesMax) return undefined
  return lastAtMs + Math.max(retryAfterMs, minIntervalMs)
}
