import * as z from 'zod'
import type { Decision, PollReport } from '../schedule.ts'

/** How many failures in a row are tried again soon. */
const retriesMax = 3
const retryAfterMs = 2_000
const pauseMsMax = 60_000
/** Reports may come a little out of order, and clocks of replicas differ a little. */
const clockSlackMs = 60_000

/** What the last polls ask for before the plan is asked: when the last one was, what failed since, and what it left to read. */
export type Attempts = z.infer<typeof attemptsSchema>

export const attemptsSchema = z.object({
  lastAtMs: z.number().nullable(),
  /** Polls in a row whose first page failed. */
  failures: z.int().nonnegative(),
  /** What the last good poll left to read. What an earlier version stored does not say. */
  pagesLeft: z.enum(['none', 'ready', 'failed']).default('none'),
  /** Good polls in a row that left pages because reading them failed. */
  pageFailures: z.int().nonnegative().default(0),
})

export function emptyAttempts(): Attempts {
  return { lastAtMs: null, failures: 0, pagesLeft: 'none', pageFailures: 0 }
}

export function noteAttempt(
  attempts: Attempts,
  { ok, atMs, pagesLeft }: Pick<PollReport, 'atMs' | 'ok' | 'pagesLeft'>,
): void {
  attempts.failures = ok ? 0 : attempts.failures + 1
  if (ok) attempts.pagesLeft = pagesLeft
  if (ok) attempts.pageFailures = pagesLeft === 'failed' ? attempts.pageFailures + 1 : 0
  const lastAtMs = attempts.lastAtMs ?? atMs
  // An instant far ahead of now is of before the clock was set back: with it, nothing would be due until then.
  attempts.lastAtMs = lastAtMs - atMs > clockSlackMs ? atMs : Math.max(lastAtMs, atMs)
}

/**
 * The next poll. What failed is tried again soon, a few times, and pages that wait are read at once; otherwise the plan decides,
 * also while the feed goes on failing, so that an outage does not use up the day's units.
 */
export function nextAfter(
  { lastAtMs, failures, pagesLeft, pageFailures }: Attempts,
  nowMs: number,
  minIntervalMs: number,
  plan: (lastAtMs: number) => Decision,
): Decision {
  if (lastAtMs === null || lastAtMs - nowMs > clockSlackMs) return { atMs: nowMs, reason: 'first' }
  const retry: Decision = { atMs: lastAtMs + Math.max(retryAfterMs, minIntervalMs), reason: 'retry' }
  if (failures > 0 && failures <= retriesMax) return retry
  if (failures === 0 && pagesLeft === 'ready') return { atMs: lastAtMs + minIntervalMs, reason: 'catch_up' }
  if (failures === 0 && pagesLeft === 'failed' && pageFailures <= retriesMax) return retry
  const planned = plan(lastAtMs)
  return { ...planned, atMs: Math.max(planned.atMs, lastAtMs + pauseAfter(failures)) }
}

/** A feed that still fails after the quick retries is called less and less often. */
export function pauseAfter(failures: number): number {
  if (failures <= retriesMax) return 0
  return Math.min(retryAfterMs * 2 ** Math.min(failures - retriesMax, 10), pauseMsMax)
}
