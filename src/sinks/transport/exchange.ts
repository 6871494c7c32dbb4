import type { Dispatcher } from 'undici'
import { toError } from '../../lib/errors.ts'
import { parseRetryAfter } from '../../lib/retry-after.ts'

export interface HttpPost {
  readonly url: string
  /** POST unless it says otherwise. */
  readonly method?: HttpMethod | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
  readonly signal: AbortSignal
  readonly nowMs: number
  /** Called when there is a connection and the request begins to go out. */
  readonly onSending?: () => void
  /** Called as soon as the status has come, with an empty body. */
  readonly onStatus?: (reply: HttpResponse) => void
  /** How long a body is worth waiting for; without it, as long as the signal allows. */
  readonly bodyWaitMs?: number | undefined
  /** The address of a proxy, as it was revealed for this request. */
  readonly proxy?: string | undefined
}

type HttpMethod = 'POST' | 'PUT' | 'PATCH'

export interface HttpResponse {
  readonly status: number
  readonly retryAfterMs: number | undefined
  /** The start of the body, at most `bodyBytesMax`, as UTF-8. */
  readonly body: string
}

/** Where a request goes. */
export interface Target {
  readonly origin: string
  readonly path: string
}

export const bodyBytesMax = 16_384

/** Sends a request, and resolves to its status and the start of its answer. A connection that breaks within the answer is a fault, too. */
export function exchange(dispatcher: Dispatcher, target: Target, message: HttpPost): Promise<HttpResponse> {
  const { method = 'POST', headers, body, signal } = message
  signal.throwIfAborted()
  const handler = new Exchange(message)
  const options = { ...target, method, headers: { ...headers, 'accept-encoding': 'identity' }, body }
  try {
    dispatcher.dispatch(options, handler)
  } catch (refused) {
    handler.fail(toError(refused))
  }
  return handler.answer
}

/**
 * By the library's callbacks: its `request` makes a stream of each answer, which takes several times as long for the few bytes that most
 * have.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #message: HttpPost
  readonly #answer = Promise.withResolvers<HttpResponse>()
  #isOver = false
  #controller: Dispatcher.DispatchController | undefined
  #head: HttpResponse | undefined
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(message: HttpPost) {
    this.#message = message
    message.signal.addEventListener('abort', this)
  }

  get answer(): Promise<HttpResponse> {
    return this.#answer.promise
  }

  /** The signal aborts. */
  handleEvent(): void {
    this.fail(toError(this.#message.signal.reason))
  }

  /** Through a tunnel of a proxy, it starts when the tunnel is open. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isOver) controller.abort(toError(this.#message.signal.reason))
    else this.#message.onSending?.()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    if (this.#isOver || status < 200) return
    const { nowMs, onStatus, bodyWaitMs } = this.#message
    this.#head = { status, retryAfterMs: parseRetryAfter(firstOf(headers['retry-after']), nowMs), body: '' }
    onStatus?.(this.#head)
    if (bodyWaitMs !== undefined) this.#timer = setTimeout(() => this.#enough(), bodyWaitMs)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes >= bodyBytesMax) this.#enough()
  }

  onResponseEnd(): void {
    this.#finish()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(error)
  }

  #enough(): void {
    this.#finish()
    // What the parser holds comes first: where that is the rest of the answer, its connection is kept for the next request.
    queueMicrotask(() => this.#controller?.abort(new Error('no more of the answer is needed')))
  }

  #finish(): void {
    if (this.#head === undefined || !this.#over()) return
    const { status, retryAfterMs } = this.#head
    this.#answer.resolve({ status, retryAfterMs, body: textOf(this.#chunks) })
  }

  /**
   * What a proxy that was to forward a request answers with a 407 the library reads on after it was reported as an error: for ever, without
   * an end. What has ended is not aborted by this.
   */
  fail(error: Error): void {
    if (!this.#over()) return
    this.#answer.reject(error)
    this.#controller?.abort(error)
  }

  /** False where it was over before. */
  #over(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#message.signal.removeEventListener('abort', this)
    return true
  }
}

function textOf(chunks: readonly Buffer[]): string {
  return chunks.length === 0 ? '' : Buffer.concat(chunks).subarray(0, bodyBytesMax).toString('utf8')
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}
