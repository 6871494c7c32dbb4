import * as z from 'zod'
import { parseRetryAfter } from '../lib/retry-after.ts'
import { scrub } from '../telemetry/scrub.ts'
import type { Endpoint } from './endpoints.ts'

/**
 * What can go wrong with one call, as a closed set of codes: the API's own, on which clients branch, and ours for calls
 * without a usable answer. A message is one sentence: text of the API in it is cut and has no control characters.
 */
export const apiErrorCodes = [
  'unauthenticated',
  'scope_required',
  'plan_required',
  'rate_limited',
  'not_found',
  'invalid_request',
  'server_error',
] as const
type ApiErrorCode = (typeof apiErrorCodes)[number]

export type FeedErrorCode =
  | ApiErrorCode
  | 'timeout' // no whole answer within timeoutMs
  | 'connect' // DNS, TCP or TLS failed before a request was sent
  | 'connection_lost' // the connection broke, or the body ended early
  | 'too_large' // the body is longer than bodyBytesMax
  | 'not_json' // a body that is no JSON: a proxy's page, a login form
  | 'bad_shape' // JSON, but not the documented page
  | 'redirect' // never followed: the token goes to one host only
  | 'unexpected_status' // a status without a documented meaning
  | 'token_changed' // not called: the token is another one than the caller asked for
  | 'aborted' // the caller gave up, or the client was closed

interface FeedErrorDetails {
  readonly status?: number | undefined
  readonly retryAfterMs?: number | undefined
  readonly limit?: 'minute' | 'budget' | undefined
  readonly fields?: readonly string[] | undefined
  readonly cause?: unknown
}

export class FeedError extends Error {
  override readonly name = 'FeedError'
  readonly code: FeedErrorCode
  /** The HTTP status, when an answer came. */
  readonly status: number | undefined
  /** How long the API asks to wait; undefined when it did not, or when that cannot be read. */
  readonly retryAfterMs: number | undefined
  /** Which limit refused a `rate_limited` call. */
  readonly limit: 'minute' | 'budget' | undefined
  /** The parameters that an `invalid_request` names. */
  readonly fields: readonly string[] | undefined

  constructor(code: FeedErrorCode, message: string, details: FeedErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.status = details.status
    this.retryAfterMs = details.retryAfterMs
    this.limit = details.limit
    this.fields = details.fields
  }
}

/** Whether a person must correct what the API refuses with this code: another try does not help. */
export function needsPerson(code: string): boolean {
  return ['unauthenticated', 'scope_required', 'plan_required'].includes(code)
}

/**
 * The error for an answer without a page. The body's code decides; without a known one, the status does. A 403 that names
 * no known code stays `unexpected_status`: it may come from a firewall and shows nothing about the token.
 */
export function refusalOf(answer: {
  readonly status: number
  readonly retryAfter: string | undefined
  /** The parsed body; undefined when there was none that could be read. */
  readonly body: unknown
  readonly nowMs: number
  /** The token, and what else must not be printed, also where the API repeats it. */
  readonly hidden: readonly string[]
  readonly endpoint: Pick<Endpoint, 'path' | 'scope'>
}): FeedError {
  const { status, nowMs, endpoint } = answer
  const envelope = envelopeSchema.safeParse(answer.body).data?.error
  const code = apiErrorCodes.find((each) => each === envelope?.code) ?? codeOfStatus(status)
  const detail = envelope?.detail ?? {}
  const budgetWait = detail['retryAfter'] ?? undefined
  const waits = [readWait(budgetWait, nowMs), readWait(answer.retryAfter, nowMs)]
  const limit = code !== 'rate_limited' ? undefined : budgetWait === undefined ? 'minute' : 'budget'
  const fields = code === 'invalid_request' ? fieldNames(detail['fields']) : undefined
  const said = envelope?.message ? `: ${shortLine(scrub(envelope.message, answer.hidden))}` : ''
  return new FeedError(code, `${sentence(code, endpoint, limit, fields)} (HTTP ${status})${said}`, {
    status,
    retryAfterMs: waits.find((each) => each !== undefined),
    limit,
    fields,
  })
}

/** Text of the API as one short line: without control and direction characters, cut at a whole character. */
export function shortLine(text: string, charsMax = 200): string {
  const line = text
    .slice(0, charsMax * 8)
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\s]+/gu, ' ')
    .trim()
  const characters = [...line]
  return characters.length <= charsMax ? line : `${characters.slice(0, charsMax - 1).join('')}…`
}

const envelopeSchema = z.looseObject({
  error: z.looseObject({
    code: z.string(),
    message: z.string().catch(''),
    detail: z.record(z.string(), z.unknown()).nullish().catch(undefined),
  }),
})

function codeOfStatus(status: number): FeedErrorCode {
  if (status === 401) return 'unauthenticated'
  if (status === 404) return 'not_found'
  if (status === 422) return 'invalid_request'
  if (status === 429) return 'rate_limited'
  if (status >= 500) return 'server_error'
  return 'unexpected_status'
}

function sentence(
  code: FeedErrorCode,
  { path, scope }: Pick<Endpoint, 'path' | 'scope'>,
  limit: string | undefined,
  fields: readonly string[] | undefined,
): string {
  switch (code) {
    case 'unauthenticated':
      return 'the API does not accept the token'
    case 'scope_required':
      return `the token lacks the scope ${scope}, and a token never gains one: mint another`
    case 'plan_required':
      return "the account's tier does not include API access"
    case 'rate_limited':
      return limit === 'budget' ? "the day's request budget is spent" : 'the per-minute ceiling is reached'
    case 'not_found':
      return `the API holds ${absent(path)}`
    case 'invalid_request':
      return `the API refuses a parameter${fields?.length ? `, ${fields.join(', ')}` : ''}`
    case 'server_error':
      return 'the API failed'
    default:
      return 'the API gave an answer that is not documented'
  }
}

/** What a 404 of an endpoint means; for a path that does not exist the API answers the same. */
function absent(path: string): string {
  // Which of both it is, the answer does not say; `letter` is the id of one.
  const orPart = path === '/api/v1/instruments/{instrument}/statements' ? ', or of it no such letter' : ''
  if (path.includes('{instrument}'))
    return `no such instrument${orPart}; an instrument is matched exactly, by id, symbol or slug`
  if (path === '/api/v1/macro/series') return 'no such series; macro lists the keys'
  if (path === '/api/v1/screener/run') return 'no such screen'
  return 'nothing at this address: is baseUrl right?'
}

/** Seconds or an HTTP date; undefined for any other text and for endless waits. */
function readWait(value: unknown, nowMs: number): number | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  const ms = parseRetryAfter(String(value), nowMs)
  return ms !== undefined && Number.isSafeInteger(ms) ? ms : undefined
}

/** `detail.fields` names the parameters; whether as a list or as keys is not documented, so both are read. */
function fieldNames(value: unknown): readonly string[] | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const names = Array.isArray(value) ? value.filter((each) => typeof each === 'string') : Object.keys(value)
  return names.slice(0, 10).map((each) => shortLine(each, 60))
}
