import type { ContextName, SkipReason } from '../alert/context.ts'
import { redisErrorText } from '../store/connection/redis-errors.ts'
import { buy, inTime, type PendingRequest, settleAll } from './buyer.ts'
import { type ContextRequest, type Found, fieldsOf, readKept } from './cached-answer.ts'
import type { ContextCalls } from './calls.ts'
import type { EndpointHealth } from './endpoint-health.ts'
import { exactKeyOf } from './instrument.ts'
import { type PurchaseOptions, type Purchases, subjectOf } from './purchases.ts'

/**
 * Loads the values of one name of context. Alerts about the same instrument wait for the same call: in this process, and by a
 * lock in Redis in all of them. Where one page serves many instruments, the requests that arrive during a call are answered
 * together by the next. An answer that comes after the deadline is still stored, for the next alert and the next attempt.
 */
interface LoaderOptions {
  readonly name: ContextName
  readonly calls: ContextCalls
  readonly options: PurchaseOptions
  readonly purchases: Purchases
  readonly health: EndpointHealth
}

/** Requests of one process that arrive within this time are answered together. */
const gatherMs = 10
/** So that the alerts that a webhook sends at the same time, twenty by default, wait for one round of calls. */
const callsMax = 20
/**
 * When a process is killed while it buys, the others wait at most this long after a deadline. Longer than a call may take: the last
 * one begins before the deadline.
 */
const buyerLockMs = 12_000
const lockPollMs = 40

const resting: Found = { ok: false, why: 'resting' }

export class ContextLoader {
  readonly #parts: LoaderOptions
  readonly #pending = new Map<string, { readonly request: PendingRequest; readonly found: Promise<Found> }>()
  readonly #waiting: PendingRequest[] = []
  readonly #runningSince = new Set<{ readonly ms: number }>()
  #active = 0
  #gathering = false

  constructor(options: LoaderOptions) {
    this.#parts = options
  }

  /** Never rejects. A request that joins another one reports its value as cached: it cost nothing. */
  async find(request: ContextRequest): Promise<Found> {
    const { health, options, name } = this.#parts
    const { clock, deadlineMs } = options
    if (health.isResting(clock.monotonicMs(), this.#active > 0, subjectOf(name, request.of))) return resting
    const own = exactKeyOf(request.of)
    const joined = this.#pending.get(own)
    if (joined) {
      const found = await joined.found
      return found.ok ? { ...found, from: 'cache' } : found
    }
    const why = this.#refusedJustNow()
    if (why !== undefined) return { ok: false, why }
    const { promise: found, resolve } = Promise.withResolvers<Found>()
    const fields = fieldsOf(name, request.of)
    const pending: PendingRequest = {
      ...request,
      fields,
      untilMs: clock.monotonicMs() + deadlineMs,
      settle: (result) => {
        if (this.#pending.get(own)?.request === pending) this.#pending.delete(own)
        resolve(result)
      },
    }
    this.#pending.set(own, { request: pending, found })
    this.#waiting.push(pending)
    this.#gather()
    return found
  }

  /**
   * An alert that waited long went out without the value. Counts as a fault of the endpoint where a call has run for `ranMs`;
   * then nobody waits for that call any longer, also those who asked later. Returns whether it was that fault.
   */
  late(ranMs: number): boolean {
    const { name, health, purchases, options } = this.#parts
    const sinceMs = Math.min(...[...this.#runningSince].map(({ ms }) => ms))
    if (sinceMs > options.clock.monotonicMs() - ranMs) return false
    purchases.fault(name, health, 'no answer in time')
    for (const { request } of [...this.#pending.values()]) request.settle(resting)
    return true
  }

  #refusedJustNow(): SkipReason | undefined {
    const { calls, purchases } = this.#parts
    return purchases.refusedJustNow(
      Math.min(calls.single.units, calls.bulk?.page(1).units ?? Number.POSITIVE_INFINITY),
    )
  }

  #gather(): void {
    if (this.#active > 0) this.#pump()
    if (this.#gathering || this.#active > 0) return
    this.#gathering = true
    setTimeout(() => {
      this.#gathering = false
      this.#pump()
    }, gatherMs)
  }

  #pump(): void {
    const together = this.#parts.calls.bulk !== undefined
    while (this.#waiting.length > 0 && this.#active < (together ? 1 : callsMax)) {
      const batch = this.#waiting.splice(0, together ? this.#waiting.length : 1)
      this.#active += 1
      void this.#serve(batch).finally(() => {
        this.#active -= 1
        this.#pump()
      })
    }
  }

  /** Never rejects; settles the whole batch. */
  async #serve(batch: readonly PendingRequest[]): Promise<void> {
    const { name, health, options } = this.#parts
    const open = inTime(batch, options)
    if (open.length === 0) return
    const state = health.stateAt(options.clock.monotonicMs())
    if (state !== 'good') settleAll(open, 'resting')
    if (state === 'resting') return
    try {
      await this.#underLock(state === 'trial' ? open.slice(0, 1) : open)
      settleAll(open, 'deadline')
    } catch (thrown) {
      settleAll(open, 'unavailable')
      const { source, log } = options
      log.debug({ source, what: name, reason: redisErrorText(thrown) }, 'context is not bought')
    } finally {
      if (state === 'trial') health.endTrial()
    }
  }

  /** Buys while no other process buys the same. What another process bought meanwhile comes from the cache. */
  async #underLock(requests: readonly PendingRequest[]): Promise<void> {
    const { name, calls, health, purchases, options } = this.#parts
    const { cache, clock, deadlineMs } = options
    const what = calls.bulk === undefined ? (requests[0]?.fields[0] ?? '') : name
    let left = requests
    const token = await this.#timed(async () => {
      for (;;) {
        const got = await cache.lock(what, deadlineMs + buyerLockMs)
        left = await this.#withoutKept(inTime(left, options))
        if (got !== undefined || left.length === 0) return got
        await clock.sleep(lockPollMs)
      }
    })
    if (token === undefined) return
    try {
      await buy(left, {
        name,
        calls,
        cache,
        clock,
        names: options.names,
        call: (call, of) => this.#timed(() => purchases.call(name, call, of, health)),
      })
    } finally {
      await cache.unlock(what, token).catch(() => {})
    }
  }

  async #withoutKept(requests: readonly PendingRequest[]): Promise<readonly PendingRequest[]> {
    const { cache, clock } = this.#parts.options
    const kept = await readKept(cache, requests, () => clock.now())
    return requests.filter((request, index) => {
      const found = kept[index]
      if (found) request.settle(found)
      return found === undefined
    })
  }

  async #timed<T>(work: () => Promise<T>): Promise<T> {
    const since = { ms: this.#parts.options.clock.monotonicMs() }
    this.#runningSince.add(since)
    try {
      return await work()
    } finally {
      this.#runningSince.delete(since)
    }
  }
}
