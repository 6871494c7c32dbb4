import type { Display } from '../../alert/text/display.ts'
import { type Html, type HtmlPart, html } from '../../alert/text/html.ts'
import { splitAtInstants } from '../own-instants.ts'
import { english, type PageWords } from './words/en.ts'
import { persian } from './words/fa.ts'

/** Instants as the page shows them, in the configured zone and calendar, and as a distance from now; with the reader's words. */
export interface Times {
  readonly words: PageWords
  readonly nowMs: number
  readonly timeZone: string
  /** For the page's script, which shows times too. */
  readonly locale: string
  /** `12:03:10` */
  clock(iso: string): string
  /** `1405/08/30`, `2026-11-21`, or both */
  date(iso: string): string
  isToday(iso: string): boolean
  /** A `<time>` with the text `12s ago` or `in 8s`; the full time is its title. */
  distance(iso: string): Html
  /** The time of day, with the date where it is not today's, and the distance. */
  readonly moment: (iso: string) => Html
  /** A sentence of the bridge, its own instants as `moment` shows them. */
  readonly sentence: (text: string) => HtmlPart
}

export function createTimes({ timeZone, calendar, language }: Display, nowMs: number): Times {
  const words = language === 'fa' ? persian : english
  const digits = language === 'fa' ? 'arabext' : 'latn'
  const clockFormat = new Intl.DateTimeFormat(`en-GB-u-nu-${digits}`, { timeZone, timeStyle: 'medium' })
  const dateFormats = dateFormatsOf(timeZone, calendar, digits)
  const guarded = (iso: string, show: (ms: number) => string) => {
    const ms = Date.parse(iso)
    return Number.isNaN(ms) ? iso : show(ms)
  }
  const clock = (iso: string) => guarded(iso, (ms) => clockFormat.format(ms))
  const date = (iso: string) => guarded(iso, (ms) => dateFormats.map((format) => format(ms)).join(words.dot))
  const isToday = (iso: string) => date(iso) === date(new Date(nowMs).toISOString())
  const distance = (iso: string) =>
    html`<time data-age datetime="${iso}" title="${date(iso)} ${clock(iso)}">${distanceOf(Date.parse(iso) - nowMs, words)}</time>`
  const moment = (iso: string) =>
    html`<time datetime="${iso}">${isToday(iso) ? null : html`${date(iso)} `}${clock(iso)}</time> (${distance(iso)})`
  return {
    words,
    nowMs,
    timeZone,
    locale: `${language === 'fa' ? 'fa' : 'en-GB'}-u-ca-${calendar === 'gregorian' ? 'gregory' : 'persian'}`,
    clock,
    date,
    isToday,
    distance,
    moment,
    sentence: (text) =>
      splitAtInstants(text).map((part, at) => (at % 2 === 1 ? html`<bdi>${moment(part)}</bdi>` : part)),
  }
}

function dateFormatsOf(
  timeZone: string,
  calendar: Display['calendar'],
  digits: string,
): ((ms: number) => string)[] {
  // As is usual in each calendar: 1405/08/30 and 2026-11-21. After Persian letters dashes would turn the parts of a date around.
  const jalali = dateFormat(timeZone, `persian-nu-${digits}`, '/')
  const gregorian = dateFormat(timeZone, `gregory-nu-${digits}`, digits === 'latn' ? '-' : '/')
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
  const format = new Intl.DateTimeFormat(`en-u-ca-${calendar}`, {
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

function distanceOf(ms: number, words: PageWords): string {
  if (Number.isNaN(ms)) return words.noTime
  const seconds = Math.round(ms / 1_000)
  if (seconds === 0) return words.now
  const span = words.duration(Math.abs(seconds) * 1_000)
  return seconds < 0 ? words.ago(span) : words.ahead(span)
}
