import type { Alert } from '../alert/alert.ts'
import type { Secret } from '../lib/secret.ts'
import type { Happened, Meaning } from './outcome.ts'
import { revealProxy } from './secret-url.ts'
import { type Attempt, type Parcel, parcelOf, type Sink } from './sink.ts'
import type { SinkTools } from './tools.ts'
import { runAttempt, type Work } from './transport/attempt.ts'
import { createHttpTransport, type HttpPost, type HttpReply, type TlsFiles } from './transport/http.ts'
import { isPage } from './transport/json-answer.ts'

/** What a sink that speaks HTTP brings along; the frame of an attempt, the guard and the pool of connections are here. */
export interface HttpSinkConfig {
  readonly type: string
  readonly timeout: number
  readonly concurrency: number
  readonly allowPrivateNetworks: boolean | readonly string[]
  readonly tls?: TlsFiles | undefined
  readonly proxy?: Secret | undefined
}

/** One request, and how its answer is read. */
export interface Request extends Pick<HttpPost, 'url' | 'method' | 'headers' | 'body'> {
  /** The body adds to what the status says; without it, any 2xx is an acknowledgement. */
  readonly sayMore?: (reply: HttpReply) => Said
  /** The receiver is a service that writes no pages for people: one that comes is not its word, whatever the status. */
  readonly speaksJson?: boolean
  /**
   * A 2xx means nothing before its body has come. Otherwise the status decides where the body is late, and it is not
   * waited for long.
   */
  readonly needsBody?: boolean
}

export interface Said {
  readonly meaning?: Meaning | undefined
  readonly retryAfterMs?: number | undefined
  readonly text?: string
}

/** Makes the request of one alert. What it throws is the attempt's fault. */
export type Render = (parcel: Parcel, work: Work, attempt: Attempt) => Request

export function createHttpSink(name: string, config: HttpSinkConfig, tools: SinkTools, render: Render): Sink {
  const transport = createHttpTransport({
    guard: tools.guard(config.allowPrivateNetworks),
    connections: config.concurrency,
    timeoutMs: config.timeout,
    tls: config.tls,
  })

  async function exchange(alert: Alert, attempt: Attempt, work: Work): Promise<Happened> {
    const {
      sayMore,
      speaksJson = false,
      needsBody = false,
      headers,
      ...request
    } = render(parcelOf(alert, attempt), work, attempt)
    const reply = await transport.post({
      ...request,
      headers: { 'user-agent': tools.userAgent, ...headers },
      signal: work.signal,
      nowMs: attempt.nowMs,
      proxy: revealProxy(config.proxy, work),
      ...(needsBody ? {} : { bodyWaitMs }),
      onStatus: (early) => (needsBody && isSuccess(early)) || work.know(happenedOf(early)),
    })
    return happenedOf(reply, speaksJson && isPage(reply.body) ? sayStranger : sayMore)
  }

  return {
    name,
    type: config.type,
    targets: [undefined],
    send: (alert, attempt) =>
      runAttempt({ signal: attempt.signal, timeoutMs: config.timeout }, (work) =>
        exchange(alert, attempt, work),
      ),
    close: () => transport.close(),
  }
}

export function isSuccess({ status }: Pick<HttpReply, 'status'>): boolean {
  return status >= 200 && status <= 299
}

/** The status line is the answer; a body that only adds to it is not waited for long. */
const bodyWaitMs = 2_000

function sayStranger(): Said {
  return { meaning: 'bad_answer' }
}

function happenedOf(reply: HttpReply, sayMore?: Request['sayMore']): Happened {
  const { status, retryAfterMs, body: text } = reply
  return { via: 'http', status, retryAfterMs, text, ...sayMore?.(reply) }
}
