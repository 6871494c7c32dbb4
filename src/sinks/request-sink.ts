import type { Alert } from '../alert/alert.ts'
import type { AlertContext, SkipReason } from '../alert/context.ts'
import type { Secret } from '../lib/secret.ts'
import type { Meaning, Outcome, ProtocolResult } from './outcome.ts'
import { PlainPeriod } from './plain-period.ts'
import { revealProxy, tokensIn } from './secret-url.ts'
import { type Attempt, type Parcel, parcelOf, type Sink, withoutContext } from './sink.ts'
import { TextTurns } from './text-turns.ts'
import type { SinkTools } from './tools.ts'
import { type AttemptHelpers, runAttempt } from './transport/attempt.ts'
import type { HttpPost, HttpResponse } from './transport/exchange.ts'
import { classifyFault } from './transport/fault.ts'
import { createHttpClient } from './transport/http-client.ts'
import { isPage } from './transport/json-answer.ts'
import type { TlsFiles } from './transport/tls.ts'

/** The config that every sink over HTTP needs. The attempt, the address guard and the connection pool are made here. */
interface RequestSinkConfig {
  readonly type: string
  readonly timeout: number
  readonly concurrency: number
  readonly allowPrivateNetworks: boolean | readonly string[]
  readonly tls?: TlsFiles | undefined
  readonly proxy?: Secret | undefined
  /** Of a body, which may take a quarter of a second to write. */
  readonly template?: string | undefined
}

/** One request, and how its response is read. */
export interface SinkRequest extends Pick<HttpPost, 'url' | 'method' | 'headers' | 'body'> {
  /** Reads what the body adds to the status; without it, any 2xx is an acknowledgement. */
  readonly readBody?: (reply: HttpResponse) => ResponseDetails
  /** The receiver never answers with an HTML page: a page is from something else (a proxy), whatever its status. */
  readonly expectsJson?: boolean
  /**
   * A 2xx is no acknowledgement before its body was read. Otherwise the status decides where the body is late, and the
   * sink does not wait for it for long.
   */
  readonly needsBody?: boolean
  /** Another form, such as text without a picture: sent within the same attempt where the receiver refuses this form, and after one that failed. */
  readonly plain?: SinkRequest
}

export interface ResponseDetails {
  readonly meaning?: Meaning | undefined
  readonly retryAfterMs?: number | undefined
  readonly text?: string
}

/** Makes the request of one alert. What it throws becomes the fault of the attempt. */
type Render = (
  parcel: Parcel,
  helpers: AttemptHelpers,
  attempt: Attempt,
) => SinkRequest | Promise<SinkRequest>

export function createRequestSink(
  name: string,
  config: RequestSinkConfig,
  tools: SinkTools,
  render: Render,
): Sink {
  const transport = createHttpClient({
    guard: tools.guard(config.allowPrivateNetworks),
    connections: config.concurrency,
    timeoutMs: config.timeout,
    tls: config.tls,
  })

  const plainPeriod = new PlainPeriod()
  /**
   * Of the smallest message that was too large with context. One as large begins without when it is tried again, and where such an
   * attempt has just failed: two requests take twice as long, and count twice where the receiver limits them.
   */
  let refusedBytes = Number.POSITIVE_INFINITY
  const turns = new TextTurns(config.timeout / 2)

  async function send(alert: Alert, attempt: Attempt): Promise<Outcome> {
    let hadOtherForm = false
    let parcel = parcelOf(alert, attempt)
    let skipped: AlertContext['skipped'] | undefined
    const leaveContext = (why: SkipReason): boolean => {
      const alone = withoutContext(parcel, why)
      parcel = alone ?? parcel
      skipped = alone?.context?.skipped ?? skipped
      return alone !== undefined
    }
    const limits = { signal: attempt.signal, timeoutMs: config.timeout }
    const outcome = await runAttempt(limits, async (helpers) => {
      // An alert that cannot be written with its context, or with what is said of it, as by a template, goes out without.
      const write = async (): Promise<SinkRequest> => {
        try {
          return await turns.timed(() => render(parcel, helpers, attempt))
        } catch (thrown) {
          const { context, ...alone } = parcel
          if (context === undefined || classifyFault(thrown).fault !== 'unrenderable') throw thrown
          if (!leaveContext('failed')) parcel = alone
          return write()
        }
      }
      // Only what a template writes may take long.
      const request = await (config.template === undefined ? write() : turns.inTurn(write, helpers.signal))
      const { plain } = request
      if (plain === undefined) {
        const bytes = Buffer.byteLength(request.body)
        const isKnown = bytes >= refusedBytes && (attempt.number > 1 || plainPeriod.isOn())
        if (!isKnown || !leaveContext('too_large')) {
          const result = await post(request, attempt, helpers)
          const isTooLarge = result.via === 'http' && result.status === tooLarge
          if (!isTooLarge || !leaveContext('too_large')) return result
          refusedBytes = Math.min(refusedBytes, bytes)
          hadOtherForm = true
        }
        return post(await write(), attempt, helpers)
      }
      if (plainPeriod.isOn()) return post(plain, attempt, helpers)
      hadOtherForm = true
      const result = await post(request, attempt, helpers)
      if (result.via !== 'http' || !formRefusals.has(result.status)) return result
      return post(plain, attempt, helpers)
    })
    if (hadOtherForm) plainPeriod.note(outcome)
    return outcome.kind === 'delivered' && skipped !== undefined ? { ...outcome, skipped } : outcome
  }

  /** Most sinks post to one address all the time. */
  let last: { readonly url: string; readonly tokens: readonly string[] } | undefined
  const tokensOf = (url: string): readonly string[] => {
    if (last?.url !== url) last = { url, tokens: tokensIn(new URL(url)) }
    return last.tokens
  }

  async function post(
    request: SinkRequest,
    attempt: Attempt,
    helpers: AttemptHelpers,
  ): Promise<ProtocolResult> {
    const { url, method, headers, body, readBody, expectsJson = false, needsBody = false, plain } = request
    for (const token of tokensOf(url)) helpers.hide(token)
    helpers.connecting()
    const reply = await transport.post({
      url,
      method,
      body,
      signal: helpers.signal,
      nowMs: attempt.nowMs,
      headers: { 'user-agent': tools.userAgent, ...headers },
      proxy: revealProxy(config.proxy, helpers),
      bodyWaitMs: needsBody ? undefined : bodyWaitMs,
      onSending: () => helpers.sending(),
      onStatus: (early) =>
        (needsBody && isSuccess(early)) ||
        (plain !== undefined && formRefusals.has(early.status)) ||
        (attempt.context !== undefined && early.status === tooLarge) ||
        helpers.reportEarly(resultOf(early)),
    })
    return resultOf(reply, expectsJson && isPage(reply.body) ? foreignDetails : readBody)
  }

  return {
    name,
    type: config.type,
    targets: [undefined],
    send,
    close: () => transport.close(),
  }
}

export function isSuccess({ status }: Pick<HttpResponse, 'status'>): boolean {
  return status >= 200 && status <= 299
}

const tooLarge = 413
/** Statuses by which a receiver refuses the form of a request. It has accepted nothing of it, so another form may follow. */
const formRefusals: ReadonlySet<number> = new Set([400, tooLarge, 415, 422])

/** The status decides; a body that only adds to it is not worth a longer wait. */
const bodyWaitMs = 2_000

function foreignDetails(): ResponseDetails {
  return { meaning: 'bad_answer' }
}

function resultOf(reply: HttpResponse, readBody?: SinkRequest['readBody']): ProtocolResult {
  const { status, retryAfterMs, body: text } = reply
  const result = { via: 'http', status, retryAfterMs, text } as const
  return readBody === undefined ? result : { ...result, ...readBody(reply) }
}
