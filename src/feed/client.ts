import type { FeedPage } from '../walk/page.ts'
import { type Answered, type AnsweredExactly, type ApiPage, parseAnswer, tameAnswer } from './api/answer.ts'
import { type ApiRequest, prepareLoose } from './api/request.ts'
import { type CallOptions, createCaller, type FeedClientOptions } from './caller.ts'
import type { AnswerOf, EndpointPath, PagePath, ParametersOf } from './endpoints.ts'
import { FeedError } from './errors.ts'
import { type Parsed, parseDeliveriesPage, parseRulesPage, type RulesPage } from './wire.ts'

export type { Exchange, FeedClientOptions } from './caller.ts'

/**
 * One attempt a call, one connection target, no retries, no redirects, no budget: the caller has reserved the units and
 * decides what follows. A call ends in a page or in a FeedError, within `timeoutMs`, however slowly the answer arrives.
 */
export interface FeedClient {
  /** One page of fired alerts, newest first; pages count from 1. Rejects with a FeedError. */
  deliveries(page: number, signal?: AbortSignal, tokenFingerprint?: string): Promise<FeedPage>
  /** One page of the caller's alert rules, newest first. Rejects with a FeedError. */
  rules(page: number, signal?: AbortSignal): Promise<RulesPage>
  /**
   * One call of any endpoint: its record, or one page. Parameters are checked first: what the API would refuse is rejected
   * as `invalid_request` without a status, and nothing is sent.
   */
  ask<P extends EndpointPath>(
    path: P,
    parameters: ParametersOf<P>,
    signal?: AbortSignal,
  ): Promise<Answered<P>>
  /** The same with numbers as they came, for what is handed on. With a fingerprint, no other token is sent. */
  askExactly<P extends EndpointPath>(
    path: P,
    parameters: ParametersOf<P>,
    signal?: AbortSignal,
    tokenFingerprint?: string,
  ): Promise<AnsweredExactly<P>>
  /**
   * A list, page by page, from the page of the parameters on. A page is read when the caller has taken the one before it; a
   * page that is not read costs nothing. A list may change while it is read: a row may come twice or be missed.
   */
  pages<P extends PagePath>(
    path: P,
    parameters: ParametersOf<P>,
    options?: PagesOptions,
  ): AsyncGenerator<ApiPage<AnswerOf<P>>, void, undefined>
  /**
   * Sends a request that was checked; returns its answer as it came, numbers too (`JsonNumber`), made safe to print: for a person
   * to read.
   */
  send(request: ApiRequest, signal?: AbortSignal): Promise<unknown>
  /** Why no call can be made now: the token cannot be read from its file. Such a call must not cost a unit. */
  tokenTrouble(): FeedError | undefined
  /** The same as long as the token is: another token may show another account's feed. */
  tokenFingerprint(): string
  /** Ends at once; calls that still run are rejected as `aborted`. */
  close(): Promise<void>
}

interface PagesOptions {
  /** Before every page: reserves its units, or throws, which ends the list. */
  readonly pay?: (page: number) => Promise<void>
  readonly pagesMax?: number
  readonly signal?: AbortSignal
}

export function createFeedClient(options: FeedClientOptions): FeedClient {
  const { source } = options
  const { call, tokenTrouble, tokenFingerprint, close } = createCaller(options)

  const send = <T>(request: ApiRequest, parse: (body: unknown) => Parsed<T>, how: CallOptions) =>
    call(
      request,
      (body) => {
        tameAnswer(request.endpoint.path, body)
        return parse(body)
      },
      how,
    )
  const asked = <T>(request: ApiRequest, how: CallOptions) =>
    send(request, (body) => parseAnswer(request.endpoint, request.page, body) as Parsed<T>, how)
  const ask: FeedClient['ask'] = async (path, parameters, signal) =>
    asked(requestOf(path, parameters), { signal })

  return {
    deliveries: async (page, signal, tokenFingerprint) =>
      call(
        requestOf('/api/v1/alerts/deliveries', { query: { page } }),
        (body) => parseDeliveriesPage(source, page, body),
        { signal, numbers: 'exact in rows', tokenFingerprint },
      ),
    rules: async (page, signal) =>
      call(requestOf('/api/v1/alerts', { query: { page } }), (body) => parseRulesPage(page, body), {
        signal,
      }),
    ask,
    askExactly: async (path, parameters, signal, tokenFingerprint) =>
      asked(requestOf(path, parameters), { signal, numbers: 'exact', tokenFingerprint }),
    async *pages(path, parameters, { pay, pagesMax = pagesMaxDefault, signal } = {}) {
      const first = requestOf(path, parameters).page
      for (let number = first; number < first + pagesMax; number += 1) {
        await pay?.(number)
        const query = { ...parameters.query, page: number }
        const page = (await ask(path, { ...parameters, query }, signal)) as ApiPage<AnswerOf<typeof path>>
        yield page
        if (number >= page.lastPage) return
      }
    },
    send: (request, signal) =>
      send(request, (body) => ({ ok: true, page: body }), { signal, numbers: 'exact' }),
    tokenTrouble,
    tokenFingerprint,
    close,
  }
}

/** Of one list: it would never end if every page said that there is one more. */
const pagesMaxDefault = 10_000

function requestOf<P extends EndpointPath>(path: P, parameters: ParametersOf<P>): ApiRequest {
  const prepared = prepareLoose(path, parameters)
  if (prepared.ok) return prepared.request
  const { problems } = prepared
  throw new FeedError('invalid_request', `nothing was sent to ${path}: ${problems.join('; ')}`, {
    fields: problems.map((problem) => problem.slice(0, problem.indexOf(':'))),
  })
}
