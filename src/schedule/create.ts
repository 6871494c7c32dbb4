import * as z from 'zod'
import { learnedSchedule } from './learned.ts'
import { type Attempts, attemptsSchema, emptyAttempts, nextAfter, noteAttempt } from './memory.ts'
import type { BudgetView, Decision, PollReport, Schedule, ScheduleOptions, ScheduleView } from './schedule.ts'

/** The schedule that the options ask for, with what an earlier one saved; `saved` is whatever the store gave back. */
export function createSchedule(options: ScheduleOptions, saved: unknown): Schedule {
  const { everyMs } = options
  return everyMs === undefined
    ? learnedSchedule(options, saved)
    : fixedSchedule({ ...options, everyMs }, saved)
}

/** The schedule that learns nothing: `poll.every`, within the shortest and the longest interval, while units are left. */
function fixedSchedule(options: ScheduleOptions & { everyMs: number }, saved: unknown): Schedule {
  const parsed = snapshotSchema.safeParse(saved)
  const attempts: Attempts = parsed.success ? parsed.data : emptyAttempts()
  const memory = parsed.success ? 'restored' : saved === undefined || saved === null ? 'fresh' : 'lost'

  return {
    observe(poll: PollReport) {
      noteAttempt(attempts, poll)
    },
    next(nowMs: number, budget: BudgetView): Decision {
      const intervalMs = Math.max(Math.min(options.everyMs, options.maxIntervalMs), options.minIntervalMs)
      if (budget.unitsLeft <= 0)
        return {
          atMs: Math.max(budget.day.endMs, (attempts.lastAtMs ?? 0) + intervalMs),
          reason: 'budget_spent',
        }
      return nextAfter(attempts, nowMs, options.minIntervalMs, (lastAtMs) => ({
        atMs: lastAtMs + intervalMs,
        reason: 'fixed',
      }))
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

const snapshotSchema = attemptsSchema.extend({ v: z.literal(1), kind: z.literal('fixed') })
