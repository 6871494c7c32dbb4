import type { ScheduleOptions } from '../options.ts'
import type { BudgetDay } from '../schedule.ts'
import type { Limits } from './solve.ts'

/** The slowest and the fastest pace of a day with so many units; one function for plan, preview, marks and replay. */
export function limitsFor(options: ScheduleOptions, day: BudgetDay, unitsPerDay: number): Limits {
  const even = (unitsPerDay * 1_000) / (day.endMs - day.startMs)
  const ceiling = 1_000 / options.minIntervalMs
  const floor = Math.min(ceiling, Math.max(1_000 / options.maxIntervalMs, options.floor * even))
  return { floor, ceiling }
}
