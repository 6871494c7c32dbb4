import { waits } from '../../lib/waits.ts'
import type { ApiLimit } from '../../telemetry/metrics.ts'
import { resetGuardMs } from './ledger-days.ts'

/**
 * How long no replica calls after a 429: as long as it asks, where that can be read. Otherwise a minute, or for the day's
 * budget an hour at most, since the reset may not be when the config says. A random part is added, so that replicas and
 * sources that were refused together do not call again together.
 */
export function holdMs(limit: ApiLimit, askedMs: number | undefined, untilResetMs: number): number {
  const usualMs = limit === 'budget' ? Math.min(untilResetMs + resetGuardMs, budgetHoldMsMax) : minuteHoldMs
  const meantMs = askedMs ?? usualMs
  return Math.min(Math.max(meantMs, holdMsMin) + Math.random() * holdJitterMs, waits.apiHold.maxMs)
}

const minuteHoldMs = 60_000
export const budgetHoldMsMax = 3_600_000
const holdMsMin = 1_000
const holdJitterMs = 500
