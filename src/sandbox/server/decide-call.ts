import { matchPath, readTexts } from '../../feed/api/read-texts.ts'
import { prepareLoose } from '../../feed/api/request.ts'
import {
  type EndpointName,
  type EndpointPath,
  endpointOf,
  nameOf,
  type TokenScope,
} from '../../feed/endpoints.ts'
import type { Limits } from '../limits.ts'
import type { Refusal } from './answers.ts'

/**
 * Decides whether a call is answered, and why not, in this order: token, minute, plan, address, scope, parameters; a call
 * that costs more units than are left is refused for the budget instead. What it costs: nothing for a call without an
 * account (401), over a limit (429) or without a price (404); its price for every other one, also for those that end in
 * 403, 404, 422 or a fault.
 */
export interface SandboxToken {
  readonly value: string
  /** Default: all of them. */
  readonly scopes?: readonly string[]
  readonly state?: TokenState
  /** Whether its account's tier includes API access; default: that of the sandbox's options. */
  readonly hasPlan?: boolean
}

const allScopes: readonly TokenScope[] = [
  'api:instruments',
  'api:prices',
  'api:indicators',
  'api:screener',
  'api:filings',
  'api:valuations',
  'api:macro',
  'api:ownership',
  'api:alerts',
]

/** `other_integration`: made for the tool-server integration, so it is no API token. */
export type TokenState = 'valid' | 'expired' | 'revoked' | 'other_integration'

interface Call {
  readonly method: string
  readonly pathname: string
  readonly query: URLSearchParams
  readonly authorization: string | undefined
  /** Of a POST: the parsed JSON; undefined where it was none. */
  readonly body?: { readonly json: unknown } | undefined
}

export type CallDecision =
  | ({
      readonly ok: true
      readonly units: number
      readonly endpoint: EndpointName
      readonly page: number
    } & Asked)
  | { readonly ok: false; readonly units: number; readonly refusal: Refusal }

/** The call, with every parameter checked. */
interface Asked {
  readonly path: EndpointPath
  readonly instrument: string | undefined
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
}

export function decideCall(
  call: Call,
  account: { readonly tokens: readonly SandboxToken[]; readonly hasPlan: boolean; readonly limits: Limits },
  nowMs: number,
): CallDecision {
  const bearer = /^Bearer (.+)$/i.exec(call.authorization ?? '')?.[1]
  const token = account.tokens.find(({ value }) => value === bearer)
  if (!token || (token.state ?? 'valid') !== 'valid')
    return refuse(0, 401, 'unauthenticated', 'Unauthenticated.')
  const place = account.limits.takeRequest(nowMs)
  if (!place.ok)
    return { ok: false, units: 0, refusal: tooMany('Too many requests.', String(place.retryAfterS)) }
  const asked = matchPath(call.pathname)
  const price =
    asked !== undefined && endpointOf(asked.path).method === call.method ? endpointOf(asked.path) : undefined
  if (!(token.hasPlan ?? account.hasPlan))
    return charge(refuse(price?.units ?? 1, 403, 'plan_required', 'Your plan does not include API access.'))
  if (!price || !asked) return refuse(0, 404, 'not_found', 'Nothing is held under this address.')
  const { units, scope } = price
  if (!(token.scopes ?? allScopes).includes(scope))
    return charge(refuse(units, 403, 'scope_required', `This token lacks the scope ${scope}.`))
  const { path, instrument } = asked
  const given = readTexts(path, call.query)
  const known = Object.fromEntries(Object.entries(given).flatMap((each) => parameterOf(each, price.query)))
  const body = call.method === 'POST' ? call.body?.json : undefined
  const isReadable = call.method !== 'POST' || call.body !== undefined
  const prepared = prepareLoose(path, { instrument, query: known, body })
  const problems = [...(isReadable ? [] : ['body: ']), ...(prepared.ok ? [] : prepared.problems)]
  // No instrument can have such a name, so none is found by it.
  if (problems.some((problem) => problem.startsWith('instrument:'))) return charge(notHeld(units))
  if (problems.length > 0) return charge(invalid(units, problems.map(fieldOf)))
  const page = Number(known['page'] ?? 1)
  return charge({ ok: true, units, endpoint: nameOf(path), page, path, instrument, query: known, body })

  function charge(decision: CallDecision): CallDecision {
    const paid = account.limits.takeUnits(decision.units, nowMs)
    if (paid.ok) return decision
    const { retryAfterS } = paid
    const refusal = {
      ...tooMany('The daily budget is spent.', String(retryAfterS)),
      detail: { retryAfter: retryAfterS },
    }
    return { ok: false, units: 0, refusal }
  }
}

/** None where the endpoint has no such parameter; `days[]` is a list in the place of `days`, which the check refuses. */
function parameterOf([name, value]: [string, unknown], query: object): [string, unknown][] {
  if (Object.hasOwn(query, name)) return [[name, value]]
  const ofOne = name.replace(/\[[^\]]*\]$/, '')
  return Object.hasOwn(query, ofOne) ? [[ofOne, [value]]] : []
}

/** `page` as a whole number from 1; 1 when it is not given; undefined when it is anything else. */
export function pageNumber(query: URLSearchParams): number | undefined {
  const given = query.getAll('page')
  if (given.length === 0) return 1
  const [text = ''] = given
  const page = Number(text)
  return given.length === 1 && /^\d+$/.test(text) && page >= 1 && Number.isSafeInteger(page)
    ? page
    : undefined
}

export function notHeld(units: number): Extract<CallDecision, { ok: false }> {
  return refuse(units, 404, 'not_found', 'Nothing is held under this name.')
}

export function invalid(units: number, fields: readonly string[]): Extract<CallDecision, { ok: false }> {
  return refuse(units, 422, 'invalid_request', 'A parameter is invalid.', { fields: [...new Set(fields)] })
}

/** `screen.conditions.3: expected …` is about `screen`. */
function fieldOf(problem: string): string {
  const place = problem.slice(0, problem.indexOf(':'))
  return place === 'the body' ? 'body' : (place.split('.')[0] ?? place)
}

function refuse(
  units: number,
  status: number,
  code: string,
  message: string,
  detail?: Readonly<Record<string, unknown>>,
): Extract<CallDecision, { ok: false }> {
  return { ok: false, units, refusal: { status, code, message, ...(detail === undefined ? {} : { detail }) } }
}

function tooMany(message: string, retryAfter: string): Refusal {
  return { status: 429, code: 'rate_limited', message, retryAfter }
}
