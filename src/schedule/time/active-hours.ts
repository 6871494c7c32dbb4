import { wallTime } from '../../lib/zone.ts'
import { isTrading, profileZone, rowOf } from '../forecast/prior.ts'
import type { ScheduleOptions } from '../options.ts'
import { minutesOf } from './budget-day.ts'

/** Whether an instant is within the active hours of the config, and on no holiday; always where the config names none. */
export function isActiveAt(atMs: number, options: ScheduleOptions): boolean {
  const { activeHours } = options
  if (!activeHours) return true
  const wallMs = wallTime(atMs, profileZone(options))
  const minute = Math.floor(wallMs / 60_000) % 1_440
  const [from, to] = [minutesOf(activeHours.from), minutesOf(activeHours.to)]
  const isWithin = from < to ? minute >= from && minute < to : minute >= from || minute < to
  return isWithin && isTrading(rowOf(wallMs, options), options)
}
