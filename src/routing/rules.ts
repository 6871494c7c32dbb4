import { type RuleFacts, ruleFacts } from '../alert/fields.ts'
import type { FeedClient } from '../feed/client.ts'
import { unitsOf } from '../feed/endpoints.ts'
import { FeedError } from '../feed/errors.ts'
import { type AlertRule, perPage, type RulesPage } from '../feed/wire.ts'
import type { Clock } from '../lib/clock.ts'
import { toError } from '../lib/errors.ts'
import { isFarAhead } from '../lib/waits.ts'
import type { Ledger } from '../store/ledger.ts'
import type { RuleStore } from '../store/rules.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { isOlderCopy } from './rule-health.ts'
import { newlyUnseenIn, type RuleRow, ruleRowOf } from './rule-row.ts'

/**
 * The alert rules of one account, for routes that ask of them. Every page of them costs a unit, so they are read when an
 * alert names a rule that is not known, and all of them again by the first alert an hour later; by one process never for
 * more than `unitsPerHour`, and only while the day's polls have units to spare. What could not be read stays unknown:
 * nothing here may stop or lose an alert.
 */
export interface RuleBook {
  /** undefined when it is not known. */
  ruleOf(ruleId: string): RuleFacts | undefined
  /** Takes what another process has paid for, where one of these is not known here; spends nothing. Never rejects. */
  adopt(ruleIds: readonly string[]): Promise<void>
  /** Reads what is missing or old, as far as budget, limits and time allow. Never rejects. */
  prepare(ruleIds: readonly string[]): Promise<void>
  /** The last reading of all rules by this process, whatever it was made for. */
  lastReading(): RulesRead | undefined
  /** When any process last read rules, and how many pages they have; never: 0. Never rejects. */
  lastRead(): Promise<{ readonly atMs: number; readonly pages: number }>
  /**
   * Reads the newest pages anew, as far as budget, limits and time allow: for what rules announce, which changes all the
   * time. False where that failed, so that a unit may be lost. Never rejects.
   */
  readAnew(request: { readonly pagesMax: number; readonly signal: AbortSignal }): Promise<boolean>
}

export interface RulesRead {
  readonly atMs: number
  /** Each cost a unit. */
  readonly pages: number
  /** Each once, as it was shown last: the list may change while its pages are read. */
  readonly rules: readonly AlertRule[]
  /** These are all rules there are: what the reading before did not show either, and this one does not, is gone. */
  readonly isWhole: boolean
  /** An older copy of them than one that was read before. */
  readonly isOlder: boolean
}

export interface RuleBookOptions {
  readonly source: string
  readonly feed: Pick<FeedClient, 'rules' | 'tokenTrouble'>
  readonly ledger: Pick<Ledger, 'reserve' | 'hold'>
  readonly store: RuleStore
  /** Units of the day that must be left for polls. */
  readonly leaveUnits: number
  readonly unitsPerHour?: number
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
}

const hourMs = 3_600_000
/** After a refusal or a failure. */
const pauseMs = 60_000
/** Alerts wait for one page of rules at most so long, and after so long for no further one. */
const pageTimeoutMs = 5_000
const readTimeoutMs = 10_000
const pageUnits = unitsOf('/api/v1/alerts')
const unitsPerHourDefault = 20

export function createRuleBook(options: RuleBookOptions): RuleBook {
  return new AccountRules(options)
}

type Anew = Parameters<RuleBook['readAnew']>[0]

class AccountRules implements RuleBook {
  readonly #options: RuleBookOptions
  #rows = new Map<string, RuleRow>()
  #facts = new Map<string, RuleFacts>()
  /** When all of them were last read. */
  #readAtMs = 0
  /** Asked for, and not among all of them. */
  #absent = new Set<string>()
  /** By the monotonic clock, as what was spent in the last hour. */
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #spentAtMs: number[] = []
  #reading: Promise<void> | undefined
  /** By the monotonic clock. */
  #adoptsAtMs = Number.NEGATIVE_INFINITY
  #lastReading: RulesRead | undefined
  /** A page of the last reading was paid for, or tried, and did not come. */
  #hasFailed = false

  constructor(options: RuleBookOptions) {
    this.#options = options
  }

  ruleOf(ruleId: string): RuleFacts | undefined {
    return this.#facts.get(ruleId)
  }

  async prepare(ruleIds: readonly string[]): Promise<void> {
    if (ruleIds.length === 0 || !this.#isWorthIt(ruleIds)) return
    // Another replica, or this one before its restart, may have paid for them already.
    await this.#adopt()
    if (!this.#isWorthIt(ruleIds)) return
    this.#reading ??= this.#read(ruleIds).finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  async adopt(ruleIds: readonly string[]): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs < this.#adoptsAtMs || ruleIds.every((id) => this.#rows.has(id))) return
    this.#adoptsAtMs = nowMs + pauseMs
    await this.#adopt()
  }

  lastReading(): RulesRead | undefined {
    return this.#lastReading
  }

  async lastRead(): Promise<{ atMs: number; pages: number }> {
    if (this.#rows.size === 0 && this.#readAtMs === 0) await this.#adopt()
    const readAt = [...this.#rows.values()].map((row) => Date.parse(String(row['readAt'])) || 0)
    const atMs = readAt.reduce((latest, ms) => Math.max(latest, ms), this.#readAtMs)
    return { atMs, pages: Math.max(1, Math.ceil(this.#rows.size / perPage)) }
  }

  async readAnew(request: Anew): Promise<boolean> {
    await this.#reading
    await this.#adopt()
    const { clock } = this.#options
    if (clock.monotonicMs() < this.#pausedUntilMs) return true
    this.#reading = this.#read([], request).finally(() => {
      this.#reading = undefined
    })
    await this.#reading
    return !this.#hasFailed
  }

  #isWorthIt(ruleIds: readonly string[]): boolean {
    if (this.#options.clock.monotonicMs() < this.#pausedUntilMs) return false
    return this.#isOld() || this.#missing(ruleIds).length > 0
  }

  /** By the wall clock, which replicas share; what was read in the future, before a clock was set back, is old. */
  #isOld(): boolean {
    return Math.abs(this.#options.clock.now() - this.#readAtMs) >= hourMs
  }

  #missing(ruleIds: readonly string[]): string[] {
    return ruleIds.filter((id) => !this.#rows.has(id) && !this.#absent.has(id))
  }

  async #adopt(): Promise<void> {
    const stored = await this.#options.store.load().catch(() => undefined)
    // A clock that was ahead wrote what would never be old.
    if (!stored || stored.readAtMs < this.#readAtMs || isFarAhead(stored.readAtMs, this.#options.clock.now()))
      return
    if (stored.readAtMs > this.#readAtMs) this.#absent.clear()
    this.#readAtMs = stored.readAtMs
    this.#keep(stored.rows, stored.readAtMs > 0)
  }

  async #read(ruleIds: readonly string[], anew?: Anew): Promise<void> {
    const { clock, unitsPerHour = unitsPerHourDefault } = this.#options
    // The next reading begins at the first page again, so that no later page is ever read: these are all that one can show.
    const pagesMax = Math.min(
      anew?.pagesMax ?? Number.POSITIVE_INFINITY,
      Math.floor(unitsPerHour / pageUnits),
    )
    const startedMs = clock.monotonicMs()
    const all = this.#isOld()
    const readAt = new Date(clock.now()).toISOString()
    const before = new Map(this.#rows)
    const rows: RuleRow[] = []
    const rules: AlertRule[] = []
    const totals = new Set<number>()
    this.#hasFailed = false
    for (let number = 1; ; number += 1) {
      const page = await this.#page(number, anew)
      if (page === undefined) break
      rules.push(...page.rules)
      rows.push(...page.rules.map((rule) => ({ ...ruleRowOf(rule), readAt })))
      totals.add(page.total)
      const isLast = number >= page.lastPage
      const newlyUnseen = isLast ? newlyUnseenIn(before, rules) : []
      this.#keep([...rows, ...newlyUnseen], isLast)
      if (isLast || number === pagesMax) {
        // A list that changed while it was read, or with rows that are no rules, shows a rule less than there are.
        const each = [...new Map(rules.map((rule) => [rule.id, rule])).values()]
        const isComplete = isLast && totals.size === 1 && totals.has(each.length)
        const isWhole = isComplete && newlyUnseen.length === 0
        const isOlder = isOlderCopy(each, before)
        this.#lastReading = { atMs: clock.now(), pages: number, rules: each, isWhole, isOlder }
      }
      if (isLast) {
        this.#readAtMs = clock.now()
        this.#absent = new Set(ruleIds.filter((id) => !this.#rows.has(id)))
        break
      }
      if (anew) {
        if (number < pagesMax) continue
        break
      }
      // The newest come first: a rule that an alert has just named is near the top.
      if (!all && this.#missing(ruleIds).length === 0) break
      if (clock.monotonicMs() - startedMs >= readTimeoutMs) break
    }
    if (rows.length === 0 && this.#readAtMs === 0) return
    const saved = { readAtMs: this.#readAtMs, rows: [...this.#rows.values()] }
    await this.#options.store.save(saved).catch(() => {})
  }

  /** undefined: not now. */
  async #page(number: number, anew: Anew | undefined): Promise<RulesPage | undefined> {
    const { source, feed, ledger, leaveUnits, log, metrics } = this.#options
    try {
      if (!this.#mayRead()) return undefined
      // While a token's file is replaced, it is empty for a moment: no call can be made, so no unit is spent.
      if (feed.tokenTrouble() !== undefined) {
        this.#pause()
        return undefined
      }
      const purpose = 'rules'
      const reserved = await ledger.reserve({ cost: pageUnits, purpose, leaveUnits })
      if (!reserved.ok) {
        this.#pause()
        log.info(
          { source, limit: reserved.limit },
          'the rules are not read now: polls come first, and this limit leaves no more',
        )
        return undefined
      }
      this.#spentAtMs.push(this.#options.clock.monotonicMs())
      metrics.budgetUnits.inc({ source, purpose }, pageUnits)
      metrics.budgetUnitsUsed.set({ source }, reserved.apiDayUsed ?? reserved.unitsUsed)
      const limit = AbortSignal.timeout(pageTimeoutMs)
      return await feed.rules(number, anew ? AbortSignal.any([limit, anew.signal]) : limit)
    } catch (thrown) {
      this.#pause()
      this.#hasFailed = true
      const known = thrown instanceof FeedError
      log.warn({ source, reason: known ? thrown.message : toError(thrown).name }, 'the rules cannot be read')
      if (known && thrown.code === 'rate_limited') {
        const limit = thrown.limit ?? 'minute'
        metrics.upstreamRateLimited.inc({ source, limit })
        await ledger.hold(limit, thrown.retryAfterMs)
      }
      return undefined
    }
  }

  #mayRead(): boolean {
    const { unitsPerHour = unitsPerHourDefault, clock } = this.#options
    const nowMs = clock.monotonicMs()
    this.#spentAtMs = this.#spentAtMs.filter((atMs) => nowMs - atMs < hourMs)
    const left = unitsPerHour - this.#spentAtMs.length * pageUnits
    if (left >= pageUnits) return true
    this.#pausedUntilMs = (this.#spentAtMs[0] ?? nowMs) + hourMs
    return false
  }

  #pause(): void {
    this.#pausedUntilMs = this.#options.clock.monotonicMs() + pauseMs
  }

  /** `whole`: these are all there are; else what was known before stays. */
  #keep(rows: readonly RuleRow[], whole: boolean): void {
    if (whole) this.#rows.clear()
    for (const row of rows) this.#rows.set(String(row['id']), row)
    this.#facts = new Map([...this.#rows].map(([id, row]) => [id, ruleFacts(row)]))
  }
}
