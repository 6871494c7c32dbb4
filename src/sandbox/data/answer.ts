import type { ScreenRun } from '../../feed/api/screen-run.ts'
import type { EndpointPath } from '../../feed/endpoints.ts'
import { instrumentOf, instruments, type Listing } from '../market.ts'
import {
  allLetters,
  isDate,
  isSince,
  lettersOf,
  ownershipOf,
  statementsOf,
  valuationRuns,
} from './company.ts'
import { macroCatalog, macroSeries } from './macro.ts'
import { boardRow, catalogRow, indicatorsRecord, pricesRecord, profileRow } from './quotes.ts'
import type { Scene } from './scene.ts'
import { fieldCatalog, runScreen, savedScreens } from './screener.ts'

/**
 * What each endpoint of market data answers, by the path of the table; a row of the table without an answer here does not
 * compile. Lists without pages are arrays: the document does not say how they look.
 */
type DataPath = Exclude<EndpointPath, '/api/v1/alerts' | '/api/v1/alerts/deliveries'>

interface DataCall {
  readonly path: DataPath
  /** As it was written in the address. */
  readonly instrument: string | undefined
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
  readonly scene: Scene
}

type DataAnswer =
  | { readonly kind: 'rows'; readonly rows: readonly unknown[] }
  | { readonly kind: 'record'; readonly data: unknown; readonly meta?: Readonly<Record<string, unknown>> }
  | { readonly kind: 'notFound' }
  | { readonly kind: 'invalid'; readonly fields: readonly string[] }

export function answerData(call: DataCall): DataAnswer {
  if (!call.path.includes('{instrument}')) return wholeMarket[call.path as MarketPath](call)
  const instrument = instrumentOf(call.instrument)
  return instrument === undefined ? notFound : ofInstrument[call.path as InstrumentPath](instrument, call)
}

type InstrumentPath = Extract<DataPath, `${string}{instrument}${string}`>
type MarketPath = Exclude<DataPath, InstrumentPath>

const pricesDays = 120
const macroDays = 365
const notFound = { kind: 'notFound' } as const

const ofInstrument: Readonly<Record<InstrumentPath, (of: Listing, call: DataCall) => DataAnswer>> = {
  '/api/v1/instruments/{instrument}': (of, { scene }) => record(profileRow(of, scene)),
  '/api/v1/instruments/{instrument}/prices': (of, { query, scene }) =>
    record(pricesRecord(of, scene, Number(query['days'] ?? pricesDays))),
  '/api/v1/instruments/{instrument}/indicators': (of, { scene }) => record(indicatorsRecord(of, scene)),
  '/api/v1/instruments/{instrument}/statements': (of, { query, scene }) => {
    const { letter } = query
    const found = statementsOf(of, letter === undefined ? undefined : Number(letter), scene)
    return found === undefined ? notFound : record(found)
  },
  '/api/v1/instruments/{instrument}/valuations': (of, { scene }) => record(valuationRuns(scene, of)),
  '/api/v1/instruments/{instrument}/ownership': (of, { scene }) => record(ownershipOf(of, scene)),
}

const wholeMarket: Readonly<Record<MarketPath, (call: DataCall) => DataAnswer>> = {
  '/api/v1/instruments': catalog,
  '/api/v1/board': board,
  '/api/v1/screener/fields': () => record(fieldCatalog()),
  '/api/v1/screens': () => ({ kind: 'record', ...savedScreens() }),
  '/api/v1/screener/run': ({ body, scene }) => {
    const outcome = runScreen(body as ScreenRun, scene)
    if (outcome.kind === 'result') return record(outcome.data)
    return outcome.kind === 'noScreen' ? notFound : outcome
  },
  '/api/v1/filings': filings,
  '/api/v1/valuations': ({ scene }) => record(valuationRuns(scene)),
  '/api/v1/macro': ({ scene }) => record(macroCatalog(scene)),
  '/api/v1/macro/series': ({ query, scene }) => {
    const found = macroSeries(query['keys[]'] as readonly string[], Number(query['days'] ?? macroDays), scene)
    return found === undefined ? notFound : record(found)
  },
}

/** The markets and the sort keys of the catalog are the sandbox's own. */
const catalogSorts = ['id', 'symbol', 'last']

function catalog({ query, scene }: DataCall): DataAnswer {
  const sort = text(query, 'sort') ?? 'id'
  const key = sort.replace(/^-/, '')
  if (!catalogSorts.includes(key)) return { kind: 'invalid', fields: ['sort'] }
  const rows = instruments
    .filter((each) => isNamed(each, text(query, 'filter[q]')))
    .map((each) => catalogRow(each, scene))
    .filter(({ market, board: venue }) =>
      [
        [market, text(query, 'filter[market]')],
        [venue, text(query, 'filter[board]')],
      ].every(([has, wanted]) => wanted === undefined || has === wanted),
    )
  return { kind: 'rows', rows: sorted(rows, key as 'id', sort.startsWith('-')) }
}

function board({ query, scene }: DataCall): DataAnswer {
  const { group = 'all' } = query
  const rows = instruments
    .filter((each) => isNamed(each, text(query, 'search')))
    .map((each) => boardRow(each, scene))
    .filter((row) => group === 'all' || row.group === group)
    .filter(({ exchange }) => query['exchange'] === undefined || exchange === query['exchange'])
    .filter(({ industry }) => query['industry'] === undefined || industry === query['industry'])
  const sort = (text(query, 'sort') ?? 'value') as 'value'
  return { kind: 'rows', rows: sorted(rows, sort, query['direction'] !== 'asc') }
}

function filings({ query, scene }: DataCall): DataAnswer {
  const [symbol, since] = [text(query, 'symbol'), text(query, 'since')]
  if (since !== undefined && !isDate(since)) return { kind: 'invalid', fields: ['since'] }
  const one = instruments.find((each) => each.symbol === symbol || each.slug === symbol)
  const letters = symbol === undefined ? allLetters(scene) : one === undefined ? [] : lettersOf(one, scene)
  const parsedOnly = query['parsedOnly'] === true || query['parsedOnly'] === 1
  const rows = letters
    .filter(({ parsed }) => parsed || !parsedOnly)
    .filter((letter) => since === undefined || isSince(letter, since))
  return { kind: 'rows', rows }
}

function record(data: unknown): DataAnswer {
  return { kind: 'record', data }
}

function text(query: DataCall['query'], name: string): string | undefined {
  const value = query[name]
  return typeof value === 'string' ? value : undefined
}

function isNamed({ symbol, slug, persian, english }: Listing, term: string | undefined): boolean {
  const wanted = term?.toLowerCase()
  return (
    wanted === undefined ||
    [symbol, slug, persian, english].some((name) => name.toLowerCase().includes(wanted))
  )
}

function sorted<K extends string>(
  rows: readonly Readonly<Record<K, string | number>>[],
  key: K,
  descending: boolean,
): unknown[] {
  const sign = descending ? -1 : 1
  const compare = (a: string | number, b: string | number) =>
    typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'fa')
  return rows.toSorted((a, b) => sign * compare(a[key], b[key]))
}
