import { type ContextKind, type ContextName, macroPrefix, type ReadingNames } from '../alert/context.ts'
import type { Answered } from '../feed/api/answer.ts'
import { prepare } from '../feed/api/request.ts'
import type { FeedClient } from '../feed/client.ts'
import { type EndpointPath, endpointOf, type ParametersOf } from '../feed/endpoints.ts'
import { type Instrument, instrumentOfRow, isSame } from './instrument.ts'

/**
 * How each name of context is bought: the call for one instrument, and where there is one, the call whose page serves many.
 * A page of the board has 100 instruments for the unit that a search for one costs.
 */
export interface Shelf {
  /** How much older than its alert a value may be. */
  readonly freshMs: number
  readonly single: Call<Value | undefined>
  readonly bulk?: Bulk
}

export interface Bulk {
  /** `of` is not asked. */
  readonly page: (number: number) => Call<{ readonly rows: readonly unknown[]; readonly lastPage: number }>
  readonly pagesMax: number
  /** So many instruments, counted with those that were bought alone a moment ago, are worth a page. */
  readonly from: number
  /** Whether an instrument that is on no page has nothing. */
  readonly complete: (rows: readonly unknown[], names: ReadingNames) => boolean
  /** From the rows of one instrument, in the order of the pages. */
  readonly valueOf: (rows: readonly [unknown, ...unknown[]]) => Value
}

export interface Call<T> {
  readonly units: number
  readonly scope: string
  /** Whether the API can be asked for it at all; nothing is spent where not. */
  fits(of: Instrument): boolean
  ask(feed: Pick<FeedClient, 'ask'>, of: Instrument, names: ReadingNames, signal: AbortSignal): Promise<T>
}

/** The answer as it came: a record with its `meta`, or a row of a page. */
export interface Value {
  readonly data: unknown
  readonly meta?: unknown
}

export function shelfOf(name: ContextName): Shelf {
  return isMacro(name) ? macroShelf(name.slice(macroPrefix.length)) : shelves[name]
}

export function isMacro(name: ContextName): name is Exclude<ContextName, ContextKind> {
  return name.startsWith(macroPrefix)
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** A price of long before its alert would contradict it, and so would the letter before the one that it is about. */
const priceFreshMs = 20_000
const letterFreshMs = 5_000
/** Sessions of a chart: about three months. */
const chartDays = 60
const macroDays = 30

const shelves: Readonly<Record<ContextKind, Shelf>> = {
  price: {
    freshMs: priceFreshMs,
    single: call(
      '/api/v1/board',
      ({ symbol, slug }) => ({ query: { search: symbol ?? slug ?? '' } }),
      ({ rows }, of, names) => first(rows.filter((row) => isOf(row, of, names))),
    ),
    bulk: {
      page: (page) =>
        call(
          '/api/v1/board',
          () => ({ query: { sort: 'value', direction: 'desc', page } }),
          ({ rows, lastPage }) => ({ rows, lastPage }),
        ),
      pagesMax: 10,
      from: 2,
      complete: (rows, names) => rows.every((row) => instrumentOfRow(row, names) !== undefined),
      valueOf: ([data]) => ({ data }),
    },
  },
  chart: {
    // It shows the days before; its last session may have moved since.
    freshMs: 6 * hourMs,
    single: call(
      '/api/v1/instruments/{instrument}/prices',
      (of) => ({ instrument: pathName(of), query: { days: chartDays } }),
      recordOf,
    ),
  },
  indicators: {
    freshMs: hourMs,
    single: call(
      '/api/v1/instruments/{instrument}/indicators',
      (of) => ({ instrument: pathName(of) }),
      recordOf,
    ),
  },
  filing: {
    freshMs: letterFreshMs,
    // Newest first.
    single: call(
      '/api/v1/filings',
      (of) => ({ query: { symbol: pathName(of) } }),
      ({ rows }) => first(rows),
    ),
    bulk: {
      page: (page) =>
        call(
          '/api/v1/filings',
          () => ({ query: { page } }),
          ({ rows }) => ({ rows, lastPage: 1 }),
        ),
      pagesMax: 1,
      from: 2,
      complete: () => false,
      valueOf: ([data]) => ({ data }),
    },
  },
  ownership: {
    freshMs: 24 * hourMs,
    single: call(
      '/api/v1/instruments/{instrument}/ownership',
      (of) => ({ instrument: pathName(of) }),
      recordOf,
    ),
  },
  valuation: {
    freshMs: hourMs,
    single: call(
      '/api/v1/instruments/{instrument}/valuations',
      (of) => ({ instrument: pathName(of) }),
      (answer) => (Array.isArray(answer.data) && answer.data.length === 0 ? undefined : recordOf(answer)),
    ),
    bulk: {
      // The caller's runs of all instruments, in one call without pages.
      page: () =>
        call(
          '/api/v1/valuations',
          () => ({}),
          ({ data }) => ({ rows: Array.isArray(data) ? data : [data], lastPage: 1 }),
        ),
      pagesMax: 1,
      from: 1,
      complete: (rows, names) => rows.every((row) => instrumentOfRow(row, names) !== undefined),
      valueOf: (data) => ({ data }),
    },
  },
}

/** One series a call: how an answer tells several apart is not documented. */
function macroShelf(key: string): Shelf {
  return {
    freshMs: hourMs,
    single: call('/api/v1/macro/series', () => ({ query: { 'keys[]': [key], days: macroDays } }), recordOf),
  }
}

function call<P extends EndpointPath, T>(
  path: P,
  parameters: (of: Instrument) => ParametersOf<P>,
  read: (answer: Answered<P>, of: Instrument, names: ReadingNames) => T,
): Call<T> {
  const { units, scope } = endpointOf(path)
  return {
    ...{ units, scope },
    fits: (of) => prepare(path, parameters(of)).ok,
    ask: async (feed, of, names, signal) => read(await feed.ask(path, parameters(of), signal), of, names),
  }
}

function recordOf({ data, meta }: { readonly data: unknown; readonly meta?: unknown }): Value {
  return { data, ...(meta === undefined ? {} : { meta }) }
}

function first(rows: readonly unknown[]): Value | undefined {
  return rows.length === 0 ? undefined : { data: rows[0] }
}

function isOf(row: unknown, of: Instrument, names: ReadingNames): boolean {
  const found = instrumentOfRow(row, names)
  return found !== undefined && isSame(found, of)
}

/** A slug has no letters that two spellings differ in. */
function pathName({ symbol, slug }: Instrument): string {
  return slug ?? symbol ?? ''
}
