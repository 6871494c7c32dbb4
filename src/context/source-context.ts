import type { Alert } from '../alert/alert.ts'
import type { AlertContext, ContextName, ContextPart, SkipReason } from '../alert/context.ts'
import type { FeedClient } from '../feed/client.ts'
import { FeedError } from '../feed/errors.ts'
import { toError } from '../lib/errors.ts'
import type { ContextCache } from '../store/context-cache.ts'
import type { ContextResult, Metrics } from '../telemetry/metrics.ts'
import { type ContextRequest, type Found, fieldsOf, readKept } from './cached-answer.ts'
import { type ContextCalls, callsOf, isMacro } from './calls.ts'
import { EndpointHealth } from './endpoint-health.ts'
import { instrumentOf, noInstrument } from './instrument.ts'
import { ContextLoader } from './loader.ts'
import { type PurchaseOptions, Purchases } from './purchases.ts'

/**
 * What the API's other endpoints know about the alerts of one source. An alert waits for its context until the deadline (by the
 * monotonic clock) and goes out with what was found by then.
 */
export interface SourceContext {
  /** Never rejects. */
  find(alert: Alert, names: readonly ContextName[], options: FindOptions): Promise<AlertContext>
}

interface FindOptions {
  /** When the feed first showed the alert: a value read since then, or shortly before, is recent enough. */
  readonly seenAtMs: number
  /** Whether units may be spent; if not, only stored values are used. */
  readonly mayBuy: boolean
  /** How long it waits for what is not stored; at most the deadline, which is also the default. */
  readonly waitMs?: number
  /** It waits no longer than this either, since it would expire; an answer that comes later is in time for others. */
  readonly waitMsMax?: number
  /** Ends the wait when it aborts. */
  readonly signal: AbortSignal
}

interface SourceContextOptions extends Omit<PurchaseOptions, 'cache' | 'feed'> {
  readonly feed: Pick<FeedClient, 'askExactly' | 'tokenTrouble' | 'tokenFingerprint'>
  /** Of the account whose token is used now; undefined where the token cannot be read. */
  readonly cacheNow: () => { readonly accountHash: string; readonly cache: ContextCache } | undefined
  readonly metrics: Metrics
}

export function createSourceContext(options: SourceContextOptions): SourceContext {
  return new AccountContext(options)
}

interface NamedRequest extends ContextRequest {
  readonly name: ContextName
  readonly calls: ContextCalls
  readonly fields: readonly string[]
}

/** What this process knows of one token. It starts anew with another token, which may have another account or other scopes. */
interface Account {
  readonly accountHash: string
  readonly tokenFingerprint: string
  readonly options: PurchaseOptions
  readonly purchases: Purchases
  readonly loaders: Map<ContextName, ContextLoader>
  readonly healths: Map<string, EndpointHealth>
}

class AccountContext implements SourceContext {
  readonly #options: SourceContextOptions
  #account: Account | undefined

  constructor(options: SourceContextOptions) {
    this.#options = options
  }

  async find(alert: Alert, names: readonly ContextName[], options: FindOptions): Promise<AlertContext> {
    const found = new Map<ContextName, Found>()
    const { deadlineMs } = this.#options
    const { waitMs: usualMs = deadlineMs, waitMsMax = usualMs } = options
    const waitMs = Math.min(usualMs, waitMsMax)
    const isWorthIt = waitMs >= deadlineMs * waitShareMin
    await withinDeadline(
      // Stored values are read, however little time is left.
      isWorthIt ? waitMs : deadlineMs,
      options.signal,
      this.#findAll(alert, names, { ...options, isWorthIt }, found).catch((thrown: unknown) => {
        // A bug of this program costs the alert its context, and nothing else.
        for (const name of names) if (!found.has(name)) found.set(name, { ok: false, why: 'unavailable' })
        const { source, log } = this.#options
        log.error(
          { source, alert: alert.id, kind: toError(thrown).name },
          'the context could not be looked up',
        )
      }),
    )
    const why = options.signal.aborted ? 'unavailable' : 'deadline'
    const late: Found = { ok: false, why }
    const all = names.map((name) => [name, found.get(name) ?? late] as const)
    const isLate = why === 'deadline' && usualMs >= deadlineMs / 2
    const lateMs = waitMs < usualMs ? deadlineMs : deadlineMs / 2
    const faulty = new Set<ContextName>()
    for (const [name, each] of all)
      if (each === late && isLate && this.#account?.loaders.get(name)?.late(lateMs)) faulty.add(name)
    this.#report(alert, all, faulty)
    return {
      parts: Object.fromEntries(all.flatMap(([name, each]) => (each.ok ? [[name, partOf(each)]] : []))),
      skipped: all.flatMap(([what, each]) => (each.ok ? [] : [{ what, why: each.why }])),
      names: this.#options.names,
    }
  }

  /** Rejects only where this program has a bug. */
  async #findAll(
    alert: Alert,
    names: readonly ContextName[],
    { seenAtMs, mayBuy, isWorthIt }: FindOptions & { readonly isWorthIt: boolean },
    found: Map<ContextName, Found>,
  ): Promise<void> {
    const skip = (name: ContextName, why: SkipReason) => void found.set(name, { ok: false, why })
    const account = this.#accountNow()
    if (account === undefined) {
      for (const name of names) skip(name, 'unavailable')
      return
    }
    const instrument = instrumentOf(alert)
    const seenMs = Math.min(seenAtMs, this.#options.clock.now())
    const requests = names.flatMap((name): NamedRequest[] => {
      const calls = callsOf(name)
      const of = isMacro(name) ? noInstrument : instrument
      if (of !== undefined && calls.single.fits(of))
        return [{ name, calls, of, fields: fieldsOf(name, of), seenMs, freshMs: calls.freshMs }]
      skip(name, 'no_instrument')
      return []
    })
    let kept: readonly (Found | undefined)[]
    try {
      kept = await readKept(account.options.cache, requests, () => this.#options.clock.now())
    } catch {
      for (const { name } of requests) skip(name, 'unavailable')
      return
    }
    await Promise.all(
      requests.map(async (request, index) => {
        const known = kept[index]
        if (known) found.set(request.name, known)
        else if (!mayBuy) skip(request.name, 'retry')
        else if (!isWorthIt) skip(request.name, 'deadline')
        else found.set(request.name, await loaderOf(account, request).find(request))
      }),
    )
  }

  #accountNow(): Account | undefined {
    const tokenFingerprint = this.#options.feed.tokenFingerprint()
    const now = this.#options.cacheNow()
    if (now === undefined) return undefined
    const { accountHash, cache } = now
    const known = this.#account
    if (accountHash === known?.accountHash && tokenFingerprint === known.tokenFingerprint) return known
    const options = { ...this.#options, cache, feed: feedOfToken(this.#options.feed, tokenFingerprint) }
    this.#account = {
      accountHash,
      tokenFingerprint,
      options,
      purchases: new Purchases(options),
      loaders: new Map(),
      healths: new Map(),
    }
    return this.#account
  }

  /** `faulty`: of what came too late, that for which the API took too long. */
  #report(
    alert: Alert,
    all: readonly (readonly [ContextName, Found])[],
    faulty: ReadonlySet<ContextName>,
  ): void {
    const { source, metrics, log } = this.#options
    for (const [what, each] of all)
      metrics.context.inc({ source, what, result: faulty.has(what) ? 'failed' : resultOf(each) })
    const skipped = all.flatMap(([what, each]) => (each.ok ? [] : [`${what}: ${each.why}`]))
    if (skipped.length > 0) log.debug({ source, alert: alert.id, skipped }, 'context skipped')
  }
}

/** Asks with this token only: what another one is answered is of another account, and would be kept among what is of this one. */
function feedOfToken(feed: SourceContextOptions['feed'], tokenFingerprint: string): PurchaseOptions['feed'] {
  return {
    askExactly: (path, parameters, signal) => feed.askExactly(path, parameters, signal, tokenFingerprint),
    tokenTrouble: () =>
      feed.tokenTrouble() ??
      (feed.tokenFingerprint() === tokenFingerprint
        ? undefined
        : new FeedError('token_changed', 'the token was changed meanwhile')),
  }
}

function loaderOf({ loaders, healths, ...account }: Account, { name, calls }: NamedRequest): ContextLoader {
  const known = loaders.get(name)
  if (known) return known
  // All macro series are of one endpoint.
  const endpoint = isMacro(name) ? 'macro' : name
  const health = healths.get(endpoint) ?? new EndpointHealth()
  healths.set(endpoint, health)
  const loader = new ContextLoader({ ...account, name, calls, health })
  loaders.set(name, loader)
  return loader
}

function partOf({ value, atMs }: Extract<Found, { ok: true }>): ContextPart {
  return { ...value, at: new Date(atMs).toISOString() }
}

function resultOf(found: Found): ContextResult {
  if (found.ok) return found.from === 'cache' ? 'cached' : 'bought'
  return faults.has(found.why) ? 'failed' : 'skipped'
}

/** Of the deadline: a call that is waited for less is not worth its units. */
const waitShareMin = 0.1

const faults: ReadonlySet<SkipReason> = new Set<SkipReason>(['failed', 'too_large'])

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
