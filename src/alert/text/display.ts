import type { Alert } from '../alert.ts'
import { type Direction, oneLine } from './text.ts'

/** How people are shown times and words. */
export interface Display {
  /** IANA name. */
  readonly timeZone: string
  readonly calendar: 'jalali' | 'gregorian' | 'both'
  readonly language: 'fa' | 'en'
}

/** The direction of the reader's own words. */
export function displayDirection(display: Display): Direction {
  return display.language === 'fa' ? 'rtl' : 'ltr'
}

/** What an alert is called where its headline is empty. */
export function titleOf(alert: Alert): string {
  const headline = oneLine(alert.headline)
  if (headline !== '') return headline
  const rest = [alert.symbol, alert.kind].map((part) => oneLine(part ?? '')).filter((part) => part !== '')
  return rest.length > 0 ? rest.join(' · ') : `${alert.source} ${alert.id}`
}

/** The headline as it came; its replacement where it is empty. */
export function headlineOf(alert: Alert): string {
  return alert.headline.trim() === '' ? titleOf(alert) : alert.headline
}

/** The address to link to; undefined when it is no plain http or https address of a usable length. */
export function linkOf(alert: Alert): string | undefined {
  const url = URL.parse(alert.url.trim())
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  if (url.username !== '' || url.password !== '') return undefined
  // What URL leaves as it is, and what ends a link in one markup or another.
  const href = url.href.replace(/[|<>"`\\^{}\s]/g, percent)
  return href.length <= linkCharsMax ? href : undefined
}

/** When the alert fired, in the configured zone and calendar; the text of the API when it is no date. */
export function firedTime(alert: Alert, display: Display): string {
  const ms = alert.firedAtMs
  if (ms === null) return oneLine(alert.firedAt)
  const dates = calendarsOf(display).map((calendar) => date(ms, calendar, display))
  const day = dates.length === 2 ? `${dates[0]} (${dates[1]})` : dates[0]
  const weekday = part(ms, 'gregory', display, { weekday: 'long' }, 'weekday')
  const comma = display.language === 'fa' ? '،' : ','
  return display.language === 'fa'
    ? `${weekday} ${day}${comma} ساعت ${time(ms, display)} ${zoneName(ms, display)}`
    : `${weekday}, ${day}${comma} ${time(ms, display)} ${zoneName(ms, display)}`
}

/** `09:00:05` in the configured zone; undefined for no date. */
export function clockTime(ms: number, display: Display): string | undefined {
  return Number.isFinite(ms) ? time(ms, display) : undefined
}

/** `30 Aban`, `۳۰ آبان`: a local date `YYYY-MM-DD` without its year, in the reader's first calendar. */
export function shortDay(day: string, display: Display): string {
  const calendar = calendarsOf(display)[0] ?? 'gregory'
  const month = calendar === 'persian' ? 'long' : 'short'
  const options = { timeZone: 'UTC', day: 'numeric', month } as const
  const parts = partsOf(Date.parse(`${day}T12:00:00Z`), locale(calendar, display), options)
  return `${parts.get('day')} ${parts.get('month')}`
}

/** The local date `YYYY-MM-DD` (Gregorian) of an instant: alerts of one day belong together. */
export function localDay(ms: number, timeZone: string): string {
  const parts = partsOf(ms, 'en-US-u-ca-gregory-nu-latn', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  })
  return `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`
}

const linkCharsMax = 2_000

type CalendarName = 'persian' | 'gregory'

function calendarsOf(display: Display): CalendarName[] {
  if (display.calendar === 'both') return ['persian', 'gregory']
  return display.calendar === 'jalali' ? ['persian'] : ['gregory']
}

/** `30 Aban 1405`, `۳۰ آبان ۱۴۰۵`: composed from parts, since fa-IR would put the year first and the weekday last. */
function date(ms: number, calendar: CalendarName, display: Display): string {
  const options = { timeZone: display.timeZone, day: 'numeric', month: 'long', year: 'numeric' } as const
  const parts = partsOf(ms, locale(calendar, display), options)
  return `${parts.get('day')} ${parts.get('month')} ${parts.get('year')}`
}

function time(ms: number, display: Display): string {
  const options = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const
  const parts = partsOf(ms, locale('gregory', display), { timeZone: display.timeZone, ...options })
  return `${parts.get('hour')}:${parts.get('minute')}:${parts.get('second')}`
}

/**
 * `Iran Time`, `به وقت ایران`: what people of the zone call it. Where that is letters alone they are those of winter, so
 * the letters of that instant are shown instead (`CEST`).
 */
function zoneName(ms: number, display: Display): string {
  if (/^(Etc\/)?(UTC|GMT|UCT|Zulu|Universal)$/i.test(display.timeZone)) return 'UTC'
  const named = (timeZoneName: 'shortGeneric' | 'short') =>
    part(ms, 'gregory', display, { timeZoneName }, 'timeZoneName')
  const general = named('shortGeneric')
  const name = /^[A-Z]+$/.test(general) ? named('short') : general
  return name.startsWith('وقت') ? `به ${name}` : name
}

function part(
  ms: number,
  calendar: CalendarName,
  display: Display,
  options: Intl.DateTimeFormatOptions,
  type: Intl.DateTimeFormatPartTypes,
): string {
  return partsOf(ms, locale(calendar, display), { timeZone: display.timeZone, ...options }).get(type) ?? ''
}

function partsOf(ms: number, localeName: string, options: Intl.DateTimeFormatOptions): Map<string, string> {
  const parts = formatter(localeName, options).formatToParts(clamp(ms))
  return new Map(parts.map(({ type, value }) => [type, value]))
}

function locale(calendar: CalendarName, display: Display): string {
  return display.language === 'fa' ? `fa-IR-u-ca-${calendar}-nu-arabext` : `en-GB-u-ca-${calendar}-nu-latn`
}

/** Formatters are slow to make and few: zone, language and shape of the config. */
const formatters = new Map<string, Intl.DateTimeFormat>()

function formatter(localeName: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${localeName} ${JSON.stringify(options)}`
  const known = formatters.get(key)
  if (known) return known
  const made = new Intl.DateTimeFormat(localeName, options)
  formatters.set(key, made)
  return made
}

/** Dates that Intl cannot format would throw; the feed may claim any. */
function clamp(ms: number): number {
  return Math.min(Math.max(ms, -8.64e15), 8.64e15)
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
}
