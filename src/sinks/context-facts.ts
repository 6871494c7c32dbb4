import type { AlertContext, ContextName, ReadingNames } from '../alert/context.ts'
import { clockTime, type Display, displayDirection } from '../alert/display.ts'
import { numberOf, readField, readNumber, readText } from '../alert/readings.ts'
import { cut, directionMark, oneLine } from '../alert/text.ts'
import { contextWordsOf } from '../alert/words.ts'
import { closesOf } from './chart/series.ts'
import { numberText as number, percentText, signedText as signed, withUnit } from './figures.ts'

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

/** `hasPicture`: the message shows the chart, so that columns of text would only repeat it. */
export function contextFacts(
  { parts, names }: AlertContext,
  display: Display,
  hasPicture = false,
): ContextFact[] {
  const dataOf = (name: ContextName) => parts[name]?.data
  const readAt = clockTime(Date.parse(parts.price?.at ?? ''), display)
  const words = contextWordsOf(display)
  const closes = closesOf(dataOf('chart'), names)
  const all: [string, string | undefined, boolean][] = [
    [words.last, joined(lastOf(dataOf('price'), closes, names, display), readAt), true],
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

/** Between marks of the reader's direction, so that Latin names and their numbers stay together, each at its place. */
function listed(parts: readonly string[], display: Display): string {
  const mark = displayDirection(display) === 'rtl' ? directionMark('rtl') : ''
  return parts.join(`${mark} · ${mark}`)
}

/** A Persian line that starts with a Latin name still reads from right to left. */
function turned(line: string, display: Display): string {
  const direction = displayDirection(display)
  return direction === 'rtl' && /^\P{L}*\p{Script=Latin}/u.test(line) ? directionMark(direction) + line : line
}

const valueCharsMax = 120
const titleCharsMax = 80
const nameCharsMax = 24
const holdersMax = 3
/** Beyond these, as textbooks have them, a reading is worth a word. */
const usual = [
  ['rsi', 'RSI', 30, 70],
  ['mfi', 'MFI', 20, 80],
  ['stochastic', 'Stochastic', 20, 80],
  ['williams', 'Williams R', -80, -20],
  ['cci', 'CCI', -100, 100],
] as const
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
  const shown = usual.flatMap(([reading, word, low, high]) => {
    const value = readNumber(readings, reading, names) ?? readNumber(record, reading, names)
    return value === undefined || (value >= low && value <= high) ? [] : [`${word} ${number(value, display)}`]
  })
  return listed(shown, display)
}

function letterOf(letter: unknown, names: ReadingNames, display: Display): string | undefined {
  const title = readText(letter, 'title', names)
  const months = numberOf(fieldOf(letter, 'periodMonths'))
  const span =
    months !== undefined ? `${number(months, display)} ${contextWordsOf(display).months}` : undefined
  if (title === undefined) return span
  const shown = cut(oneLine(title), titleCharsMax)
  return span === undefined ? shown : `${shown} (${span})`
}

/** An object, or a list of such: the first one counts. */
function holdersOf(record: unknown, display: Display): string | undefined {
  const summary = fieldOf(Array.isArray(record) ? record[0] : record, 'summary')
  const holders = fieldOf(summary, 'holders')
  if (!Array.isArray(holders)) return undefined
  const known = holders.flatMap((holder: unknown) => {
    const [name, percent] = [fieldOf(holder, 'name'), numberOf(fieldOf(holder, 'percent'))]
    return typeof name !== 'string' || percent === undefined ? [] : [{ name, percent }]
  })
  const shown = known
    .toSorted((a, b) => b.percent - a.percent)
    .slice(0, holdersMax)
    .map(
      ({ name, percent }) => `${cut(oneLine(name), nameCharsMax)} ${percentText(percent, display, 'auto')}`,
    )
  return shown.join(display.language === 'fa' ? '، ' : ', ')
}

/** The newest run is not known, so one is shown only where it is the only one. */
function valuationOf(runs: unknown, display: Display): string | undefined {
  const list: readonly unknown[] = Array.isArray(runs) ? runs : [runs]
  const gap = list.length === 1 ? numberOf(fieldOf(list[0], 'gapNow')) : undefined
  return gap !== undefined ? signed(gap, display) : undefined
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
  return listed(series, display)
}

function fieldOf(record: unknown, name: string): unknown {
  return typeof record === 'object' && record !== null && Object.hasOwn(record, name)
    ? (record as Readonly<Record<string, unknown>>)[name]
    : undefined
}
