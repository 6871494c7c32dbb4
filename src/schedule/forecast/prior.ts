import { dateKey } from '../../lib/zone.ts'
import { type ScheduleOptions, weekdays } from '../options.ts'
import { minutesOf } from '../time/budget-day.ts'

/** What the config says about days, before anything is learned. A bin is five minutes of the wall clock. */

export const binsPerDay = 288
export const binMs = 300_000
/** One row a weekday, in the order of `Date.getUTCDay`, and one for holidays. */
export const rowCount = 8
const holidayRow = 7
const dayMs = 86_400_000

/** The zone whose clock the alerts are thought to follow. */
export function profileZone(options: ScheduleOptions): string {
  return options.activeHours?.timeZone ?? options.timeZone
}

/** The row of a wall time's date. */
export function rowOf(wallMs: number, { holidays }: ScheduleOptions): number {
  if (holidays.length > 0 && holidays.includes(dateKey(wallMs))) return holidayRow
  return new Date(wallMs).getUTCDay()
}

export function binOf(wallMs: number): number {
  return Math.floor((wallMs - Math.floor(wallMs / dayMs) * dayMs) / binMs)
}

/** Whether the active hours apply to days of this row; every weekday is alike where there are none. */
export function isTrading(row: number, { activeHours }: ScheduleOptions): boolean {
  const name = weekdays[row]
  return name !== undefined && (!activeHours || activeHours.days.includes(name))
}

/** The shares of a day's alerts that each bin is thought to bring: flat, but for active hours that the config names. */
export function priorShape(row: number, options: ScheduleOptions): Float64Array {
  const shape = new Float64Array(binsPerDay)
  if (!options.activeHours) return shape.fill(1 / binsPerDay)
  const trading = isTrading(row, options)
  addSpan(shape, 0, 1_440, trading ? 0.1 : 0.2)
  addSpan(shape, 7 * 60, 23.5 * 60, trading ? 0.3 : 0.8)
  if (trading) addSpan(shape, minutesOf(options.activeHours.from), minutesOf(options.activeHours.to), 0.6)
  return shape
}

function addSpan(shape: Float64Array, fromMinute: number, toMinute: number, share: number): void {
  const length = (toMinute - fromMinute + 1_440) % 1_440 || 1_440
  const first = Math.floor(fromMinute / 5)
  const bins = Math.max(1, Math.round(length / 5))
  for (let k = 0; k < bins; k++) {
    const bin = (first + k) % binsPerDay
    shape[bin] = (shape[bin] ?? 0) + share / bins
  }
}
