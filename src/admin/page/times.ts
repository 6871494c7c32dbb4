import { formatDuration } from '../../lib/duration.ts'
import type { DisplayOptions } from '../ports.ts'
import { type Html, html } from './html.ts'

/** Instants as the page shows them: in the configured zone and calendar, and as a distance from now. */
export interface Times {
  readonly nowMs: number
  readonly timeZone: string
  /** `12:03:10` */
  clock(iso: string): string
  /** `1405/08/30`, `2026-11-21`, or both */
  date(iso: string): string
  isToday(iso: string): boolean
  /** A `<time>` with the text `12s ago` or `in 8s`; the full time is its title. */
  distance(iso: string): Html
}

export function createTimes({ timeZone, calendar }: DisplayOptions, nowMs: number): Times {
  const clockFormat = new Intl.DateTimeFormat('en-GB-u-nu-latn', { timeZone, timeStyle: 'medium' })
  const dateFormats = dateFormatsOf(timeZone, calendar)
  const guarded = (iso: string, show: (ms: number) => string) => {
    const ms = Date.parse(iso)
    return Number.isNaN(ms) ? iso : show(ms)
  }
  const clock = (iso: string) => guarded(iso, (ms) => clockFormat.format(ms))
  const date = (iso: string) => guarded(iso, (ms) => dateFormats.map((format) => format(ms)).join(' · '))
  return {
    nowMs,
    timeZone,
    clock,
    date,
    isToday: (iso) => date(iso) === date(new Date(nowMs).toISOString()),
    distance: (iso) =>
      html`<time data-age datetime="${iso}" title="${date(iso)} ${clock(iso)}">${distanceOf(Date.parse(iso) - nowMs)}</time>`,
  }
}

function dateFormatsOf(timeZone: string, calendar: DisplayOptions['calendar']): ((ms: number) => string)[] {
  // As is usual in each calendar: 1405/08/30 and 2026-11-21.
  const jalali = dateFormat(timeZone, 'persian', '/')
  const gregorian = dateFormat(timeZone, 'gregory', '-')
  switch (calendar) {
    case 'jalali':
      return [jalali]
    case 'gregorian':
      return [gregorian]
    case 'both':
      return [jalali, gregorian]
    default:
      return calendar satisfies never
  }
}

function dateFormat(timeZone: string, calendar: string, separator: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat(`en-u-ca-${calendar}-nu-latn`, {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  })
  return (ms) => {
    const parts = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]))
    return [parts.get('year'), parts.get('month'), parts.get('day')].join(separator)
  }
}

function distanceOf(ms: number): string {
  if (Number.isNaN(ms)) return 'at an unknown time'
  const seconds = Math.round(ms / 1_000)
  if (seconds === 0) return 'now'
  const span = formatDuration(Math.abs(seconds) * 1_000)
  return seconds < 0 ? `${span} ago` : `in ${span}`
}

/** `8.4s`, `1m 20s` */
export function formatSeconds(seconds: number): string {
  return formatDuration(seconds * 1_000)
}

/** `12,480`; a dash for what is not known. */
export function formatCount(count: number | null): string {
  return count === null ? '–' : count.toLocaleString('en-US')
}

/** `1 row`, `3 rows` */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}
