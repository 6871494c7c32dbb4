import { withIntervals } from '../../config/checks/intervals.ts'
import type { SourceConfig } from '../../config/schema.ts'
import { budgetSchema, pollSchema } from '../../config/source.ts'
import { grantedUnits } from '../../context/spending.ts'
import { budgetDay } from '../../schedule/budget.ts'
import { type ScheduleOptions, usualIntervals } from '../../schedule/schedule.ts'
import type { GrantStore } from '../../store/ledger/grant.ts'

/** The config of a source, as the schedule's own options. */
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

/** The units that the account of a source has a day: those of the config, or fewer where the API refused more. Throws what Redis throws. */
export function unitsGranted(
  grants: Pick<GrantStore, 'load'>,
  source: Pick<SourceConfig, 'budget' | 'poll'>,
  nowMs: number,
): Promise<number> {
  return grantedUnits(grants, source.budget.unitsPerDay, budgetDay(nowMs, scheduleOptionsOf(source)), nowMs)
}

/** The same with another budget: intervals that the config derives from the budget are derived from the new one. */
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

/** A source whose config sets only the budget: for a history that is replayed without a config. */
export function usualSource(unitsPerDay: number): Pick<SourceConfig, 'budget' | 'poll'> {
  const budget = budgetSchema.parse({ unitsPerDay })
  return { budget, poll: withIntervals(budget, pollSchema.parse({})) }
}
