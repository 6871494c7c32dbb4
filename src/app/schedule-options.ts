import { withIntervals } from '../config/intervals.ts'
import type { SourceConfig } from '../config/schema.ts'
import { budgetSchema, pollSchema } from '../config/source.ts'
import { type ScheduleOptions, usualIntervals } from '../schedule/options.ts'

/** A source's config as the schedule takes it. */
export function scheduleOptionsOf({ budget, poll }: Pick<SourceConfig, 'budget' | 'poll'>): ScheduleOptions {
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

/** The same with another budget: intervals that follow from the budget follow this one. */
export function withUnits(
  source: Pick<SourceConfig, 'budget' | 'poll'>,
  unitsPerDay: number,
): ScheduleOptions {
  const { budget, poll } = source
  const [was, is] = [usualIntervals(budget), usualIntervals({ ...budget, unitsPerDay })]
  const { minInterval, maxInterval } = poll
  return {
    ...scheduleOptionsOf(source),
    unitsPerDay,
    minIntervalMs: minInterval === was.minIntervalMs ? is.minIntervalMs : minInterval,
    maxIntervalMs: maxInterval === was.maxIntervalMs ? is.maxIntervalMs : maxInterval,
  }
}

/** What a config that says no more than the budget comes to: for histories that are replayed without one. */
export function usualOptions(unitsPerDay: number): ScheduleOptions {
  return scheduleOptionsOf(usualSource(unitsPerDay))
}

export function usualSource(unitsPerDay: number): Pick<SourceConfig, 'budget' | 'poll'> {
  const budget = budgetSchema.parse({ unitsPerDay })
  return { budget, poll: withIntervals(budget, pollSchema.parse({})) }
}
