import type * as z from 'zod'
import { ownership } from './api/ownership.ts'
import { type Parameter, type ParameterValue, page, text } from './api/parameters.ts'
import { type ScreenRun, screenRun } from './api/screen-run.ts'
import * as shapes from './api/shapes.ts'

/**
 * The Market Data Read API, one row an endpoint: the scope that the token must have, the units that one call takes from the
 * account's daily budget, its parameters with their bounds, and its answer. Client, command and sandbox all use this table.
 * `{instrument}` is a numeric id, an exchange symbol or a slug, matched exactly.
 */
export const endpoints = [
  {
    method: 'GET',
    path: '/api/v1/instruments',
    scope: 'api:instruments',
    units: 1,
    query: {
      'filter[market]': text,
      'filter[board]': { kind: 'choice', of: ['bourse', 'fara', 'fara_base'] },
      'filter[q]': text,
      sort: text,
      page,
    },
    answer: { envelope: 'page', row: shapes.instrument },
  },
  {
    method: 'GET',
    path: '/api/v1/instruments/{instrument}',
    scope: 'api:instruments',
    units: 2,
    query: {},
    answer: { envelope: 'record', body: shapes.profile },
  },
  {
    method: 'GET',
    path: '/api/v1/board',
    scope: 'api:instruments',
    units: 1,
    query: {
      group: { kind: 'choice', of: ['all', 'equity', 'fund', 'fixed_income'] },
      exchange: { kind: 'choice', of: ['bourse', 'fara', 'fara_base'] },
      industry: text,
      search: text,
      sort: { kind: 'choice', of: ['value', 'volume', 'change', 'last'] },
      direction: { kind: 'choice', of: ['asc', 'desc'] },
      page,
    },
    answer: { envelope: 'page', row: shapes.boardRow },
  },
  {
    method: 'GET',
    path: '/api/v1/instruments/{instrument}/prices',
    scope: 'api:prices',
    units: 2,
    query: { days: { kind: 'whole', min: 20, max: 365 } },
    answer: { envelope: 'record', body: shapes.prices },
  },
  {
    method: 'GET',
    path: '/api/v1/instruments/{instrument}/indicators',
    scope: 'api:indicators',
    units: 5,
    query: {},
    answer: { envelope: 'record', body: shapes.indicators },
  },
  {
    method: 'GET',
    path: '/api/v1/screener/fields',
    scope: 'api:screener',
    units: 1,
    query: {},
    answer: { envelope: 'record', body: shapes.screenerFields },
  },
  {
    method: 'GET',
    path: '/api/v1/screens',
    scope: 'api:screener',
    units: 1,
    query: {},
    answer: { envelope: 'record', body: shapes.screens },
  },
  {
    method: 'POST',
    path: '/api/v1/screener/run',
    scope: 'api:screener',
    units: 25,
    query: {},
    body: screenRun,
    answer: { envelope: 'record', body: shapes.screenResult },
  },
  {
    method: 'GET',
    path: '/api/v1/filings',
    scope: 'api:filings',
    units: 1,
    query: { symbol: text, since: text, parsedOnly: { kind: 'flag' }, page },
    answer: { envelope: 'page', row: shapes.letter },
  },
  {
    method: 'GET',
    path: '/api/v1/instruments/{instrument}/statements',
    scope: 'api:filings',
    units: 2,
    query: { letter: { kind: 'whole', min: 1 } },
    answer: { envelope: 'record', body: shapes.statements },
  },
  {
    method: 'GET',
    path: '/api/v1/valuations',
    scope: 'api:valuations',
    units: 1,
    query: {},
    answer: { envelope: 'record', body: shapes.valuations },
  },
  {
    method: 'GET',
    path: '/api/v1/instruments/{instrument}/valuations',
    scope: 'api:valuations',
    units: 2,
    query: {},
    answer: { envelope: 'record', body: shapes.valuations },
  },
  {
    method: 'GET',
    path: '/api/v1/macro',
    scope: 'api:macro',
    units: 1,
    query: {},
    answer: { envelope: 'record', body: shapes.macroCatalog },
  },
  {
    method: 'GET',
    path: '/api/v1/macro/series',
    scope: 'api:macro',
    units: 1,
    query: {
      'keys[]': { kind: 'texts', itemsMax: 5, required: true },
      days: { kind: 'whole', min: 1, max: 3_650 },
    },
    answer: { envelope: 'record', body: shapes.macroSeries },
  },
  {
    method: 'GET',
    path: '/api/v1/instruments/{instrument}/ownership',
    scope: 'api:ownership',
    units: 5,
    query: {},
    answer: { envelope: 'record', body: ownership },
  },
  {
    method: 'GET',
    path: '/api/v1/alerts',
    scope: 'api:alerts',
    units: 1,
    query: { page },
    answer: { envelope: 'page', row: shapes.alertRule },
  },
  {
    method: 'GET',
    path: '/api/v1/alerts/deliveries',
    scope: 'api:alerts',
    units: 1,
    query: { page },
    answer: { envelope: 'page', row: shapes.alertDelivery },
  },
] as const satisfies readonly Endpoint[]

export interface Endpoint {
  readonly method: 'GET' | 'POST'
  readonly path: `/api/v1/${string}`
  readonly scope: `api:${string}`
  readonly units: number
  /** By their names on the wire. */
  readonly query: Readonly<Record<string, Parameter>>
  /** The body of a POST. */
  readonly body?: z.ZodType
  readonly answer:
    | { readonly envelope: 'page'; readonly row: z.ZodType }
    | { readonly envelope: 'record'; readonly body: z.ZodType }
}

type Row = (typeof endpoints)[number]
export type EndpointPath = Row['path']
export type TokenScope = Row['scope']
type RowOf<P extends EndpointPath> = Extract<Row, { path: P }>
export type PagePath = Extract<Row, { answer: { envelope: 'page' } }>['path']
/** How metrics and faults name an endpoint: its path without `/api/v1/`. */
export type EndpointName = EndpointPath extends infer P ? (P extends `/api/v1/${infer N}` ? N : never) : never

/** The parameters of a call of `P`. */
export type ParametersOf<P extends EndpointPath> = (P extends `${string}{instrument}${string}`
  ? { readonly instrument: string | number }
  : { readonly instrument?: never }) & { readonly query?: QueryOf<RowOf<P>['query']> } & (RowOf<P> extends {
    method: 'POST'
  }
    ? { readonly body?: ScreenRun }
    : { readonly body?: never })

type QueryOf<Q> = { readonly [N in keyof Q]?: Q[N] extends Parameter ? ParameterValue<Q[N]> : never }

/** The answer to a call of `P`: one row of its pages, or the whole body of its record. */
export type AnswerOf<P extends EndpointPath> = RowOf<P>['answer'] extends infer A
  ? A extends { row: infer S extends z.ZodType }
    ? z.output<S>
    : A extends { body: infer S extends z.ZodType }
      ? z.output<S>
      : never
  : never

/** Every path has one row in the table. */
export function endpointOf<P extends EndpointPath>(path: P): RowOf<P> {
  const found = endpoints.find((each): each is RowOf<P> => each.path === path)
  if (found === undefined) throw new Error(`there is no endpoint ${path}`)
  return found
}

/** Units that one call of `path` costs. */
export function unitsOf(path: EndpointPath): number {
  return endpointOf(path).units
}

export function nameOf(path: EndpointPath): EndpointName {
  return path.slice('/api/v1/'.length) as EndpointName
}
