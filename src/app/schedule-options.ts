import type { SourceConfig } from '../config/schema.ts'
import type { ScheduleOptions } from '../schedule/options.ts'

/** A source's config as the schedule takes it. */
export function scheduleOptionsOf({ budget, poll }: SourceConfig): ScheduleOptions {
  return {
    unitsPerDay: budget.unitsPerDay,
    resetsAt: budget.resetsAt,
    timeZone: budget.timeZone,
    minIntervalMs: poll.minInterval,
    maxIntervalMs: poll.maxInterval,
    ...(poll.every === undefined ? {} : { everyMs: poll.every }),
    exponent: poll.exponent,
    floor: poll.floor,
    activeHours: poll.activeHours,
    holidays: poll.holidays,
  }
}
