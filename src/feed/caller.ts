import type { Dispatcher } from 'undici'
import { parseJson, TooManyNumbersError } from '../alert/json/json-number.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { errorCode, UserError } from '../lib/errors.ts'
import { Pool } from '../lib/packages.ts'
import { looksLikeToken, type Secret, tokenProblem } from '../lib/secret.ts'
import { onTimeUp } from '../lib/time-limit.ts'
import { scrub } from '../telemetry/scrub.ts'
import { version } from '../telemetry/version.ts'
import type { ApiRequest } from './api/request.ts'
import type { Endpoint, EndpointName } from './endpoints.ts'
import { FeedError, refusalOf, shortLine } from './errors.ts'
import { type Parsed, readJsonBody, rowValuesMax } from './wire.ts'

/** One call over HTTP: a checked request in, its parsed answer or a FeedError out, within the time limit. */
interface Caller {
  call<T>(request: ApiRequest, parse: (body: unknown) => Parsed<T>, options: CallOptions): Promise<T>
  tokenTrouble(): FeedError | undefined
  tokenFingerprint(): string
  close(): Promise<void>
}

export interface CallOptions {
  readonly signal: AbortSignal | undefined
  readonly numbers?: Numbers
  /** Where it is given, no other token is sent: the call fails as `token_changed` before it is made. */
  readonly tokenFingerprint?: string | undefined
}

/**
 * `exact`: a number that JavaScript would change is a JsonNumber, for what is handed on as it came; `exact in rows`: of a row
 * that has more values than a row may have, not of all.
 */
type Numbers = 'plain' | 'exact' | 'exact in rows'

export interface FeedClientOptions {
  /** The source that is written in alerts of this account. */
  readonly source: string
  /** Everything before `/api/v1`; a path prefix and a trailing slash are fine. */
  readonly baseUrl: string
  readonly token: Secret
  /** From the call to the last byte of the answer. */
  readonly timeoutMs?: number
  /** At the same time. */
  readonly connections?: number
  /** Decoded bytes of one answer. */
  readonly bodyBytesMax?: number
  /** How many numbers of one answer may be kept as they came, by its form; an answer with more is too large. */
  readonly exactNumbersMax?: Readonly<Record<Endpoint['answer']['envelope'], number>>
  readonly clock?: Clock
  readonly onExchange?: (exchange: Exchange) => void
}

/** One call as the metrics see it: `error` when no status came. */
export interface Exchange {
  readonly endpoint: FeedEndpoint
  readonly status: number | 'error'
  readonly durationMs: number
}

type FeedEndpoint = EndpointName

/** An error envelope is short; a longer body is none. */
const errorBodyBytesMax = 64 * 1_024

/** Decoded bytes of one answer, at most, where the caller does not say. */
export const pageBytesMax = 5 * 1_024 * 1_024

export function createCaller(options: FeedClientOptions): Caller {
  const { token, timeoutMs = 15_000, bodyBytesMax = pageBytesMax, clock = systemClock } = options
  const { origin, prefix } = splitBaseUrl(options.baseUrl)
  const pool = createPool(origin, options)
  // Such as the key of a gateway.
  const keys = prefix.split('/').filter(looksLikeToken)

  async function call<T>(
    { endpoint, name, target, body: sent }: ApiRequest,
    parse: (body: unknown) => Parsed<T>,
    { signal, numbers = 'plain', tokenFingerprint }: CallOptions,
  ): Promise<T> {
    // Read once, so that it is the token with this mark that is sent.
    const secret = reveal(token)
    if (tokenFingerprint !== undefined && token.fingerprint(secret) !== tokenFingerprint)
      throw new FeedError('token_changed', 'the token was changed meanwhile')
    const hidden = [secret, ...keys]
    const startedMs = clock.monotonicMs()
    let status: number | 'error' = 'error'
    const deadline = startDeadline(timeoutMs, signal)
    try {
      const answer = await pool.request({
        method: endpoint.method,
        path: `${prefix}${target}`,
        headers: {
          authorization: `Bearer ${secret}`,
          accept: 'application/json',
          'accept-encoding': 'gzip, identity',
          'user-agent': `alert-bridge/${version}`,
          ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(sent === undefined ? {} : { body: sent }),
        signal: deadline.signal,
      })
      status = answer.statusCode
      const exactMax = options.exactNumbersMax?.[endpoint.answer.envelope]
      const read = { bytesMax: bodyBytesMax, clock, hidden, endpoint, parse: parserOf(numbers, exactMax) }
      const body = await readAnswer(answer, read)
      const parsed = parse(body)
      if (parsed.ok) return parsed.page
      throw new FeedError(
        'bad_shape',
        `the API's answer is not the documented ${endpoint.answer.envelope}: ${shortLine(parsed.reason)}`,
        {
          status,
        },
      )
    } catch (thrown) {
      const call = { timeoutMs, expired: deadline.expired(), gaveUp: signal?.aborted ?? false }
      const error = toFeedError(thrown, call)
      // It may quote the answer, and the answer may quote what it was asked with.
      error.message = scrub(error.message, hidden)
      throw error
    } finally {
      deadline.clear()
      options.onExchange?.({ endpoint: name, status, durationMs: clock.monotonicMs() - startedMs })
    }
  }

  return {
    call,
    tokenTrouble: () => tokenTrouble(token),
    tokenFingerprint: fingerprinter(token),
    close: () => pool.destroy(),
  }
}

/** Asked for at each send with context, while the token hardly ever changes. */
function fingerprinter(token: Secret): () => string {
  let known: { readonly value: string; readonly hash: string } | undefined
  return () => {
    const value = revealed(token)
    if (known?.value !== value) known = { value, hash: token.fingerprint(value) }
    return known.hash
  }
}

/** '' where its file cannot be read. */
function revealed(token: Secret): string {
  try {
    return token.reveal()
  } catch {
    return ''
  }
}

/** More than the 5 s after which a lookup asks the second name server. */
const connectTimeoutMs = 10_000

function createPool(origin: string, { connections = 2 }: Pick<FeedClientOptions, 'connections'>): Dispatcher {
  return new Pool(origin, {
    connections,
    pipelining: 1,
    allowH2: false,
    // Set here, so that with NODE_TLS_REJECT_UNAUTHORIZED the token is not sent to any other server.
    connect: { timeout: connectTimeoutMs, rejectUnauthorized: true },
    keepAliveTimeout: 4_000,
    // The deadline of the whole call is the only one: a slow body would start these again and again.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

function parserOf(numbers: Numbers, max: number | undefined): (text: string) => unknown {
  if (numbers === 'plain') return JSON.parse
  if (numbers === 'exact in rows') return (text) => parseJson(text, { rowMax: rowValuesMax })
  return (text) => {
    try {
      return parseJson(text, { max })
    } catch (thrown) {
      throw thrown instanceof TooManyNumbersError
        ? new FeedError('too_large', `the API's answer has ${thrown.message}`)
        : thrown
    }
  }
}

/** Returns the parsed body of a 200; throws a FeedError for any other answer. */
async function readAnswer(
  answer: Dispatcher.ResponseData,
  call: {
    readonly bytesMax: number
    readonly clock: Clock
    readonly hidden: readonly string[]
    readonly endpoint: ApiRequest['endpoint']
    readonly parse: (text: string) => unknown
  },
): Promise<unknown> {
  const { statusCode: status, body } = answer
  const headers = {
    contentType: headerOf(answer, 'content-type'),
    contentEncoding: headerOf(answer, 'content-encoding'),
  }
  if (status === 200) return readJsonBody(body, headers, call.bytesMax, call.parse)
  if ([301, 302, 303, 307, 308].includes(status)) {
    body.on('error', () => {}).destroy()
    throw new FeedError('redirect', `the API redirects elsewhere, which is not followed (HTTP ${status})`, {
      status,
    })
  }
  // The status and the headers are enough; a body that cannot be read is ignored.
  const refusal = await readJsonBody(body, headers, errorBodyBytesMax).catch(() => undefined)
  const { clock, hidden, endpoint } = call
  const retryAfter = headerOf(answer, 'retry-after')
  throw refusalOf({ status, retryAfter, body: refusal, nowMs: clock.now(), hidden, endpoint })
}

function headerOf(answer: Dispatcher.ResponseData, name: string): string | undefined {
  const value = answer.headers[name]
  return Array.isArray(value) ? value[0] : value
}

function tokenTrouble(token: Secret): FeedError | undefined {
  try {
    reveal(token)
    return undefined
  } catch (thrown) {
    return toFeedError(thrown, { timeoutMs: 0, expired: false, gaveUp: false })
  }
}

function reveal(token: Secret): string {
  let value: string
  try {
    value = token.reveal()
  } catch (thrown) {
    const code = errorCode(thrown) ?? 'unreadable'
    throw new FeedError('unauthenticated', `the token's file cannot be read (${code})`)
  }
  if (tokenProblem(value) === undefined) return value
  const what = token.file === undefined ? 'the token' : `the content of ${token.file}`
  throw new FeedError('unauthenticated', `${what} is empty or holds characters that no token has`)
}

function splitBaseUrl(baseUrl: string): { origin: string; prefix: string } {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UserError('baseUrl is no http:// or https:// address')
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') }
}

/** Aborts after `timeoutMs`, or with the caller's signal; `expired` is true for the first. */
function startDeadline(timeoutMs: number, signal: AbortSignal | undefined) {
  const controller = new AbortController()
  let expired = false
  const timer = onTimeUp(timeoutMs, () => {
    expired = true
    controller.abort()
  })
  const onAbort = () => controller.abort()
  if (signal?.aborted) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  return {
    signal: controller.signal,
    expired: () => expired,
    clear() {
      timer.off()
      signal?.removeEventListener('abort', onAbort)
    },
  }
}

function toFeedError(
  thrown: unknown,
  call: { readonly timeoutMs: number; readonly expired: boolean; readonly gaveUp: boolean },
): FeedError {
  if (thrown instanceof FeedError) return thrown
  const code = errorCode(thrown) ?? 'unknown'
  if (call.gaveUp || code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_CLOSED')
    return new FeedError('aborted', 'the call was given up')
  if (call.expired)
    return new FeedError('timeout', `the API gave no whole answer within ${call.timeoutMs} ms`)
  const reason = shortLine(code, 60)
  if (code === 'UND_ERR_HEADERS_OVERFLOW')
    return new FeedError('too_large', "the answer's headers are too long")
  if (isConnectCode(code))
    return new FeedError('connect', `the API cannot be reached (${reason})`, { cause: thrown })
  return new FeedError('connection_lost', `the connection to the API broke (${reason})`, { cause: thrown })
}

/** Recognises errors of DNS, TCP and TLS by their codes; OpenSSL's verification codes have no common prefix. */
function isConnectCode(code: string): boolean {
  return (
    /^(UND_ERR_CONNECT_TIMEOUT|ENOTFOUND|EAI_\w+|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL)$/.test(
      code,
    ) ||
    /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH$)/.test(code)
  )
}
