import type { AlertContext, ContextName, ReadingNames } from '../alert/context.ts'
import { property } from '../alert/json/json.ts'
import { numberOf, readField, readNumber, readPrice, readText } from '../alert/readings.ts'
import { clockTime, type Display, displayDirection, localDay, shortDay } from '../alert/text/display.ts'
import { betweenParts, closed, cut, directionMark, directionOf, oneLine } from '../alert/text/text.ts'
import { contextWordsOf } from '../alert/text/words.ts'
import { closesOf, dayOf, marketDay, sessionsOf } from './chart/series.ts'
import { numberText as number, percentText, roundedText, withUnit } from './figures.ts'

/**
 * What people are shown of an alert's context, each with its label. A figure whose field is not found is left out, and one
 * whose unit is not known has none: rial and toman differ by ten. Texts of it are from outside, like headlines.
 */
interface ContextFact {
  readonly word: string
  readonly value: string
  /** Also where several alerts share a message, without its label. */
  readonly inList: boolean
}

interface FactOptions {
  /** The message shows the chart, so that columns of text would only repeat it. */
  readonly hasPicture?: boolean | undefined
  /** null: not known. */
  readonly firedAtMs?: number | null
}

export function contextFacts(
  { parts, names }: AlertContext,
  display: Display,
  { hasPicture = false, firedAtMs = null }: FactOptions = {},
): ContextFact[] {
  const dataOf = (name: ContextName) => parts[name]?.data
  const readMs = Date.parse(parts.price?.at ?? '')
  const words = contextWordsOf(display)
  const closes = closesOf(dataOf('chart'), names)
  const isComparable = unitsAgree(dataOf('price'), dataOf('chart'), names)
  const percent = isComparable ? changeSince(dataOf('chart'), readMs, names) : undefined
  const last = lastOf(dataOf('price'), percent, names, display)
  const all: [string, string | undefined, boolean][] = [
    [words.last, joined(last, readTime(readMs, firedAtMs, display), display), true],
    [
      `${number(closes.length, display)} ${words.sessions}`,
      hasPicture ? undefined : columnsOf(closes, dataOf('chart'), names, display),
      true,
    ],
    [words.unusual, unusualOf(dataOf('indicators'), names, display), false],
    [words.letter, letterOf(dataOf('filing'), names, display), false],
    [words.holders, holdersOf(dataOf('ownership'), display), false],
    [words.valuation, valuationOf(dataOf('valuation'), display), false],
    [words.macro, macroOf(parts, names, display), false],
  ]
  return all.flatMap(([word, value, inList]) => {
    const line = oneLine(value ?? '')
    return line === '' ? [] : [{ word, value: cut(turned(line, display), valueCharsMax), inList }]
  })
}

/**
 * Between marks of the reader's direction, so that Latin names and their numbers stay together, each at its place. The first part
 * that has no room is left out with all after it: a figure that is cut off would be read as another one.
 */
function listed(parts: readonly string[], display: Display): string {
  const direction = displayDirection(display)
  const mark = direction === 'rtl' ? directionMark('rtl') : ''
  const between = mark + betweenParts(direction) + mark
  let room = valueCharsMax - '…'.length - mark.length
  const fitting = parts.filter((part) => {
    room -= part.length + between.length
    return room >= 0
  })
  return [...fitting, ...(fitting.length < parts.length ? ['…'] : [])].join(between)
}

/**
 * A line reads in the reader's direction, also where it starts with a name of the other one, or has no letters: digits are shown
 * from left to right, and so is what stands before a Persian sign, which has a mark of that direction. Columns are to be so.
 */
function turned(line: string, display: Display): string {
  const direction = displayDirection(display)
  if (line.startsWith(leftToRight)) return line
  const [first = leftToRight] = /[\p{L}\ufdfc\u200e]/u.exec(line) ?? []
  return directionOf(first) === direction ? line : directionMark(direction) + line
}

function named(name: string, charsMax: number, display: Display): string {
  return closed(cut(oneLine(name), charsMax), displayDirection(display))
}

const valueCharsMax = 120
const titleCharsMax = 80
const nameCharsMax = 24
const holdersMax = 3
/** The usual range of each reading, as in textbooks, then its scale. Shown is a reading outside its range, but not one outside its scale. */
const usual = [
  ['rsi', 'RSI', 30, 70, 0, 100],
  ['mfi', 'MFI', 20, 80, 0, 100],
  ['stochastic', 'Stochastic', 20, 80, 0, 100],
  ['williams', 'Williams R', -80, -20, -100, 0],
  ['cci', 'CCI', -100, 100, -1e6, 1e6],
] as const
const columns = '▁▂▃▄▅▆▇█'
const columnsMax = 20
const closesMin = 5

/** A message may go out long after its price was read, and that was perhaps not on the day of the alert. */
function joined(last: string | undefined, readAt: string | undefined, display: Display): string | undefined {
  if (last === undefined || readAt === undefined) return last
  return `${last}${betweenParts(displayDirection(display))}${readAt}`
}

function readTime(readMs: number, firedAtMs: number | null, display: Display): string | undefined {
  const time = clockTime(readMs, display)
  if (time === undefined || firedAtMs === null) return time
  const day = localDay(readMs, display.timeZone)
  return day === localDay(firedAtMs, display.timeZone) ? time : `${shortDay(day, display)} ${time}`
}

function lastOf(
  row: unknown,
  since: ReturnType<typeof changeSince>,
  names: ReadingNames,
  display: Display,
): string | undefined {
  const last = readPrice(row, 'last', names)
  if (last === undefined) return undefined
  // Whether the API's change is an amount or a percentage is not known.
  const change = readNumber(row, 'change', names)
  const percent = readNumber(row, 'changePercent', names) ?? percentOf(last, change, since)
  const shown = withUnit(number(last, display), row, names, display)
  if (percent !== undefined) return `${shown} (${percentText(percent, display)})`
  return change === undefined
    ? shown
    : `${shown} (${contextWordsOf(display).change} ${roundedText(change, display, 'exceptZero')})`
}

/**
 * The change in percent since the close of the session before, by the history; undefined unless the last price is the last
 * close of the history. The change that the API shows must agree with it; without one, the last close must be of today.
 */
function percentOf(
  last: number,
  change: number | undefined,
  since: ReturnType<typeof changeSince>,
): number | undefined {
  if (since === undefined || since.latest !== last) return undefined
  if (change === undefined) return since.isToday ? since.percent : undefined
  const isSame =
    Math.abs(change - since.percent) <= percentRounding || Math.abs(change - since.amount) <= last * 1e-6
  return isSame ? since.percent : undefined
}

/** Rial and toman differ by ten: equal numbers of both are not equal prices. */
function unitsAgree(row: unknown, record: unknown, names: ReadingNames): boolean {
  const [own, other] = [readText(row, 'unit', names), readText(record, 'unit', names)]
  return own === undefined || other === undefined || own === other
}

/** Of a percentage with two digits after its point. */
const percentRounding = 0.006

function changeSince(record: unknown, readMs: number, names: ReadingNames) {
  const [before, latest] = closesOf(record, names).slice(-2)
  if (before === undefined || latest === undefined) return undefined
  const { close, day } = sessionsOf(record, names).at(-1) ?? {}
  const isToday = close === latest && Number.isFinite(readMs) && day === marketDay(readMs)
  return { latest, amount: latest - before, percent: (latest / before - 1) * 100, isToday }
}

function columnsOf(
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

function unusualOf(record: unknown, names: ReadingNames, display: Display): string {
  const readings = readField(record, 'indicators', names)
  const shown = usual.flatMap(([reading, word, low, high, least, most]) => {
    const value = readNumber(readings, reading, names) ?? readNumber(record, reading, names)
    if (value === undefined || value < least || value > most || (value >= low && value <= high)) return []
    return [`${word} ${roundedText(value, display)}`]
  })
  return listed(shown, display)
}

function letterOf(letter: unknown, names: ReadingNames, display: Display): string | undefined {
  const title = readText(letter, 'title', names)
  const months = numberOf(property(letter, 'periodMonths'))
  const span =
    months !== undefined && months > 0
      ? `${number(months, display)} ${contextWordsOf(display).months}`
      : undefined
  if (title === undefined) return span
  const shown = named(title, titleCharsMax, display)
  return span === undefined ? shown : `${shown} (${span})`
}

function holdersOf(record: unknown, display: Display): string | undefined {
  const summary = newestSummary(record)
  const holders = property(summary, 'holders')
  if (!Array.isArray(holders)) return undefined
  const known = holders.flatMap((holder: unknown) => {
    const [name, percent] = [property(holder, 'name'), numberOf(property(holder, 'percent'))]
    const isShare = percent !== undefined && percent >= 0 && percent <= 100
    return typeof name !== 'string' || !isShare ? [] : [{ name, percent }]
  })
  const shown = known
    .toSorted((a, b) => b.percent - a.percent)
    .slice(0, holdersMax)
    .map(
      ({ name, percent }) => `${named(name, nameCharsMax, display)} ${percentText(percent, display, 'auto')}`,
    )
  return shown.join(display.language === 'fa' ? '، ' : ', ')
}

/** Of a record, or of a list of such: of several, one must be newer than all others. */
function newestSummary(records: unknown): unknown {
  const list: readonly unknown[] = Array.isArray(records) ? records : [records]
  const summaries = list.map((record) => property(record, 'summary'))
  if (summaries.length === 1) return summaries[0]
  const dated = summaries.flatMap((summary) => {
    const asOf = property(summary, 'asOf')
    const day = dayOf(typeof asOf === 'string' ? asOf : undefined)
    return day === undefined ? [] : [{ summary, day }]
  })
  const [newest, next] = dated.toSorted((a, b) => (a.day < b.day ? 1 : -1))
  return dated.length === summaries.length && newest?.day !== next?.day ? newest?.summary : undefined
}

/** The newest run is not known, so one is shown only where it is the only one. */
function valuationOf(runs: unknown, display: Display): string | undefined {
  const list: readonly unknown[] = Array.isArray(runs) ? runs : [runs]
  const gap = list.length === 1 ? numberOf(property(list[0], 'gapNow')) : undefined
  return gap !== undefined ? roundedText(gap, display, 'exceptZero') : undefined
}

function macroOf(parts: AlertContext['parts'], names: ReadingNames, display: Display): string | undefined {
  const series = Object.entries(parts).flatMap(([name, part]) => {
    if (!name.startsWith('macro:') || part === undefined) return []
    const key = name.slice('macro:'.length)
    const { points, record } = seriesOf(part.data, key, names)
    const point: unknown = Array.isArray(points) ? points.at(-1) : undefined
    const value = readNumber(point, 'value', names)
    if (value === undefined) return []
    const day = dayOf(readText(point, 'date', names))
    const isOld = day !== undefined && day !== marketDay(Date.parse(part.at))
    const shown = withUnit(number(value, display), record, names, display)
    return [`${named(key, nameCharsMax, display)} ${shown}${isOld ? ` (${shortDay(day, display)})` : ''}`]
  })
  return listed(series, display)
}

/** The points of the series of this key: in a record, in a list of such, or as they are. */
function seriesOf(data: unknown, key: string, names: ReadingNames) {
  const list: readonly unknown[] = Array.isArray(data) ? data : [data]
  const records = list.filter((record) => Array.isArray(readField(record, 'points', names)))
  if (records.length === 0) return { points: data, record: undefined }
  const named = records.find((record) => property(record, 'key') === key)
  const [only] = records
  const isOnly = records.length === 1 && typeof property(only, 'key') !== 'string'
  const record = named ?? (isOnly ? only : undefined)
  return { points: readField(record, 'points', names), record }
}
