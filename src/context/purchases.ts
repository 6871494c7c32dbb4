import type { ContextName, ReadingNames, SkipReason } from '../alert/context.ts'
import type { FeedClient } from '../feed/client.ts'
import { FeedError, type FeedErrorCode } from '../feed/errors.ts'
import type { Clock } from '../lib/clock.ts'
import { formatDuration } from '../lib/duration.ts'
import { toError } from '../lib/errors.ts'
import type { ContextCache } from '../store/context-cache.ts'
import type { TakenUnits } from '../store/ledger/ledger.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Call } from './calls.ts'
import type { EndpointHealth } from './endpoint-health.ts'
import { exactKeyOf, type Instrument, noInstrument } from './instrument.ts'
import type { Spending } from './spending.ts'

/** What the calls for the context of one source need. */
export interface PurchaseOptions {
  readonly source: string
  readonly feed: Pick<FeedClient, 'askExactly' | 'tokenTrouble'>
  readonly cache: ContextCache
  readonly spending: Spending
  /** Whether polls are stopped since the token shows the feed of another account. Rejects where Redis fails. */
  readonly isForeign: () => Promise<boolean>
  readonly names: ReadingNames
  /** An answer that takes longer comes too late for the alert that waits for it. */
  readonly deadlineMs: number
  readonly closing: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

export type Bought<T> =
  | { readonly ok: true; readonly answer: T; readonly atMs: number }
  | { readonly ok: false; readonly why: SkipReason }

/** Makes one call for context: takes its units, asks, and decides what a failure means for the calls after it. */
export class Purchases {
  readonly #options: PurchaseOptions
  /** Until when (monotonic clock) a scope is taken as one that the token lacks; `*` is every scope. */
  readonly #refusedScopes = new Map<string, number>()
  /** Which faults of one instrument alone the log has. */
  readonly #told = new Set<string>()

  /** How many units were refused a moment ago, why, and until when nothing of that cost is tried again. */
  #refusedUnits: { readonly units: number; readonly why: SkipReason; readonly untilMs: number } | undefined

  constructor(options: PurchaseOptions) {
    this.#options = options
  }

  /** Why a call of so many units would be refused now, where one was refused a moment ago. */
  refusedJustNow(units: number): SkipReason | undefined {
    const refused = this.#refusedUnits
    if (refused === undefined || units < refused.units) return undefined
    return this.#options.clock.monotonicMs() < refused.untilMs ? refused.why : undefined
  }

  /** Rejects only where Redis fails. */
  async call<T>(
    name: ContextName,
    call: Call<T>,
    of: Instrument | undefined,
    health: EndpointHealth,
  ): Promise<Bought<T>> {
    const { feed, cache, spending, isForeign, names, closing, clock, deadlineMs } = this.#options
    if (this.#isRefused(call.scope)) return { ok: false, why: 'scope' }
    if (closing.aborted || feed.tokenTrouble() || (await isForeign()))
      return { ok: false, why: 'unavailable' }
    const taken = await spending.take(call.units, cache)
    if (!taken.ok) {
      const { why } = taken
      this.#refusedUnits = { units: call.units, why, untilMs: clock.monotonicMs() + unitsPauseMs }
      return taken
    }
    const [atMs, startedMs] = [clock.now(), clock.monotonicMs()]
    const isLate = () => clock.monotonicMs() - startedMs > deadlineMs
    const subject = of && subjectOf(name, of)
    try {
      const answer = await call.ask(feed, of ?? noInstrument, names, closing)
      if (isLate()) this.fault(name, health, 'its answers come too late')
      else health.ok(subject)
      return { ok: true, answer, atMs }
    } catch (thrown) {
      const failed = { name, taken, scope: call.scope, health, subject: isLate() ? undefined : subject }
      return { ok: false, why: await this.#failed(thrown, failed) }
    } finally {
      spending.ended(taken)
    }
  }

  /** From now on no alert waits for this endpoint for a while, or, at first, for what it answers of the subject. */
  fault(name: ContextName, health: EndpointHealth, reason: string, subject?: string): void {
    const { source, clock, log } = this.#options
    const restMs = health.fault(clock.monotonicMs(), subject)
    if (restMs !== undefined)
      log.warn(
        { source, what: name, reason, rest: formatDuration(restMs) },
        'alerts do not wait for this context for a while',
      )
    else if (subject !== undefined) this.#tellOnce(name, reason)
  }

  /** All alerts may be of this one instrument: nothing else in the log would say why they lack this context. */
  #tellOnce(name: ContextName, reason: string): void {
    const { source, log } = this.#options
    const told = `${name} ${reason}`
    if (this.#told.has(told) || this.#told.size >= toldMax) return
    this.#told.add(told)
    log.warn({ source, what: name, reason }, 'an alert lacks this context; each reason is said once')
  }

  async #failed(thrown: unknown, { name, taken, scope, health, subject }: Failed): Promise<SkipReason> {
    if (!(thrown instanceof FeedError)) {
      this.fault(name, health, toError(thrown).name)
      return 'failed'
    }
    switch (thrown.code) {
      case 'aborted':
      case 'token_changed':
        return 'unavailable'
      case 'not_found':
        health.ok(subject)
        return 'not_found'
      case 'rate_limited':
        await this.#options.spending.refused(thrown, taken)
        return 'held'
      case 'scope_required':
        return this.#refuse(scope, Number.POSITIVE_INFINITY, thrown)
      case 'plan_required':
        return this.#refuse('*', planPauseMs, thrown)
      case 'unauthenticated':
        return this.#refuse('*', tokenPauseMs, thrown)
      default:
        this.fault(name, health, thrown.message, ofSubject.has(thrown.code) ? subject : undefined)
        return thrown.code === 'too_large' ? 'too_large' : 'failed'
    }
  }

  #isRefused(scope: string): boolean {
    const nowMs = this.#options.clock.monotonicMs()
    return [scope, '*'].some((each) => nowMs < (this.#refusedScopes.get(each) ?? 0))
  }

  #refuse(scope: string, forMs: number, { message }: FeedError): SkipReason {
    const { source, clock, log } = this.#options
    const nowMs = clock.monotonicMs()
    const isKnown = nowMs < (this.#refusedScopes.get(scope) ?? 0)
    this.#refusedScopes.set(scope, nowMs + forMs)
    if (!isKnown) log.warn({ source, reason: message }, 'the API refuses this context')
    return 'scope'
  }
}

interface Failed {
  readonly name: ContextName
  readonly taken: TakenUnits
  readonly scope: string
  readonly health: EndpointHealth
  /** undefined: the failure is not of one instrument. */
  readonly subject: string | undefined
}

/** What one call is about, by which an endpoint's failures are told apart: an instrument, or a macro series. */
export function subjectOf(name: ContextName, of: Instrument): string {
  return `${name} ${exactKeyOf(of)}`
}

/** An answer came, and it may be so for this instrument alone. */
const ofSubject: ReadonlySet<FeedErrorCode> = new Set<FeedErrorCode>([
  ...(['invalid_request', 'server_error', 'unexpected_status'] as const),
  ...(['bad_shape', 'not_json', 'too_large'] as const),
])

/** Part of a reason is text of the API, which may be another one each time. */
const toldMax = 100

/** So that a burst of alerts does not ask Redis once for each. */
const unitsPauseMs = 1_000
/** The plan of an account may change; a token never gains a scope, so that pause has no end. */
const planPauseMs = 60 * 60_000
const tokenPauseMs = 5 * 60_000
