import type { ContextName, SkipReason } from '../alert/context.ts'
import { redisErrorText } from '../store/redis.ts'
import { buy, inTime, type Pending, settleAll } from './buyer.ts'
import { type Found, fieldOf, keptFor, type Want } from './found.ts'
import type { Shelf } from './needs.ts'
import type { PurchaseOptions, Purchases } from './purchases.ts'
import type { Standing } from './standing.ts'

/**
 * Where alerts wait for one name of context. Who wants the same instrument waits for the same call, in this process and, by a
 * lock in Redis, in all of them; where a page serves many, what is wanted while one call runs is bought together with the next.
 * Nobody has to wait: a call that comes too late is still kept for the next alert and for the next attempt.
 */
export interface CounterOptions {
  readonly name: ContextName
  readonly shelf: Shelf
  readonly options: PurchaseOptions
  readonly purchases: Purchases
  readonly standing: Standing
}

/** Wants of one process that come within this time are bought together. */
const gatherMs = 10
const callsMax = 4
/** A process that buys and is killed holds up the others by this at the most; longer than a call may take. */
const buyerLockMs = 12_000
const lockPollMs = 40

export class Counter {
  readonly #is: CounterOptions
  readonly #pending = new Map<string, { readonly want: Pending; readonly found: Promise<Found> }>()
  readonly #waiting: Pending[] = []
  readonly #busySince = new Set<{ readonly ms: number }>()
  #active = 0
  #gathering = false

  constructor(options: CounterOptions) {
    this.#is = options
  }

  /** Never rejects. Who joins what another began finds the value as if it had been there. */
  async find(want: Want): Promise<Found> {
    const field = fieldOf(this.#is.name, want.of)
    const joined = this.#pending.get(field)
    if (joined) {
      const found = await joined.found
      return found.ok ? { ...found, from: 'cache' } : found
    }
    const why = this.#refusedLately()
    if (why !== undefined) return { ok: false, why }
    const { promise: found, resolve } = Promise.withResolvers<Found>()
    const { clock, deadlineMs } = this.#is.options
    const pending: Pending = {
      ...{ ...want, field, untilMs: clock.monotonicMs() + deadlineMs },
      settle: (result) => {
        if (this.#pending.get(field)?.want === pending) this.#pending.delete(field)
        resolve(result)
      },
    }
    this.#pending.set(field, { want: pending, found })
    this.#waiting.push(pending)
    this.#gather()
    return found
  }

  /** An alert went out without it: was it the endpoint, or another process that waits for it? */
  late(): void {
    const { name, standing, purchases, options } = this.#is
    const sinceMs = Math.min(...[...this.#busySince].map(({ ms }) => ms))
    if (sinceMs <= options.clock.monotonicMs() - options.deadlineMs / 2)
      purchases.fault(name, standing, 'no answer in time')
  }

  #refusedLately(): SkipReason | undefined {
    const { shelf, purchases } = this.#is
    return purchases.refusedLately(
      Math.min(shelf.single.units, shelf.bulk?.page(1).units ?? Number.POSITIVE_INFINITY),
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
    const together = this.#is.shelf.bulk !== undefined
    while (this.#waiting.length > 0 && this.#active < (together ? 1 : callsMax)) {
      const batch = this.#waiting.splice(0, together ? this.#waiting.length : 1)
      this.#active += 1
      void this.#serve(batch).finally(() => {
        this.#active -= 1
        this.#pump()
      })
    }
  }

  /** Never rejects; settles all of them. */
  async #serve(batch: readonly Pending[]): Promise<void> {
    const { name, standing, options } = this.#is
    const open = inTime(batch, options)
    if (open.length === 0) return
    const state = standing.at(options.clock.monotonicMs())
    if (state !== 'good') settleAll(open, 'resting')
    if (state === 'resting') return
    try {
      await this.#whileNobodyElse(state === 'trial' ? open.slice(0, 1) : open)
      settleAll(open, 'deadline')
    } catch (thrown) {
      settleAll(open, 'unavailable')
      const { source, log } = options
      log.debug({ source, what: name, reason: redisErrorText(thrown) }, 'context is not bought')
    } finally {
      if (state === 'trial') standing.endTrial()
    }
  }

  /** Buys while no other process buys the same; what another has bought meanwhile is taken from the cache. */
  async #whileNobodyElse(wants: readonly Pending[]): Promise<void> {
    const { name, shelf, standing, purchases, options } = this.#is
    const { cache, clock } = options
    const what = shelf.bulk === undefined ? (wants[0]?.field ?? '') : name
    let left = wants
    const token = await this.#busy(async () => {
      for (;;) {
        const got = await cache.lock(what, buyerLockMs)
        left = await this.#withoutKept(inTime(left, options))
        if (got !== undefined || left.length === 0) return got
        await clock.sleep(lockPollMs)
      }
    })
    if (token === undefined) return
    try {
      await buy(left, {
        ...{ name, shelf, cache, clock, names: options.names },
        call: (call, of) => this.#busy(() => purchases.call(name, call, of, standing)),
      })
    } finally {
      await cache.unlock(what, token).catch(() => {})
    }
  }

  async #withoutKept(wants: readonly Pending[]): Promise<readonly Pending[]> {
    const kept = await this.#is.options.cache.read(wants.map(({ field }) => field))
    return wants.filter((want, index) => {
      const found = keptFor(want, kept[index])
      if (found) want.settle(found)
      return found === undefined
    })
  }

  async #busy<T>(work: () => Promise<T>): Promise<T> {
    const since = { ms: this.#is.options.clock.monotonicMs() }
    this.#busySince.add(since)
    try {
      return await work()
    } finally {
      this.#busySince.delete(since)
    }
  }
}
