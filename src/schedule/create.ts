import { fixedSchedule } from './fixed.ts'
import { learnedSchedule } from './learned.ts'
import type { ScheduleOptions } from './options.ts'
import type { Schedule } from './schedule.ts'

export type { ScheduleOptions } from './options.ts'

/** The schedule that the options ask for, with what an earlier one saved; `saved` is whatever the store gave back. */
export function createSchedule(options: ScheduleOptions, saved: unknown): Schedule {
  const { everyMs } = options
  return everyMs === undefined
    ? learnedSchedule(options, saved)
    : fixedSchedule({ ...options, everyMs }, saved)
}
