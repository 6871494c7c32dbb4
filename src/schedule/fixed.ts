import * as z from 'zod'
import type { ScheduleOptions } from './options.ts'
import type { BudgetView, Decision, PollReport, Schedule, ScheduleView } from './schedule.ts'
import { type Attempts, noteAttempt, retryAt } from './time/attempts.ts'

/**
 * The schedule that learns nothing: `poll.every`, or (which no config asks for) the units that are left spread evenly over
 * the rest of the day. It refuses to plan past an empty budget, and keeps to the shortest and the longest interval like
 * every schedule.
 */
export function fixedSchedule(options: ScheduleOptions & { everyMs: number }, saved: unknown): Schedule {
  const parsed = snapshotSchema.safeParse(saved)
  const attempts: Attempts = parsed.success ? parsed.data : { lastAtMs: null, failures: 0 }
  const memory = parsed.success ? 'restored' : saved === undefined || saved === null ? 'fresh' : 'lost'
  let behind = false

  return {
    observe(poll: PollReport) {
      noteAttempt(attempts, poll)
      behind = poll.ok && poll.behind
    },
    next(nowMs: number, budget: BudgetView): Decision {
      if (budget.unitsLeft <= 0) return { atMs: budget.day.endMs, reason: 'budget_spent' }
      const { lastAtMs } = attempts
      if (lastAtMs === null) return { atMs: nowMs, reason: 'first' }
      const retryMs = retryAt(attempts, options.minIntervalMs)
      if (retryMs !== undefined) return { atMs: retryMs, reason: 'retry' }
      const intervalMs = Math.max(Math.min(options.everyMs, options.maxIntervalMs), options.minIntervalMs)
      if (behind)
        return { atMs: lastAtMs + Math.max(options.minIntervalMs, intervalMs / 2), reason: 'catch_up' }
      return { atMs: lastAtMs + intervalMs, reason: 'fixed' }
    },
    learnHistory() {},
    wantsRules: () => false,
    learnRules() {},
    setHot() {},
    snapshot: () => ({ v: 1, kind: 'fixed', ...attempts }),
    describe: (): ScheduleView => ({
      learnedFrom: 0,
      memory,
      firing: null,
      onMarks: false,
      announced: null,
      hotUntilMs: 0,
    }),
  }
}

const snapshotSchema = z.object({
  v: z.literal(1),
  kind: z.literal('fixed'),
  lastAtMs: z.number().nullable(),
  failures: z.int().nonnegative(),
})
