import type { Alert } from '../alert/alert.ts'
import type { AlertContext, ContextName, ContextPart, SkipReason } from '../alert/context.ts'
import type { CachedContext, ContextCache } from '../store/context-cache.ts'
import type { ContextResult, Metrics } from '../telemetry/metrics.ts'
import { Counter } from './counter.ts'
import { type Found, fieldOf, keptFor, type Want } from './found.ts'
import { type Instrument, instrumentOf } from './instrument.ts'
import { isMacro, type Shelf, shelfOf } from './needs.ts'
import { type PurchaseOptions, Purchases } from './purchases.ts'
import { Standing } from './standing.ts'

/**
 * What the API's other endpoints know about the alerts of one source, in time or not at all: an alert waits for its context up
 * to the deadline, by a clock that nobody sets, and goes out with what is there by then.
 */
export interface SourceContext {
  /** Never rejects. */
  find(alert: Alert, names: readonly ContextName[], options: FindOptions): Promise<AlertContext>
}

export interface FindOptions {
  /** When the feed first showed the alert: what was read since then, or little before, is of its time. */
  readonly seenAtMs: number
  /** Whether units may be spent, or only what is kept is looked up. */
  readonly mayBuy: boolean
  /** Ends the wait. */
  readonly signal: AbortSignal
}

export interface SourceContextOptions extends Omit<PurchaseOptions, 'cache'> {
  /** Of the account whose token is used now; undefined where the token cannot be read. */
  readonly cacheNow: () => { readonly mark: string; readonly cache: ContextCache } | undefined
  readonly metrics: Metrics
}

export function createSourceContext(options: SourceContextOptions): SourceContext {
  return new AccountContext(options)
}

interface NamedWant extends Want {
  readonly name: ContextName
  readonly shelf: Shelf
}

/** What is remembered of one token: another is of another account, or has other scopes. */
interface Account {
  readonly mark: string
  readonly options: PurchaseOptions
  readonly purchases: Purchases
  readonly counters: Map<ContextName, Counter>
  readonly standings: Map<string, Standing>
}

class AccountContext implements SourceContext {
  readonly #options: SourceContextOptions
  #account: Account | undefined

  constructor(options: SourceContextOptions) {
    this.#options = options
  }

  async find(alert: Alert, names: readonly ContextName[], options: FindOptions): Promise<AlertContext> {
    const found = new Map<ContextName, Found>()
    await withinDeadline(
      this.#options.deadlineMs,
      options.signal,
      this.#findAll(alert, names, options, found),
    )
    const why = options.signal.aborted ? 'unavailable' : 'deadline'
    const late: Found = { ok: false, why }
    const all = names.map((name) => [name, found.get(name) ?? late] as const)
    for (const [name, each] of all)
      if (each === late && why === 'deadline') this.#account?.counters.get(name)?.late()
    this.#report(alert, all)
    return {
      parts: Object.fromEntries(all.flatMap(([name, each]) => (each.ok ? [[name, partOf(each)]] : []))),
      skipped: all.flatMap(([what, each]) => (each.ok ? [] : [{ what, why: each.why }])),
      names: this.#options.names,
    }
  }

  /** Never rejects. */
  async #findAll(
    alert: Alert,
    names: readonly ContextName[],
    { seenAtMs, mayBuy }: FindOptions,
    found: Map<ContextName, Found>,
  ): Promise<void> {
    const skip = (name: ContextName, why: SkipReason) => void found.set(name, { ok: false, why })
    const account = this.#accountNow()
    if (account === undefined) {
      for (const name of names) skip(name, 'unavailable')
      return
    }
    const instrument = instrumentOf(alert)
    const sinceMs = Math.min(seenAtMs, this.#options.clock.now())
    const wants = names.flatMap((name): NamedWant[] => {
      const shelf = shelfOf(name)
      const of = isMacro(name) ? market : instrument
      if (of !== undefined && shelf.single.fits(of))
        return [{ name, shelf, of, atLeastMs: sinceMs - shelf.freshMs }]
      skip(name, 'no_instrument')
      return []
    })
    let kept: readonly (CachedContext | undefined)[]
    try {
      kept = await account.options.cache.read(wants.map(({ name, of }) => fieldOf(name, of)))
    } catch {
      for (const { name } of wants) skip(name, 'unavailable')
      return
    }
    await Promise.all(
      wants.map(async (want, index) => {
        const known = keptFor(want, kept[index])
        if (known) found.set(want.name, known)
        else if (mayBuy) found.set(want.name, await counterOf(account, want).find(want))
        else skip(want.name, 'retry')
      }),
    )
  }

  #accountNow(): Account | undefined {
    const now = this.#options.cacheNow()
    if (now === undefined || now.mark === this.#account?.mark) return now && this.#account
    const options = { ...this.#options, cache: now.cache }
    this.#account = {
      ...{ mark: now.mark, options, purchases: new Purchases(options) },
      ...{ counters: new Map(), standings: new Map() },
    }
    return this.#account
  }

  #report(alert: Alert, all: readonly (readonly [ContextName, Found])[]): void {
    const { source, metrics, log } = this.#options
    for (const [what, each] of all) metrics.context.inc({ source, what, result: resultOf(each) })
    const skipped = all.flatMap(([what, each]) => (each.ok ? [] : [`${what}: ${each.why}`]))
    if (skipped.length > 0) log.debug({ source, alert: alert.id, skipped }, 'context skipped')
  }
}

function counterOf({ counters, standings, ...account }: Account, { name, shelf }: NamedWant): Counter {
  const known = counters.get(name)
  if (known) return known
  // All macro series are of one endpoint.
  const endpoint = isMacro(name) ? 'macro' : name
  const standing = standings.get(endpoint) ?? new Standing()
  standings.set(endpoint, standing)
  const counter = new Counter({ ...account, name, shelf, standing })
  counters.set(name, counter)
  return counter
}

/** What macro series are about. */
const market: Instrument = { symbol: undefined, slug: undefined }

function partOf({ value, atMs }: Extract<Found, { ok: true }>): ContextPart {
  return { ...value, at: new Date(atMs).toISOString() }
}

function resultOf(found: Found): ContextResult {
  if (found.ok) return found.from === 'cache' ? 'cached' : 'bought'
  return faults.has(found.why) ? 'failed' : 'skipped'
}

const faults: ReadonlySet<SkipReason> = new Set<SkipReason>(['failed', 'deadline', 'too_large'])

/** Resolves when `work` does, when the time is over, or when the signal aborts. */
function withinDeadline(deadlineMs: number, signal: AbortSignal, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, deadlineMs)
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    void work.finally(end)
  })
}
