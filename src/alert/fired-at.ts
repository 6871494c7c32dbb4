import { durationText } from '../lib/duration.ts'
import { jalaliDay } from './text/jalali.ts'
import { asciiDigits, cut, oneLine } from './text/text.ts'

/**
 * Decides, for the whole program, which firing times are possible. A time that is not possible is ignored: whether its row
 * counts follows from its place in the feed and from its mark, and nothing is measured, expired or learned by that time.
 *
 * A wrong date that has the right form and lies within the limits cannot be recognised; so no alert is left out for its date
 * alone where its place in the feed says that it is new.
 */
export const dateLimits = {
  /** No feed of this kind is older; clocks that were never set begin earlier (1970, 1980, 2000). */
  earliestMs: Date.UTC(2010, 0),
  /**
   * A time further ahead than clocks differ says nothing of when an alert fired. It must be little: were the feed's dates
   * in another zone than they say, the history of so long would look as if it fired since the start.
   */
  aheadMsMax: 60_000,
} as const

/** A firing time in milliseconds since the epoch; null when the text is no date, or one before any alert. */
export function datedAt(text: unknown): number | null {
  if (typeof text !== 'string' || !dateForm.test(text)) return null
  const ms = Date.parse(text)
  return ms >= dateLimits.earliestMs ? ms : null
}

/** The firing time as it can be believed at `nowMs`. */
export function believedAt(datedMs: number | null, nowMs: number): number | null {
  return datedMs === null || datedMs > nowMs + dateLimits.aheadMsMax ? null : datedMs
}

/** Why the firing time of a row is not believed, for people; null where it is. */
export function doubtOf(firedAt: unknown, nowMs: number): string | null {
  const datedMs = datedAt(firedAt)
  if (believedAt(datedMs, nowMs) !== null) return null
  const text = typeof firedAt === 'string' ? firedAt : (JSON.stringify(firedAt) ?? 'nothing')
  const quoted = `firedAt ${cut(oneLine(text), quotedMax)}`
  if (datedMs !== null) return `${quoted} lies more than ${durationText(dateLimits.aheadMsMax)} ahead`
  const jalali = jalaliIn(text)
  return jalali === undefined
    ? `${quoted} is no date that an alert can have`
    : `${quoted} reads as a date of the Jalali calendar, which is ${jalali} of the Gregorian`
}

/** ISO 8601 with a day, or a date as mail and HTTP write it: Date.parse alone takes almost any text with a number. */
const dateForm = /^\s*(?:\d{4}-\d\d-\d\d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )/
const quotedMax = 60

/** The Gregorian day of a text that begins with a Jalali one of the years 1300 to 1499, in whatever digits. */
function jalaliIn(text: string): string | undefined {
  const match = /^\s*(1[34]\d\d)[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)/.exec(asciiDigits(text))
  if (!match) return undefined
  const ms = jalaliDay(Number(match[1]), Number(match[2]), Number(match[3]))
  return ms === undefined ? undefined : new Date(ms).toISOString().slice(0, 10)
}
