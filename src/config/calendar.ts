import { jalaliDay } from '../alert/text/jalali.ts'
import { dateKey } from '../lib/zone.ts'
import { nearest } from './mistakes/nearest.ts'

/** Dates and zones as people write them in the config. Pure. */

/**
 * `2026-11-25`, or the same day of the Jalali calendar, `1405-09-04`, as a Gregorian `YYYY-MM-DD`; undefined when there
 * is no such day. No market of this kind had holidays before 1700, so a smaller year is a Jalali one.
 */
export function parseHoliday(text: string): string | undefined {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text.trim())
  if (!match) return undefined
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  return year < 1700 ? fromJalali(year, month, day) : fromGregorian(year, month, day)
}

/** A time of day up to 24:00 as `HH:MM` with two digits each; undefined when the text is not one. */
export function parseTimeOfDay(text: string): string | undefined {
  const match = /^(\d{1,2}):(\d{2})$/.exec(text.trim())
  if (!match) return undefined
  const [hours, minutes] = [Number(match[1]), Number(match[2])]
  if (minutes > 59 || hours * 60 + minutes > 1_440) return undefined
  return text.trim().padStart(5, '0')
}

/** Names that were found right: a config names few, each time it is read, and asking takes as long as reading ten lines. */
const timeZones = new Set<string>()

export function isTimeZone(name: string): boolean {
  if (timeZones.has(name)) return true
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    timeZones.add(name)
    return true
  } catch {
    return false
  }
}

/** The zone that was probably meant, by its whole name or by its city. */
export function nearestTimeZone(name: string): string | undefined {
  const zones = Intl.supportedValuesOf('timeZone')
  const whole = nearest(name, zones)
  if (whole !== undefined || name.includes('/')) return whole
  const cities = new Map(zones.map((zone) => [zone.slice(zone.lastIndexOf('/') + 1), zone]))
  return cities.get(nearest(name, cities.keys()) ?? '')
}

function fromGregorian(year: number, month: number, day: number): string | undefined {
  const date = new Date(Date.UTC(year, month - 1, day))
  const same = date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  return same ? dateKey(date.getTime()) : undefined
}

function fromJalali(year: number, month: number, day: number): string | undefined {
  const ms = jalaliDay(year, month, day)
  return ms === undefined ? undefined : dateKey(ms)
}
