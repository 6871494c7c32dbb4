import type { Reading, ReadingNames } from './context.ts'
import { isMapping } from './json/json.ts'
import { JsonNumber } from './json/json-number.ts'

/**
 * Finds a field of an answer whose name the API's document does not show, by a list of names: those of the config first. A
 * field that is not there, or is of another type, is not found: no figure is better than a wrong one.
 */
export function readText(record: unknown, reading: Reading, names: ReadingNames): string | undefined {
  const value = readField(record, reading, names)
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** A text of digits is no number, since nobody knows how it is written. */
export function readNumber(record: unknown, reading: Reading, names: ReadingNames): number | undefined {
  return numberOf(readField(record, reading, names))
}

/** Nothing is traded at zero or less: an API may write so that there was no trade. */
export function readPrice(record: unknown, reading: Reading, names: ReadingNames): number | undefined {
  const price = readNumber(record, reading, names)
  return price !== undefined && price > 0 ? price : undefined
}

/** A number as large or small as a market can have, which fits into a line; -0 is 0. */
export function numberOf(value: unknown): number | undefined {
  const number = value instanceof JsonNumber ? Number(value.text) : value
  if (number === 0) return 0
  if (typeof number !== 'number') return undefined
  const size = Math.abs(number)
  return size >= sizeMin && size <= sizeMax ? number : undefined
}

const sizeMin = 1e-9
/** All money of a country is about 1e17 rials. */
const sizeMax = 1e20

export function readField(record: unknown, reading: Reading, names: ReadingNames): unknown {
  if (!isMapping(record)) return undefined
  const name = namesOf(reading, names).find((each) => Object.hasOwn(record, each))
  return name === undefined ? undefined : record[name]
}

/** A name that the config gives to one reading is no longer tried for another of the same object: `changePercent: [change]`. */
function namesOf(reading: Reading, names: ReadingNames): readonly string[] {
  const own = names[reading] ?? []
  const beside = objects.filter((each) => each.includes(reading)).flat()
  const others = new Set(beside.flatMap((each) => names[each] ?? []))
  return [...own, ...known[reading].filter((name) => !others.has(name))]
}

/** What is looked for in one object: a row of the board or of letters, a record, a session, a point of a series. */
const objects: readonly (readonly Reading[])[] = [
  ['symbol', 'slug', 'last', 'change', 'changePercent', 'unit'],
  ['symbol', 'slug', 'title'],
  ['symbol', 'slug', 'unit', 'points', 'indicators', 'rsi', 'mfi', 'cci', 'stochastic', 'williams'],
  ['date', 'close', 'halted'],
  ['date', 'value'],
]

/** In the order in which they are tried. */
const known: Readonly<Record<Reading, readonly string[]>> = {
  symbol: ['symbol', 'ticker', 'instrumentSymbol'],
  slug: ['slug', 'instrumentSlug'],
  last: ['last', 'lastPrice', 'last_price'],
  // Whether `change` is an amount or a percentage is not documented.
  change: ['change'],
  changePercent: ['changePercent', 'change_percent', 'percentChange', 'lastChangePercent'],
  unit: ['unit'],
  points: ['points', 'history', 'rows', 'sessions'],
  date: ['date', 'day', 'sessionDate', 'tradeDate'],
  close: ['close', 'closePrice', 'close_price'],
  halted: ['halted', 'isHalted', 'is_halted'],
  // Of an alert's payload: the price that it was set to.
  level: ['level', 'threshold', 'limit', 'target'],
  indicators: ['indicators', 'readings', 'values'],
  rsi: ['rsi', 'rsi14', 'rsi_14'],
  mfi: ['mfi', 'mfi14', 'mfi_14'],
  cci: ['cci', 'cci20', 'cci_20'],
  stochastic: ['stoch_k', 'stochK'],
  williams: ['willr', 'williamsR'],
  title: ['title', 'subject', 'headline', 'name'],
  value: ['value', 'close'],
}
