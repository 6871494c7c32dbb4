import type { Alert } from '../../alert/alert.ts'
import type { ReadingNames } from '../../alert/context.ts'
import { readNumber, readText } from '../../alert/readings.ts'
import { type Display, displayDirection, shortDay } from '../../alert/text/display.ts'
import { betweenParts, closed, cut, type Direction, directionMark, oneLine } from '../../alert/text/text.ts'
import { chartText, contextWordsOf } from '../../alert/text/words.ts'
import { formatted, numberText, withUnit } from '../figures.ts'
import type { Parcel } from '../sink.ts'
import { marketDay, type PriceSession, sessionsOf } from './series.ts'

/** What the price chart of an alert shows: pure data, in the reader's words. A figure that is not certain is not in it. */
export interface ChartFigure {
  readonly heading: string
  /** Of the reader's language. */
  readonly direction: Direction
  readonly sessions: readonly PriceSession[]
  /** The prices between which everything is. */
  readonly low: number
  readonly high: number
  readonly prices: readonly Label[]
  /** By the number of the session. */
  readonly days: readonly Label[]
  /** The session of the alert. */
  readonly alertAt: number | undefined
  /** The price that the alert was set to. */
  readonly level: Label | undefined
  /** For those who cannot see it. */
  readonly alt: string
}

export interface Label {
  readonly at: number
  readonly text: string
}

const sessionsMin = 5
const symbolCharsMax = 24
const weekMs = 7 * 86_400_000
/** Larger prices have no room beside the chart, and none is known. */
const priceMax = 1e15

/** undefined where the alert has no chart, or one of too few sessions. */
export function chartFigure({ alert, context }: Parcel, display: Display): ChartFigure | undefined {
  const record = context?.parts.chart?.data
  if (context === undefined || record === undefined) return undefined
  const { names } = context
  const sessions = sessionsOf(record, names)
  const closes = sessions.flatMap(({ close }) => (close === undefined ? [] : [close]))
  if (closes.length < sessionsMin || closes.some((close) => Math.abs(close) > priceMax)) return undefined
  const level = levelOf(alert, record, names, closes)
  const [lowest, highest] = [Math.min(...closes), Math.max(...closes)]
  const { low, high } = rangeOf([lowest, highest, ...(level === undefined ? [] : [level])])
  const count = `${numberText(sessions.length, display)} ${contextWordsOf(display).sessions}`
  const symbol = cut(oneLine(alert.symbol ?? alert.slug ?? ''), symbolCharsMax)
  const range = withUnit(
    `${numberText(lowest, display)}–${numberText(highest, display)}`,
    record,
    names,
    display,
  )
  const direction = displayDirection(display)
  const unit = withUnit('', record, names, display).trim()
  const mark = directionMark(direction)
  return {
    // Between marks, a number stays on its side of a Latin symbol.
    heading: [symbol, count, unit].filter((part) => part !== '').join(mark + betweenParts(direction) + mark),
    direction,
    sessions,
    low,
    high,
    prices: pricesOf(low, high, display),
    days: daysOf(sessions, display),
    alertAt: alertSession(alert, sessions),
    level: level === undefined ? undefined : { at: level, text: numberText(level, display) },
    alt: chartText(display, { symbol: closed(symbol, direction), count, range }),
  }
}

/**
 * Of the payload, whose form is not documented: `level=5200`, in the unit of the chart, and not far from its prices. An alert
 * about anything else than prices must show that it is one: by the unit, or by a last price beside it.
 */
function levelOf(
  alert: Alert,
  record: unknown,
  names: ReadingNames,
  closes: readonly number[],
): number | undefined {
  const fields = payloadFields(alert)
  const [level, last] = [readNumber(fields, 'level', names), readNumber(fields, 'last', names)]
  const [unit, charted] = [readText(fields, 'unit', names), readText(record, 'unit', names)]
  if (unit !== undefined && charted !== undefined && unit !== charted) return undefined
  const [low, high] = [Math.min(...closes), Math.max(...closes)]
  const room = Math.max(high - low, Math.abs(high) * 0.05)
  const isNear = (price = Number.NaN) => price >= low - room && price <= high + room
  const isPrice = alert.kind === 'price' || (unit !== undefined && unit === charted) || isNear(last)
  return isPrice && isNear(level) ? level : undefined
}

function payloadFields({ row }: Alert): Readonly<Record<string, unknown>> {
  const payload = row['payload']
  if (!Array.isArray(payload)) return {}
  return Object.fromEntries(
    payload.slice(0, payloadMax).flatMap((entry: unknown) => {
      const [, name, value] = typeof entry === 'string' ? (payloadField.exec(entry) ?? []) : []
      if (name === undefined || value === undefined) return []
      return [[name, /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value] as const]
    }),
  )
}

const payloadMax = 50
const payloadField = /^\s*([\p{L}\p{N}_.-]{1,60})\s*[=:]\s*(\S{1,40})\s*$/u

function rangeOf(prices: readonly number[]): { low: number; high: number } {
  const [low, high] = [Math.min(...prices), Math.max(...prices)]
  const margin = low === high ? Math.max(Math.abs(low) * 0.01, 1e-6) : (high - low) * 0.06
  return { low: low - margin, high: high + margin }
}

/** Two to five round prices. */
function pricesOf(low: number, high: number, display: Display): Label[] {
  const rough = (high - low) / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * power >= rough) ?? 10) * power
  const largest = Math.max(Math.abs(low), Math.abs(high))
  const digits = Math.min(12, Math.max(2, Math.ceil(Math.log10(largest / step)) + 2))
  const options = {
    maximumSignificantDigits: digits,
    ...(largest >= compactFrom ? ({ notation: 'compact' } as const) : {}),
  }
  const count = Math.floor(high / step) - Math.ceil(low / step) + 1
  return Array.from({ length: Math.max(0, Math.min(6, count)) }, (_, index) => {
    const at = (Math.ceil(low / step) + index) * step
    return { at, text: formatted(Number(at.toPrecision(12)), display, options) }
  })
}

const compactFrom = 10_000_000

function daysOf(sessions: readonly PriceSession[], display: Display): Label[] {
  const last = sessions.length - 1
  return [0, Math.round(last / 2), last].flatMap((at) => {
    const day = sessions[at]?.day
    return day === undefined ? [] : [{ at, text: shortDay(day, display) }]
  })
}

/** The last session up to the day of the alert, at most a week before it. */
function alertSession({ firedAtMs }: Alert, sessions: readonly PriceSession[]): number | undefined {
  if (
    firedAtMs === null ||
    !sessions.every(({ day }, at) => day !== undefined && isAfter(day, sessions[at - 1]))
  )
    return undefined
  const today = marketDay(firedAtMs)
  const at = sessions.findLastIndex(({ day = '' }) => day <= today)
  const day = sessions[at]?.day
  return day !== undefined && Date.parse(today) - Date.parse(day) <= weekMs ? at : undefined
}

function isAfter(day: string, before: PriceSession | undefined): boolean {
  return before?.day === undefined || before.day < day
}
