import type { AlertContext, ContextName, ReadingNames } from '../alert/context.ts'
import { clockTime, type Display } from '../alert/display.ts'
import { readField, readNumber, readText } from '../alert/readings.ts'
import { cut, oneLine } from '../alert/text.ts'
import { contextWordsOf, unitWord } from '../alert/words.ts'

/**
 * What people are shown of an alert's context, each with its label. A figure whose field is not found is left out, and one
 * whose unit is not known has none: rial and toman differ by ten. Texts of it are from outside, like headlines.
 */
export interface ContextFact {
  readonly word: string
  readonly value: string
  /** Also where several alerts share a message, without its label. */
  readonly inList: boolean
}

export function contextFacts({ parts, names }: AlertContext, display: Display): ContextFact[] {
  const dataOf = (name: ContextName) => parts[name]?.data
  const readAt = clockTime(Date.parse(parts.price?.at ?? ''), display)
  const words = contextWordsOf(display)
  const closes = closesOf(dataOf('chart'), names)
  const all: [string, string | undefined, boolean][] = [
    [words.last, joined(lastOf(dataOf('price'), closes, names, display), readAt), true],
    [
      `${number(closes.length, display)} ${words.sessions}`,
      chartOf(closes, dataOf('chart'), names, display),
      true,
    ],
    [words.rsi, rsiOf(dataOf('indicators'), names, display), false],
    [words.letter, letterOf(dataOf('filing'), names, display), false],
    [words.holders, holdersOf(dataOf('ownership'), display), false],
    [words.valuation, valuationOf(dataOf('valuation'), display), false],
    [words.macro, macroOf(parts, names, display), false],
  ]
  return all.flatMap(([word, value, inList]) => {
    const line = oneLine(value ?? '')
    return line === '' ? [] : [{ word, value: cut(line, valueCharsMax), inList }]
  })
}

const valueCharsMax = 120
const titleCharsMax = 80
const nameCharsMax = 24
const holdersMax = 3
/** RSI beyond these is worth a word. */
const rsiUsual = { low: 30, high: 70 } as const
const columns = '▁▂▃▄▅▆▇█'
const columnsMax = 20
const closesMin = 5

/** A message may go out long after its price was read. */
function joined(last: string | undefined, readAt: string | undefined): string | undefined {
  return last === undefined || readAt === undefined ? last : `${last} · ${readAt}`
}

function lastOf(
  row: unknown,
  closes: readonly number[],
  names: ReadingNames,
  display: Display,
): string | undefined {
  const last = readNumber(row, 'last', names)
  if (last === undefined) return undefined
  const percent = readNumber(row, 'changePercent', names) ?? changeSince(closes, last)
  const shown = withUnit(number(last, display), row, names, display)
  if (percent !== undefined) return `${shown} (${percentText(percent, display)})`
  // Whether the API's change is an amount or a percentage is not known: it is shown as it is.
  const change = readNumber(row, 'change', names)
  return change === undefined
    ? shown
    : `${shown} (${contextWordsOf(display).change} ${signed(change, display)})`
}

/** In percent, where the last price is the last close of the history: then the one before is that of the session before. */
function changeSince(closes: readonly number[], last: number): number | undefined {
  const [before, latest] = closes.slice(-2)
  if (before === undefined || latest !== last || before <= 0) return undefined
  return (latest / before - 1) * 100
}

/** Oldest first, as the API has them. */
function closesOf(record: unknown, names: ReadingNames): number[] {
  const points = readField(record, 'points', names)
  if (!Array.isArray(points)) return []
  const closes = points.map((point) => readNumber(point, 'close', names))
  const known = closes.filter((close) => close !== undefined)
  return known.length === closes.length ? known : []
}

function chartOf(
  closes: readonly number[],
  record: unknown,
  names: ReadingNames,
  display: Display,
): string | undefined {
  if (closes.length < closesMin) return undefined
  const [low, high] = [Math.min(...closes), Math.max(...closes)]
  const step = Math.max(1, closes.length / columnsMax)
  const shown = Array.from({ length: Math.min(columnsMax, closes.length) }, (_, column) => {
    const close = closes[Math.min(closes.length - 1, Math.round((column + 1) * step) - 1)] ?? low
    const place = high === low ? 0 : ((close - low) / (high - low)) * (columns.length - 1)
    return columns[Math.round(place)]
  })
  const range = withUnit(`${number(low, display)}–${number(high, display)}`, record, names, display)
  // Between two marks the columns stay in their order in every text.
  return `${leftToRight}${shown.join('')}${leftToRight} ${range}`
}

const leftToRight = '\u200e'

function rsiOf(record: unknown, names: ReadingNames, display: Display): string | undefined {
  const rsi =
    readNumber(readField(record, 'indicators', names), 'rsi', names) ?? readNumber(record, 'rsi', names)
  const usual = rsi === undefined || (rsi >= rsiUsual.low && rsi <= rsiUsual.high)
  return usual ? undefined : number(rsi, display)
}

function letterOf(letter: unknown, names: ReadingNames, display: Display): string | undefined {
  const title = readText(letter, 'title', names)
  const months = fieldOf(letter, 'periodMonths')
  const span =
    typeof months === 'number' ? `${number(months, display)} ${contextWordsOf(display).months}` : undefined
  if (title === undefined) return span
  const shown = cut(oneLine(title), titleCharsMax)
  return span === undefined ? shown : `${shown} (${span})`
}

/** An object, or a list of such: the first one counts. */
function holdersOf(record: unknown, display: Display): string | undefined {
  const summary = fieldOf(Array.isArray(record) ? record[0] : record, 'summary')
  const holders = fieldOf(summary, 'holders')
  if (!Array.isArray(holders)) return undefined
  const shown = holders.slice(0, holdersMax).flatMap((holder: unknown) => {
    const [name, percent] = [fieldOf(holder, 'name'), fieldOf(holder, 'percent')]
    if (typeof name !== 'string' || typeof percent !== 'number') return []
    return [`${cut(oneLine(name), nameCharsMax)} ${percentText(percent, display, 'auto')}`]
  })
  return shown.join(display.language === 'fa' ? '، ' : ', ')
}

/** The newest run is not known, so one is shown only where it is the only one. */
function valuationOf(runs: unknown, display: Display): string | undefined {
  const list: readonly unknown[] = Array.isArray(runs) ? runs : [runs]
  const gap = list.length === 1 ? fieldOf(list[0], 'gapNow') : undefined
  return typeof gap === 'number' ? signed(gap, display) : undefined
}

function macroOf(parts: AlertContext['parts'], names: ReadingNames, display: Display): string | undefined {
  const series = Object.entries(parts).flatMap(([name, part]) => {
    if (!name.startsWith('macro:')) return []
    const data: unknown = Array.isArray(part?.data) ? part.data[0] : part?.data
    const points: unknown =
      readField(data, 'points', names) ?? (Array.isArray(part?.data) ? part.data : undefined)
    const value = readNumber(Array.isArray(points) ? points.at(-1) : undefined, 'value', names)
    if (value === undefined) return []
    return [
      `${cut(name.slice('macro:'.length), nameCharsMax)} ${withUnit(number(value, display), data, names, display)}`,
    ]
  })
  return series.join(' · ')
}

function withUnit(text: string, record: unknown, names: ReadingNames, display: Display): string {
  const unit = readText(record, 'unit', names)
  return unit === undefined ? text : `${text} ${unitWord(cut(oneLine(unit), nameCharsMax), display)}`
}

function fieldOf(record: unknown, name: string): unknown {
  return typeof record === 'object' && record !== null && Object.hasOwn(record, name)
    ? (record as Readonly<Record<string, unknown>>)[name]
    : undefined
}

function number(value: number, display: Display): string {
  return value.toLocaleString(localeOf(display), { maximumSignificantDigits: 12 })
}

function signed(value: number, display: Display): string {
  return value.toLocaleString(localeOf(display), { maximumFractionDigits: 2, signDisplay: 'exceptZero' })
}

function percentText(
  percent: number,
  display: Display,
  signDisplay: 'exceptZero' | 'auto' = 'exceptZero',
): string {
  const options = { style: 'percent', maximumFractionDigits: 2, signDisplay } as const
  return (percent / 100).toLocaleString(localeOf(display), options)
}

function localeOf({ language }: Display): string {
  return language === 'fa' ? 'fa-IR' : 'en-US'
}
