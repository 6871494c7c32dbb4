import { forecastBudgetDay } from '../forecast/day-forecast.ts'
import type { Profile } from '../forecast/profile.ts'
import { emptyRecent } from '../forecast/recent.ts'
import type { ScheduleOptions } from '../options.ts'
import type { BudgetDay } from '../schedule.ts'
import { type Family, type Paces, pacesOf } from './family.ts'
import { limitsFor } from './limits.ts'
import { outlookAt } from './outlook.ts'
import type { Limits } from './solve.ts'

/** The paces of all policies over a whole day, as they would be planned before anything of it is known. */
export function wholeDay(
  profile: Profile,
  family: Family,
  options: ScheduleOptions,
  day: BudgetDay,
  unitsPerDay: number,
): { readonly paces: Paces; readonly limits: Limits } {
  const forecast = forecastBudgetDay(profile, day, options)
  const alone = { ...emptyRecent(), credit: { profile: [1], mean: [1] } }
  const outlook = outlookAt(forecast, alone, options.exponent, day.startMs)
  const limits = limitsFor(options, day, unitsPerDay)
  const begun = {
    ...family,
    evenPace: (unitsPerDay * 1_000) / (day.endMs - day.startMs),
    unitsLeft: family.weights.map(() => unitsPerDay),
  }
  return { paces: pacesOf(begun, outlook, limits), limits }
}
