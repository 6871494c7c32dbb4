import type { ReadingNames } from '../../alert/context.ts'
import { readField, readPrice, readText } from '../../alert/readings.ts'
import { localDay } from '../../alert/text/display.ts'

/** The price history of an instrument, as the chart's record has it: oldest first, halted sessions among the others. */
export interface PriceSession {
  /** undefined: nothing was traded, or no price is known. */
  readonly close: number | undefined
  /** `YYYY-MM-DD` in Tehran; undefined where the record has no date that can be read. */
  readonly day: string | undefined
}

/** More than the API answers with. */
const sessionsMax = 400

export function sessionsOf(record: unknown, names: ReadingNames): PriceSession[] {
  const points = readField(record, 'points', names)
  if (!Array.isArray(points)) return []
  return points.slice(-sessionsMax).map((point) => ({
    close: readField(point, 'halted', names) === true ? undefined : readPrice(point, 'close', names),
    day: dayOf(readText(point, 'date', names)),
  }))
}

/** Also those of halted sessions that show one. */
export function closesOf(record: unknown, names: ReadingNames): number[] {
  const points = readField(record, 'points', names)
  if (!Array.isArray(points)) return []
  return points
    .slice(-sessionsMax)
    .map((point) => readPrice(point, 'close', names))
    .filter((close) => close !== undefined)
}

/** The day in Tehran of a date or an instant of the API; undefined where it is of another form. */
export function dayOf(text: string | undefined): string | undefined {
  const [, day, rest = ''] = /^((?:19|20|21)\d\d-\d\d-\d\d)(.*)$/s.exec(text ?? '') ?? []
  if (day === undefined || !Number.isFinite(Date.parse(`${day}T00:00:00Z`))) return undefined
  // An instant is a day only in a time zone.
  const ms = /(Z|[+-]\d\d:?\d\d)$/.test(rest) ? Date.parse(text ?? '') : Number.NaN
  return Number.isFinite(ms) ? marketDay(ms) : day
}

/** The API's dates are days of the market, wherever its readers are: at its opening it is still yesterday in Los Angeles. */
export function marketDay(ms: number): string {
  return localDay(ms, 'Asia/Tehran')
}
