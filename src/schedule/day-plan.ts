import { wallTime } from '../lib/zone.ts'
import type { ScheduleOptions } from './options.ts'
import { binMs, binOf, profileZone, rowOf } from './prior.ts'
import { forecastDay, type Profile } from './profile.ts'
import type { BudgetDay } from './schedule.ts'

/** What the profile expects of one budget day, in steps of five minutes from its start. */
export interface DayPlan {
  readonly day: BudgetDay
  /** Alerts a second. */
  readonly rates: Float64Array
  /** The same to the power of `exponent`: the demand for polls. */
  readonly demands: Float64Array
}

export const stepMs = binMs

export function planDay(profile: Profile, day: BudgetDay, options: ScheduleOptions): DayPlan {
  const zone = profileZone(options)
  const forecasts = new Map<number, Float64Array>()
  const rates = new Float64Array(Math.ceil((day.endMs - day.startMs) / stepMs))
  for (let step = 0; step < rates.length; step++) {
    const wall = wallTime(day.startMs + step * stepMs, zone)
    const row = rowOf(wall, options)
    const forecast = forecasts.get(row) ?? forecastDay(profile, row, options)
    forecasts.set(row, forecast)
    rates[step] = forecast[binOf(wall)] ?? 0
  }
  return { day, rates, demands: rates.map((rate) => rate ** options.exponent) }
}

/** The step that holds an instant; the first or the last one for instants outside the day. */
export function stepAt({ day, rates }: DayPlan, atMs: number): number {
  return Math.min(rates.length - 1, Math.max(0, Math.floor((atMs - day.startMs) / stepMs)))
}

export function rateAt(plan: DayPlan, atMs: number): number {
  return plan.rates[stepAt(plan, atMs)] ?? 0
}

/** Alerts that the profile expects between two instants. */
export function expectedBetween(plan: DayPlan, fromMs: number, toMs: number): number {
  let sum = 0
  for (let at = fromMs; at < toMs; ) {
    const step = stepAt(plan, at)
    const stepEnd = plan.day.startMs + (step + 1) * stepMs
    const end = stepEnd > at ? Math.min(toMs, stepEnd) : toMs
    sum += ((plan.rates[step] ?? 0) * (end - at)) / 1_000
    at = end
  }
  return sum
}
