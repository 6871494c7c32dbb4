import { type ScheduleOptions, usualLongestMs } from '../options.ts'
import type { BudgetDay } from '../schedule.ts'
import type { Limits } from './solve.ts'

/** The slowest and the fastest pace of a day with so many units; one function for plan, preview, marks and replay. */
export function limitsFor(options: ScheduleOptions, day: BudgetDay, unitsPerDay: number): Limits {
  const even = (unitsPerDay * 1_000) / (day.endMs - day.startMs)
  const ceiling = 1_000 / options.minIntervalMs
  // An interval that follows from the budget follows from the one that the API grants.
  const longestMs = hasUsualLongest(options) ? usualLongestMs(unitsPerDay) : options.maxIntervalMs
  const floor = Math.min(ceiling, Math.max(1_000 / longestMs, options.floor * even))
  return { floor, ceiling }
}

/** Whether the longest interval follows from the budget; otherwise the config names it. */
export function hasUsualLongest({ maxIntervalMs, unitsPerDay }: ScheduleOptions): boolean {
  return maxIntervalMs === usualLongestMs(unitsPerDay)
}
