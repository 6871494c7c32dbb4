import { type RuleFacts, ruleFacts } from '../alert/match/fields.ts'
import { type AlertRule, perPage } from '../feed/wire.ts'
import { settlesWithin } from '../lib/time-limit.ts'
import { isFarAhead } from '../lib/waits.ts'
import type { RuleStore } from '../store/source/rules.ts'
import { isOlderCopy } from './rule-health.ts'
import { RulePages, type RulePagesOptions } from './rule-pages.ts'
import { newlyUnseenIn, type RuleRow, ruleRowOf } from './rule-row.ts'

/**
 * The alert rules of one account, for routes that ask of them. Every page of them costs a unit, so they are read when an
 * alert names a rule that is not known, and all of them again by the first alert an hour later. A reading goes on while
 * alerts wait for it no longer, and one that was broken off goes on at the page that did not come. What could not be read
 * stays unknown: nothing here may stop or lose an alert.
 */
export interface RuleBook {
  /** undefined when it is not known. */
  ruleOf(ruleId: string): RuleFacts | undefined
  /** Takes what another process has paid for, where one of these is not known here; spends nothing. Never rejects. */
  adopt(ruleIds: readonly string[]): Promise<void>
  /** Reads what is missing or old, as far as budget and limits allow; resolves after ten seconds at the latest. Never rejects. */
  prepare(ruleIds: readonly string[]): Promise<void>
  /** The last reading of all rules by this process, whatever it was made for. */
  lastReading(): RulesRead | undefined
  /** When any process last read rules, and how many pages they have; never: 0. Never rejects. */
  lastRead(): Promise<{ readonly atMs: number; readonly pages: number }>
  /**
   * Reads the newest pages anew, as far as budget, limits and time allow: for what rules announce, which changes all the
   * time; not while a reading for an alert runs, which shows the same. False where that failed, so that a unit may be
   * lost. Never rejects.
   */
  readAnew(request: { readonly pagesMax: number; readonly signal: AbortSignal }): Promise<boolean>
}

export interface RulesRead {
  readonly atMs: number
  /** Each cost a unit. */
  readonly pages: number
  /** Each once, as it was shown last: the list may change while its pages are read. */
  readonly rules: readonly ReadRule[]
  /** How many more there are, on pages that it did not read. */
  readonly unread: number
  /** These are all rules there are: what the reading before did not show either, and this one does not, is gone. */
  readonly isWhole: boolean
  /** An older copy of them than one that was read before. */
  readonly isOlder: boolean
}

/** `readAt`: when its page was read. */
type ReadRule = AlertRule & { readonly readAt: string }

export interface RuleBookOptions extends RulePagesOptions {
  readonly store: RuleStore
}

const hourMs = 3_600_000
/** Between two looks at what other processes have read. */
const adoptPauseMs = 60_000
/** Alerts wait for a reading until so long after its beginning. */
const readTimeoutMs = 10_000
/** A reading that stopped goes on until so long after its last page. */
const resumeMs = 2 * hourMs

export function createRuleBook(options: RuleBookOptions): RuleBook {
  return new AccountRules(options)
}

type Anew = Parameters<RuleBook['readAnew']>[0]

/** All rules, as far as their pages have come. */
interface RuleList {
  /** When all rules were last read before it. */
  readonly afterMs: number
  /** By the monotonic clock: when its last page came, or it began. */
  cameMs: number
  /** Ids that alerts had asked for when it began: those that it does not show do not exist. */
  readonly asked: readonly string[]
  /** The rules that were known before. */
  readonly before: ReadonlyMap<string, RuleRow>
  readonly rows: RuleRow[]
  readonly rules: ReadRule[]
  readonly totals: Set<number>
  nextPage: number
}

class AccountRules implements RuleBook {
  readonly #options: RuleBookOptions
  readonly #pages: RulePages
  #rows = new Map<string, RuleRow>()
  #facts = new Map<string, RuleFacts>()
  /** When all of them were last read. */
  #readAtMs = 0
  /** Ids that alerts asked for and that no reading of all rules showed. */
  #absent = new Set<string>()
  #running: { readonly startedMs: number; readonly done: Promise<boolean> } | undefined
  /** A reading of all rules of which a page did not come. */
  #stopped: RuleList | undefined
  /** By the monotonic clock. */
  #adoptsAtMs = Number.NEGATIVE_INFINITY
  #lastReading: RulesRead | undefined

  constructor(options: RuleBookOptions) {
    this.#options = options
    this.#pages = new RulePages(options)
  }

  ruleOf(ruleId: string): RuleFacts | undefined {
    return this.#facts.get(ruleId)
  }

  async prepare(ruleIds: readonly string[]): Promise<void> {
    if (ruleIds.length === 0 || !this.#isWorthIt(ruleIds)) return
    const { clock } = this.#options
    const startedMs = this.#running?.startedMs ?? clock.monotonicMs()
    const leftMs = Math.max(0, startedMs + readTimeoutMs - clock.monotonicMs())
    await settlesWithin(leftMs, this.#readFor(ruleIds))
  }

  async adopt(ruleIds: readonly string[]): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs < this.#adoptsAtMs || ruleIds.every((id) => this.#rows.has(id))) return
    this.#adoptsAtMs = nowMs + adoptPauseMs
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
    if (this.#running !== undefined) return true
    await this.#adopt()
    if (this.#pages.isPaused) return true
    return this.#run([], request)
  }

  /** Another replica, or this one before its restart, may have paid for them already. */
  async #readFor(ruleIds: readonly string[]): Promise<void> {
    await this.#adopt()
    // A reading that began before may have passed the place of a rule that is newer.
    for (let readings = 0; readings < 2 && this.#isWorthIt(ruleIds); readings += 1) await this.#run(ruleIds)
  }

  /** One at a time. */
  #run(ruleIds: readonly string[], anew?: Anew): Promise<boolean> {
    this.#running ??= {
      startedMs: this.#options.clock.monotonicMs(),
      done: this.#read(ruleIds, anew).finally(() => {
        this.#running = undefined
      }),
    }
    return this.#running.done
  }

  #isWorthIt(ruleIds: readonly string[]): boolean {
    if (this.#pages.isPaused) return false
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

  /** False where a page was paid for, or tried, and did not come. */
  async #read(ruleIds: readonly string[], anew?: Anew): Promise<boolean> {
    const { clock, store } = this.#options
    const { pagesPerHour } = this.#pages
    const pagesMax = Math.min(anew?.pagesMax ?? Number.POSITIVE_INFINITY, pagesPerHour)
    const isOfAll = anew === undefined && this.#isOld()
    const reading = (isOfAll ? this.#toResume() : undefined) ?? this.#begin(ruleIds)
    let came: 'to_its_end' | 'not_now' | 'failed' = 'to_its_end'
    for (;;) {
      const page = await this.#pages.buy(reading.nextPage, anew?.signal)
      if (page === 'failed' || page === 'not_now') {
        came = page
        if (isOfAll) this.#stopped = reading
        break
      }
      const number = reading.nextPage
      reading.cameMs = clock.monotonicMs()
      reading.nextPage += 1
      const readAt = new Date(clock.now()).toISOString()
      reading.rules.push(...page.rules.map((rule) => ({ ...rule, readAt })))
      reading.rows.push(...page.rules.map((rule) => ({ ...ruleRowOf(rule), readAt })))
      reading.totals.add(page.total)
      const isLast = number >= page.lastPage
      this.#take(reading, isLast, isLast || number === pagesMax)
      if (isLast) break
      if (anew && number >= pagesMax) break
      // The newest come first: a rule that an alert has just named is near the top.
      if (!anew && !isOfAll && this.#missing(ruleIds).length === 0) break
    }
    if (came === 'to_its_end') this.#pages.ended()
    if (reading.rows.length === 0 && this.#readAtMs === 0) return came !== 'failed'
    const saved = { readAtMs: this.#readAtMs, rows: [...this.#rows.values()] }
    await store.save(saved).catch(() => {})
    return came !== 'failed'
  }

  #begin(asked: readonly string[]): RuleList {
    return {
      afterMs: this.#readAtMs,
      cameMs: this.#options.clock.monotonicMs(),
      asked,
      before: new Map(this.#rows),
      rows: [],
      rules: [],
      totals: new Set(),
      nextPage: 1,
    }
  }

  /** With what other readings have shown since it stopped; none of them was of all rules. */
  #toResume(): RuleList | undefined {
    const stopped = this.#stopped
    this.#stopped = undefined
    if (!stopped || stopped.afterMs !== this.#readAtMs) return undefined
    if (this.#options.clock.monotonicMs() - stopped.cameMs >= resumeMs) return undefined
    const rows = stopped.rows.map((row) => this.#rows.get(String(row['id'])) ?? row)
    const { rules: shown = [], isOlder } = this.#lastReading ?? {}
    const byId = new Map(isOlder ? [] : shown.map((rule) => [rule.id, rule]))
    const rules = stopped.rules.map((rule) => {
      const other = byId.get(rule.id)
      return other !== undefined && other.readAt > rule.readAt ? other : rule
    })
    return { ...stopped, before: new Map(this.#rows), rows, rules }
  }

  /** Takes over what a reading has brought so far; with `shows` it also becomes the last reading. */
  #take({ before, rows, rules, totals, nextPage, asked }: RuleList, isLast: boolean, shows: boolean): void {
    const { clock } = this.#options
    const newlyUnseen = isLast ? newlyUnseenIn(before, rules) : []
    const wasOld = this.#isOld()
    this.#keep([...rows, ...newlyUnseen], isLast)
    if (shows) {
      // A list that changed while it was read, or with rows that are no rules, shows a rule less than there are.
      const each = [...new Map(rules.map((rule) => [rule.id, rule])).values()]
      const isComplete = isLast && totals.size === 1 && totals.has(each.length)
      const isWhole = isComplete && newlyUnseen.length === 0
      const isOlder = isOlderCopy(each, before)
      const pages = nextPage - 1
      const unread = isLast ? 0 : Math.max(0, ...[...totals].map((total) => total - pages * perPage))
      this.#lastReading = { atMs: clock.now(), pages, rules: each, unread, isWhole, isOlder }
    }
    if (!isLast) return
    this.#readAtMs = clock.now()
    const absent = wasOld ? asked : [...this.#absent, ...asked]
    this.#absent = new Set(absent.filter((id) => !this.#rows.has(id)))
  }

  /** `whole`: these are all there are; else what was known before stays. */
  #keep(rows: readonly RuleRow[], whole: boolean): void {
    if (whole) this.#rows.clear()
    for (const row of rows) this.#rows.set(String(row['id']), row)
    this.#facts = new Map([...this.#rows].map(([id, row]) => [id, ruleFacts(row)]))
  }
}
