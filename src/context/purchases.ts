import type { ContextName, ReadingNames, SkipReason } from '../alert/context.ts'
import type { FeedClient } from '../feed/client.ts'
import { FeedError } from '../feed/errors.ts'
import type { Clock } from '../lib/clock.ts'
import { formatDuration } from '../lib/duration.ts'
import { toError } from '../lib/errors.ts'
import type { ContextCache } from '../store/context-cache.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Instrument } from './instrument.ts'
import type { Call } from './needs.ts'
import type { Spending } from './spending.ts'
import type { Standing } from './standing.ts'

/** One call of an endpoint for context: its units first, then its answer, and what a fault of it means for the next. */
export interface PurchaseOptions {
  readonly source: string
  readonly feed: Pick<FeedClient, 'ask' | 'tokenTrouble'>
  readonly cache: ContextCache
  readonly spending: Spending
  readonly names: ReadingNames
  /** An answer that takes longer is of no use to the alert that waits for it. */
  readonly deadlineMs: number
  readonly closing: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

export type Bought<T> =
  | { readonly ok: true; readonly answer: T; readonly atMs: number }
  | { readonly ok: false; readonly why: SkipReason }

export class Purchases {
  readonly #options: PurchaseOptions
  /** Scopes that the token lacks, and `*` for all of them: until when, by the monotonic clock. */
  readonly #refused = new Map<string, number>()

  /** Units that were refused a moment ago, and until when that is not asked again. */
  #spent: { readonly units: number; readonly why: SkipReason; readonly untilMs: number } | undefined

  constructor(options: PurchaseOptions) {
    this.#options = options
  }

  /** Why a call of so many units would be refused, as one was a moment ago. */
  refusedLately(units: number): SkipReason | undefined {
    const spent = this.#spent
    if (spent === undefined || units < spent.units) return undefined
    return this.#options.clock.monotonicMs() < spent.untilMs ? spent.why : undefined
  }

  /** Throws what Redis throws, and nothing else. */
  async call<T>(name: ContextName, call: Call<T>, of: Instrument, standing: Standing): Promise<Bought<T>> {
    const { feed, cache, spending, names, closing, clock, deadlineMs } = this.#options
    if (this.#isRefused(call.scope)) return { ok: false, why: 'scope' }
    if (closing.aborted || feed.tokenTrouble()) return { ok: false, why: 'unavailable' }
    const why = await spending.take(call.units, cache)
    if (why !== undefined) {
      this.#spent = { units: call.units, why, untilMs: clock.monotonicMs() + spentPauseMs }
      return { ok: false, why }
    }
    const [atMs, startedMs] = [clock.now(), clock.monotonicMs()]
    try {
      const answer = await call.ask(feed, of, names, closing)
      if (clock.monotonicMs() - startedMs > deadlineMs)
        this.fault(name, standing, 'its answers come too late')
      else standing.ok()
      return { ok: true, answer, atMs }
    } catch (thrown) {
      return { ok: false, why: await this.#failed(thrown, name, call.scope, standing) }
    }
  }

  /** Nobody waits for this endpoint for a while. */
  fault(name: ContextName, standing: Standing, reason: string): void {
    const { source, clock, log } = this.#options
    const restMs = standing.fault(clock.monotonicMs())
    if (restMs === undefined) return
    log.warn({ source, what: name, reason, rest: formatDuration(restMs) }, 'context rests')
  }

  async #failed(thrown: unknown, name: ContextName, scope: string, standing: Standing): Promise<SkipReason> {
    if (!(thrown instanceof FeedError)) {
      this.fault(name, standing, toError(thrown).name)
      return 'failed'
    }
    switch (thrown.code) {
      case 'aborted':
        return 'unavailable'
      case 'not_found':
        standing.ok()
        return 'not_found'
      case 'rate_limited':
        await this.#options.spending.refused(thrown)
        return 'held'
      case 'scope_required':
        return this.#refuse(scope, Number.POSITIVE_INFINITY, thrown)
      case 'plan_required':
        return this.#refuse('*', planPauseMs, thrown)
      case 'unauthenticated':
        return this.#refuse('*', tokenPauseMs, thrown)
      default:
        this.fault(name, standing, thrown.message)
        return thrown.code === 'too_large' ? 'too_large' : 'failed'
    }
  }

  #isRefused(scope: string): boolean {
    const nowMs = this.#options.clock.monotonicMs()
    return [scope, '*'].some((each) => nowMs < (this.#refused.get(each) ?? 0))
  }

  #refuse(scope: string, forMs: number, { message }: FeedError): SkipReason {
    const { source, clock, log } = this.#options
    const nowMs = clock.monotonicMs()
    const isKnown = nowMs < (this.#refused.get(scope) ?? 0)
    this.#refused.set(scope, nowMs + forMs)
    if (!isKnown) log.warn({ source, reason: message }, 'context is refused')
    return 'scope'
  }
}

/** In a burst of alerts Redis need not be asked for each. */
const spentPauseMs = 1_000
/** An account may get another tier; a token never gains a scope. */
const planPauseMs = 60 * 60_000
const tokenPauseMs = 5 * 60_000
