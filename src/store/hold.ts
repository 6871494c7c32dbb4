import { waits } from '../lib/waits.ts'
import type { rateLimits } from '../telemetry/metrics.ts'

/**
 * How long a 429 keeps everybody away: what it says, where it says something that can be read. Otherwise a minute, or
 * for the day's budget an hour at most, since the reset may not be when the config thinks. A little later than that, so
 * that replicas and sources that were refused together do not come back in step.
 */
export function holdMs(
  limit: (typeof rateLimits)[number],
  askedMs: number | undefined,
  untilResetMs: number,
): number {
  const meantMs = askedMs ?? (limit === 'budget' ? Math.min(untilResetMs, budgetHoldMsMax) : minuteHoldMs)
  return Math.min(Math.max(meantMs, holdMsMin) + Math.random() * holdJitterMs, waits.apiHold.maxMs)
}

const minuteHoldMs = 60_000
const budgetHoldMsMax = 3_600_000
const holdMsMin = 1_000
const holdJitterMs = 500
