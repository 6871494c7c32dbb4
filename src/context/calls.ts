import { type ContextKind, type ContextName, macroPrefix, type ReadingNames } from '../alert/context.ts'
import { property } from '../alert/json/json.ts'
import type { AnsweredExactly } from '../feed/api/answer.ts'
import { prepare } from '../feed/api/request.ts'
import type { FeedClient } from '../feed/client.ts'
import { type EndpointPath, endpointOf, type ParametersOf } from '../feed/endpoints.ts'
import { FeedError } from '../feed/errors.ts'
import { compare, findOf, type Instrument, instrumentOfRow } from './instrument.ts'

/**
 * The calls that buy one name of context: for one instrument, and where the API has such a call, for a page of many.
 * A page of the board lists 100 instruments and costs one unit, as much as a search for one.
 */
export interface ContextCalls {
  /** How much older than its alert a value may be. */
  readonly freshMs: number
  readonly single: Call<Single>
  /** Where `single` is a search that has pages: the later ones. */
  readonly laterPage?: (number: number) => Call<Single>
  readonly bulk?: Bulk
}

/** undefined: the API has nothing of the instrument. */
export interface PageOfMany {
  readonly rows: readonly unknown[]
  readonly lastPage: number
}

type Single = LookupAnswer | 'on_later_page' | undefined

export interface Bulk {
  /** These calls ignore the instrument that they are given. */
  readonly page: (number: number) => Call<PageOfMany>
  /** From this number of instruments on, with those bought by their own call a moment ago, a page is bought instead. */
  readonly from: number
  /** Whether the API has nothing of an instrument that is on no page. */
  readonly complete: (rows: readonly unknown[], names: ReadingNames) => boolean
  /** From the rows of one instrument, in the order of the pages. */
  readonly valueOf: (rows: readonly [unknown, ...unknown[]]) => LookupAnswer
}

export interface Call<T> {
  readonly units: number
  readonly scope: string
  /** Whether the API accepts such a question; if not, nothing is spent. */
  fits(of: Instrument): boolean
  ask(
    feed: Pick<FeedClient, 'askExactly'>,
    of: Instrument,
    names: ReadingNames,
    signal: AbortSignal,
  ): Promise<T>
}

/** The answer as it came: a record with its `meta`, or a row of a page. */
export interface LookupAnswer {
  readonly data: unknown
  readonly meta?: unknown
}

export function callsOf(name: ContextName): ContextCalls {
  return isMacro(name) ? macroCalls(name.slice(macroPrefix.length)) : callsOfKinds[name]
}

export function isMacro(name: ContextName): name is Exclude<ContextName, ContextKind> {
  return name.startsWith(macroPrefix)
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** A price from long before its alert would contradict the alert; so would the filing before the one that it is about. */
const priceFreshMs = 20_000
const filingFreshMs = 5_000
/** Sessions of a chart: about three months. */
const chartDays = 60
/** A monthly series shows its latest month weeks after the end of it, and the one that is overdue later still. */
const macroDays = 120

const callsOfKinds: Readonly<Record<ContextKind, ContextCalls>> = {
  price: {
    freshMs: priceFreshMs,
    single: boardSearch(1),
    laterPage: boardSearch,
    bulk: {
      page: (page) =>
        call(
          '/api/v1/board',
          () => ({ query: { sort: 'value', direction: 'desc', page } }),
          ({ rows, lastPage }, _of, names) => ({ rows: namedRows(rows, names), lastPage }),
        ),
      // Three searches at once take as long as one; pages come one after the other, and there may be as many.
      from: 4,
      complete: (rows, names) => rows.every((row) => instrumentOfRow(row, names) !== undefined),
      valueOf: ([data]) => ({ data }),
    },
  },
  chart: {
    // Its bars are days; only the last one can have changed since.
    freshMs: 6 * hourMs,
    single: call(
      '/api/v1/instruments/{instrument}/prices',
      (of) => ({ instrument: pathName(of), query: { days: chartDays } }),
      ownRecord,
    ),
  },
  indicators: {
    freshMs: hourMs,
    single: call(
      '/api/v1/instruments/{instrument}/indicators',
      (of) => ({ instrument: pathName(of) }),
      ownRecord,
    ),
  },
  filing: {
    freshMs: filingFreshMs,
    // Newest first.
    single: call(
      '/api/v1/filings',
      // By symbol or slug, never by id.
      (of) => ({ query: { symbol: pathName(of) || (of.slug ?? of.symbol ?? '') } }),
      ({ rows }, of, names) => first(rows.filter((row) => !isOther(row, of, names))),
    ),
    bulk: {
      page: (page) =>
        call(
          '/api/v1/filings',
          () => ({ query: { page } }),
          ({ rows }) => ({ rows, lastPage: 1 }),
        ),
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
      ownRecord,
    ),
  },
  valuation: {
    freshMs: hourMs,
    single: call(
      '/api/v1/instruments/{instrument}/valuations',
      (of) => ({ instrument: pathName(of) }),
      (answer, of, names) =>
        Array.isArray(answer.data) && answer.data.length === 0 ? undefined : ownRecord(answer, of, names),
    ),
    bulk: {
      // The account's own valuations of all instruments, in one answer without pages.
      page: () =>
        call(
          '/api/v1/valuations',
          () => ({}),
          ({ data }) => ({ rows: Array.isArray(data) ? data : [data], lastPage: 1 }),
        ),
      from: 1,
      complete: (rows, names) => rows.every((row) => instrumentOfRow(row, names) !== undefined),
      valueOf: (data) => ({ data }),
    },
  },
}

/** A search finds every row that contains the term: options on a share are called after it. The share is traded most. */
function boardSearch(page: number): Call<Single> {
  return call(
    '/api/v1/board',
    ({ symbol, slug }) => ({
      query: {
        search: symbol ?? slug ?? '',
        sort: 'value',
        direction: 'desc',
        ...(page === 1 ? {} : { page }),
      },
    }),
    ({ rows, lastPage }, of, names) => {
      const data = findOf(namedRows(rows, names), of, (row) => instrumentOfRow(row, names))
      return data !== undefined ? { data } : page < lastPage ? 'on_later_page' : undefined
    },
  )
}

/** Where none of them names an instrument in a field that is known, they do not show that the API has nothing of one. */
function namedRows(rows: readonly unknown[], names: ReadingNames): readonly unknown[] {
  if (rows.length === 0 || rows.some((row) => instrumentOfRow(row, names) !== undefined)) return rows
  throw new FeedError(
    'bad_shape',
    'no row of the board names its instrument in a known field; context.names of the source adds names',
  )
}

/** One series a call: the documentation does not say how an answer with several names them. */
function macroCalls(key: string): ContextCalls {
  return {
    freshMs: hourMs,
    single: call(
      '/api/v1/macro/series',
      () => ({ query: { 'keys[]': [key], days: macroDays } }),
      (answer) => (isOtherSeries(answer.data, key) ? undefined : recordOf(answer)),
    ),
  }
}

function isOtherSeries(data: unknown, key: string): boolean {
  const records: readonly unknown[] = Array.isArray(data) ? data : [data]
  const keys = records.map((record) => property(record, 'key')).filter((each) => typeof each === 'string')
  return keys.length > 0 && !keys.includes(key)
}

function call<P extends EndpointPath, T>(
  path: P,
  parameters: (of: Instrument) => ParametersOf<P>,
  read: (answer: AnsweredExactly<P>, of: Instrument, names: ReadingNames) => T,
): Call<T> {
  const { units, scope } = endpointOf(path)
  return {
    units,
    scope,
    fits: (of) => prepare(path, parameters(of)).ok,
    ask: async (feed, of, names, signal) =>
      read(await feed.askExactly(path, parameters(of), signal), of, names),
  }
}

function recordOf({ data, meta }: { readonly data: unknown; readonly meta?: unknown }): LookupAnswer {
  return { data, ...(meta === undefined ? {} : { meta }) }
}

function first(rows: readonly unknown[]): LookupAnswer | undefined {
  return rows.length === 0 ? undefined : { data: rows[0] }
}

/** undefined where the answer, or one of several records in it, names another instrument. */
function ownRecord(answer: { readonly data: unknown }, of: Instrument, names: ReadingNames) {
  const records: readonly unknown[] = Array.isArray(answer.data) ? answer.data : [answer.data]
  return records.some((record) => isOther(record, of, names)) ? undefined : recordOf(answer)
}

function isOther(row: unknown, of: Instrument, names: ReadingNames): boolean {
  const found = instrumentOfRow(row, names)
  return found !== undefined && compare(found, of) === 'other'
}

/**
 * The slug where there is one: unlike a symbol it has one spelling only. One of digits alone could be read as the id of another
 * instrument, and not every answer names its own: where there is no other name, nothing is asked.
 */
function pathName({ symbol, slug }: Instrument): string {
  return [slug, symbol].find((name) => name !== undefined && !/^\d+$/.test(name)) ?? ''
}
