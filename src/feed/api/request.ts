import { foundText } from '../../alert/text/value.ts'
import {
  type Endpoint,
  type EndpointName,
  type EndpointPath,
  endpointOf,
  type endpoints,
  nameOf,
  type ParametersOf,
} from '../endpoints.ts'
import { encodeQuery, parameterProblem, textProblem } from './parameters.ts'
import { bodyProblems } from './screen-run.ts'

/** One call, ready to be sent: its parameters have been checked, so that no unit is spent on a call that the API would refuse. */
export interface ApiRequest {
  readonly endpoint: (typeof endpoints)[number]
  /** For metrics. */
  readonly name: EndpointName
  /** Path and query, encoded, to follow the base address. */
  readonly target: string
  /** JSON. */
  readonly body?: string
  /** Of an endpoint with pages. */
  readonly page: number
}

type Prepared =
  | { readonly ok: true; readonly request: ApiRequest }
  | { readonly ok: false; readonly problems: readonly string[] }

/** Parameters as they come from outside, not yet checked. */
export interface LooseParameters {
  readonly instrument?: unknown
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

/** A request of `path`, or one sentence for each parameter that is wrong. */
export function prepare<P extends EndpointPath>(path: P, parameters: ParametersOf<P>): Prepared {
  return prepareLoose(path, parameters)
}

export function prepareLoose(path: EndpointPath, parameters: LooseParameters): Prepared {
  const endpoint = endpointOf(path)
  const { instrument, query = {}, body } = parameters
  const problems = [
    ...instrumentProblems(path, instrument),
    ...queryProblems(endpoint, query),
    ...('body' in endpoint
      ? bodyProblems(body === undefined ? {} : body)
      : body === undefined
        ? []
        : [`${endpoint.method} ${path} takes no body`]),
  ]
  if (problems.length > 0) return { ok: false, problems }
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .flatMap(([name, value]) => encodeQuery(name, value))
  const filled = path.replace('{instrument}', () => encodeURIComponent(String(instrument)))
  const target = `${filled}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`
  return {
    ok: true,
    request: {
      endpoint,
      name: nameOf(path),
      target,
      ...('body' in endpoint ? { body: JSON.stringify(body === undefined ? {} : body) } : {}),
      page: typeof query['page'] === 'number' ? query['page'] : 1,
    },
  }
}

function instrumentProblems(path: EndpointPath, instrument: unknown): string[] {
  if (!path.includes('{instrument}')) return instrument === undefined ? [] : [`${path} names no instrument`]
  if (typeof instrument === 'number')
    return Number.isSafeInteger(instrument) && instrument > 0
      ? []
      : [`instrument: expected an id from 1, found ${foundText(instrument)}`]
  const problem = textProblem(instrument)
  if (problem !== undefined)
    return [`instrument: ${problem.replace('a text,', 'an id, a symbol or a slug,')}`]
  // Servers on the way read `.` and `..` as steps of the path, also those within `a/../..`, encoded or not.
  return /(?:^|[/\\])\.{1,2}(?:[/\\]|$)/.test(String(instrument))
    ? ['instrument: expected an id, a symbol or a slug, not a step of a path']
    : []
}

function queryProblems({ query }: Endpoint, given: Readonly<Record<string, unknown>>): string[] {
  const known = Object.keys(query)
  const unknown = Object.keys(given).filter((name) => !known.includes(name))
  const those = known.length === 0 ? 'there are none here' : `there are ${known.join(', ')}`
  return [
    ...unknown.map((name) => `${name}: there is no such parameter; ${those}`),
    ...Object.entries(query).flatMap(([name, parameter]) => {
      const value = given[name]
      if (value === undefined && !('required' in parameter)) return []
      const problem = parameterProblem(parameter, value)
      return problem === undefined ? [] : [`${name}: ${problem}`]
    }),
  ]
}
