import type { Refusal } from './answers.ts'
import type { Limits } from './limits.ts'

/**
 * Who may ask what, in the order in which a call is refused: token, minute, plan, address, scope, parameters; what would
 * cost units that are not left is refused for the budget instead. What it costs: nothing for a call without an account
 * (401), over a limit (429) or without a price (404); a unit for every other one, also for those that end in 403, 422 or
 * a fault.
 */
export interface SandboxToken {
  readonly value: string
  /** Default: `api:alerts` alone. */
  readonly scopes?: readonly string[]
  readonly state?: TokenState
}

/** `other_integration`: minted for the tool-server integration, and so no API token. */
export type TokenState = 'valid' | 'expired' | 'revoked' | 'other_integration'

export type Endpoint = 'alerts/deliveries' | 'alerts'

export interface Call {
  readonly method: string
  readonly pathname: string
  readonly query: URLSearchParams
  readonly authorization: string | undefined
}

export type Verdict =
  | { readonly ok: true; readonly units: number; readonly endpoint: Endpoint; readonly page: number }
  | { readonly ok: false; readonly units: number; readonly refusal: Refusal }

const prices: Readonly<Record<string, { endpoint: Endpoint; units: number; scope: string }>> = {
  '/api/v1/alerts/deliveries': { endpoint: 'alerts/deliveries', units: 1, scope: 'api:alerts' },
  '/api/v1/alerts': { endpoint: 'alerts', units: 1, scope: 'api:alerts' },
}

export function judge(
  call: Call,
  account: { readonly tokens: readonly SandboxToken[]; readonly hasPlan: boolean; readonly limits: Limits },
  nowMs: number,
): Verdict {
  const bearer = /^Bearer (.+)$/i.exec(call.authorization ?? '')?.[1]
  const token = account.tokens.find(({ value }) => value === bearer)
  if (!token || (token.state ?? 'valid') !== 'valid')
    return refuse(0, 401, 'unauthenticated', 'Unauthenticated.')
  const place = account.limits.takeRequest(nowMs)
  if (!place.ok)
    return { ok: false, units: 0, refusal: tooMany('Too many requests.', String(place.retryAfterS)) }
  if (!account.hasPlan)
    return charge(refuse(1, 403, 'plan_required', 'Your plan does not include API access.'))
  const price =
    call.method === 'GET' && Object.hasOwn(prices, call.pathname) ? prices[call.pathname] : undefined
  if (!price) return refuse(0, 404, 'not_found', 'Nothing is held under this address.')
  const page = readPage(call.query)
  if (!(token.scopes ?? ['api:alerts']).includes(price.scope))
    return charge(refuse(price.units, 403, 'scope_required', `This token lacks the scope ${price.scope}.`))
  if (page === undefined)
    return charge(
      refuse(price.units, 422, 'invalid_request', 'A parameter is invalid.', { fields: ['page'] }),
    )
  return charge({ ok: true, units: price.units, endpoint: price.endpoint, page })

  function charge(verdict: Verdict): Verdict {
    const paid = account.limits.takeUnits(verdict.units, nowMs)
    if (paid.ok) return verdict
    const { retryAfterS } = paid
    const refusal = {
      ...tooMany('The daily budget is spent.', String(retryAfterS)),
      detail: { retryAfter: retryAfterS },
    }
    return { ok: false, units: 0, refusal }
  }
}

/** `page` as a whole number from 1; 1 when it is not given; undefined when it is anything else. */
export function readPage(query: URLSearchParams): number | undefined {
  const given = query.getAll('page')
  if (given.length === 0) return 1
  const [text = ''] = given
  const page = Number(text)
  return given.length === 1 && /^\d+$/.test(text) && page >= 1 && Number.isSafeInteger(page)
    ? page
    : undefined
}

function refuse(
  units: number,
  status: number,
  code: string,
  message: string,
  detail?: Readonly<Record<string, unknown>>,
): Verdict {
  return { ok: false, units, refusal: { status, code, message, ...(detail === undefined ? {} : { detail }) } }
}

function tooMany(message: string, retryAfter: string): Refusal {
  return { status: 429, code: 'rate_limited', message, retryAfter }
}
