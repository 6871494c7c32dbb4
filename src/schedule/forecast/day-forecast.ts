import { wallTime } from '../../lib/zone.ts'
import type { ScheduleOptions } from '../options.ts'
import type { BudgetDay } from '../schedule.ts'
import { binMs, binOf, profileZone, rowOf } from './prior.ts'
import { forecastDay, type Profile } from './profile.ts'

/** What the profile expects of one budget day, in steps of five minutes from its start. */
export interface DayForecast {
  readonly day: BudgetDay
  /** Events a second. */
  readonly rates: Float64Array
  /** The same to the power of `exponent`: the demand for polls. */
  readonly demands: Float64Array
  /** Means of both over half hours, the last of which may be shorter. */
  readonly halfHours: { readonly rates: Float64Array; readonly demands: Float64Array }
  /** The mean rate of the day: the forecast of who knows nothing of the time of day. */
  readonly meanRate: number
}

export const stepMs = binMs
export const stepsPerHalfHour = 6

export function forecastBudgetDay(profile: Profile, day: BudgetDay, options: ScheduleOptions): DayForecast {
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
  const meanRate = rates.reduce((sum, rate) => sum + rate, 0) / rates.length
  const demands = rates.map((rate) => rate ** options.exponent)
  const halfHours = { rates: halfHourMeans(rates), demands: halfHourMeans(demands) }
  return { day, rates, demands, halfHours, meanRate }
}

function halfHourMeans(steps: Float64Array): Float64Array {
  return Float64Array.from({ length: Math.ceil(steps.length / stepsPerHalfHour) }, (_, half) => {
    const part = steps.subarray(half * stepsPerHalfHour, (half + 1) * stepsPerHalfHour)
    return part.reduce((sum, value) => sum + value, 0) / part.length
  })
}

/** The forecast at an instant; that of the first or the last step for instants outside the day. */
export function rateAt({ day, rates }: DayForecast, atMs: number): number {
  const step = Math.floor((atMs - day.startMs) / stepMs)
  return rates[Math.min(rates.length - 1, Math.max(0, step))] ?? 0
}

/** Events that the profile expects between two instants. */
export function expectedBetween(forecast: DayForecast, fromMs: number, toMs: number): number {
  const { startMs } = forecast.day
  let sum = 0
  for (let at = fromMs; at < toMs; ) {
    const end = Math.min(toMs, startMs + (Math.floor((at - startMs) / stepMs) + 1) * stepMs)
    sum += (rateAt(forecast, at) * (end - at)) / 1_000
    at = end
  }
  return sum
}
