/**
 * When to poll next. A schedule is pure memory and arithmetic: the poller reports what polls found and asks for
 * the next instant; the schedule never reads a clock, Redis or the network. The ledger, not the schedule, guarantees that
 * the budget is never overspent. README.md beside this file has the words of this room and the order of a decision.
 */
export interface Schedule {
  /** Takes in what a poll (or a failed call) found, for the next decision. */
  observe(poll: PollReport): void
  /** The next poll. `atMs` may lie in the past: then poll now. */
  next(nowMs: number, budget: BudgetView): Decision
  /** Takes in firing times that no planned poll was made for, in any order: of pages bought to learn from, of rows that a walk passed. */
  learnHistory(firedAtMs: readonly number[]): void
  /** Whether a reading of the rules, a unit a page, is worth it now. */
  wantsRules(nowMs: number, budget: BudgetView): boolean
  /** Takes in what the API announces of the evaluations of its rules. */
  learnRules(reading: RulesReading): void
  /** An operator expects alerts until then; 0 cancels it. */
  setHot(untilMs: number): void
  /** What must survive a restart: a small JSON value with a version. */
  snapshot(): unknown
  /** What the schedule knows, in words and figures for people; `firing` is a pattern of the alert engine's clock. */
  describe(nowMs: number): ScheduleView
}

export interface ScheduleView {
  /** Alerts that the profile was learned from, with the weight that their age leaves them. */
  readonly learnedFrom: number
  /** `restored`, `fresh` (nothing was saved) or `lost` (something was, and could not be read). */
  readonly memory: 'restored' | 'fresh' | 'lost'
  /** The marks that polls lock on, or why they do not; null where a fixed pace does not look for any. */
  readonly firing: string | null
  /** Polls are locked on such a pattern. */
  readonly onMarks: boolean
  /** What the rules announce of their evaluations; null where none does, or nobody asked. */
  readonly announced: AnnouncedView | null
  readonly hotUntilMs: number
}

export interface AnnouncedView {
  /** Polls follow them. */
  readonly follows: boolean
  /** How many rules announce their evaluations; and some of them, those that bring most alerts first. */
  readonly ruleCount: number
  readonly rules: readonly { readonly id: string; readonly name: string }[]
}

/**
 * When the rules of an account are evaluated, as the API announces it: the last and the next evaluation of each rule. Later
 * ones are expected at the same distance, so that the rules need not be read again after each; the next reading shows
 * whether that was right.
 */
export interface AnnouncedRule {
  readonly id: string
  readonly name: string | null
  readonly lastMs: number | null
  /** Null where nothing is announced, or the rule is switched off. */
  readonly nextMs: number | null
}

export interface PollReport {
  readonly atMs: number
  readonly ok: boolean
  /** Firing times (ms since the epoch) of the alerts that this poll saw first. */
  readonly firedAtMs: readonly number[]
  /** The rules that each of these names; left out where that is not known. */
  readonly ruleIds?: readonly (readonly string[])[]
  /** Pages that this poll read, each a unit. */
  readonly pages: number
  readonly pagesLeft: PagesLeft
}

/** What a poll left to read: nothing that a poll could read now, pages that wait (`ready`), or pages that it could not read. */
export type PagesLeft = 'none' | 'ready' | 'failed'

/** A reading of all rules, each page of which cost a unit. */
export interface RulesReading {
  readonly atMs: number
  readonly pages: number
  readonly rules: readonly AnnouncedRule[]
}

export interface BudgetView {
  readonly unitsPerDay: number
  readonly unitsLeft: number
  readonly day: BudgetDay
}

/** One budget day: from reset to reset, in absolute time (23 to 25 hours where clocks change). */
export interface BudgetDay {
  /** The local date of its start, `YYYY-MM-DD`: the ledger's key. */
  readonly key: string
  readonly startMs: number
  readonly endMs: number
}

export interface Decision {
  readonly atMs: number
  readonly reason: DecisionReason
}

export type DecisionReason =
  | 'first' // nothing was polled yet, or the clock was set back since
  | 'fixed' // poll.every
  | 'even' // the units left, spread evenly
  | 'expected' // the learned profile expects alerts
  | 'burst' // alerts just came, more are likely
  | 'floor' // nothing is expected, but nobody waits for ever
  | 'ceiling' // as fast as minInterval allows
  | 'announced' // the API announces evaluations of rules; after the next one, when its alerts can be read
  | 'mark' // the engine fires on marks; just after the next one
  | 'hot' // an operator asked for it
  | 'catch_up' // more pages are waiting
  | 'retry' // the last call failed, or the last walk
  | 'budget_spent' // nothing left until the reset

/** What a schedule is made of: the part of a source's config that decides when to poll. */
export interface ScheduleOptions {
  readonly unitsPerDay: number
  readonly minIntervalMs: number
  readonly maxIntervalMs: number
  /** A fixed pace, instead of anything learned. */
  readonly everyMs?: number
  /** Polls follow the expected alerts to this power: 0.5 serves the mean delay, less serves the tail. */
  readonly exponent: number
  /**
   * The slowest pace, as a share of the even one: 0.2 means that no gap is over five even intervals while there are units
   * for that.
   */
  readonly floor: number
  readonly activeHours?: ActiveHours
  /** Dates (`YYYY-MM-DD`, in the zone of the active hours) on which the market is closed. */
  readonly holidays: readonly string[]
  /** `HH:MM` on the wall clock of `timeZone`: when the budget starts anew. */
  readonly resetsAt: string
  readonly timeZone: string
}

type Weekday = 'sun' | 'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat'

/** In the order of `Date.getUTCDay`. */
export const weekdays: readonly Weekday[] = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

interface ActiveHours {
  readonly days: readonly Weekday[]
  /** `HH:MM`; a span that ends before it begins runs over midnight. */
  readonly from: string
  readonly to: string
  readonly timeZone: string
}

/** The longest gap of every source that has units for it, and the pause that suits a server, where the budget asks for no other. */
const usualMs = { shortest: 2_000, longest: 900_000 }
/** A large budget is spent only if polls may come ten times as fast as evenly: an opening bell asks for up to nine times. */
const fastestFactor = 10
/**
 * Below 480 units a day the longest gap follows from the floor: market at 10 to 100 units 0.45 to 0.53 of even, 0.84 to 1.03 with
 * 15 minutes.
 */
const slowestFactor = 5

/** The intervals that hold where no config names any, in milliseconds. */
export function usualIntervals(budget: { readonly unitsPerDay: number; readonly requestsPerMinute: number }) {
  const evenMs = 86_400_000 / budget.unitsPerDay
  const fastestMs = Math.max(1, Math.floor(evenMs / fastestFactor))
  return {
    minIntervalMs: Math.max(
      Math.min(usualMs.shortest, fastestMs),
      wholeSeconds(60_000 / budget.requestsPerMinute),
    ),
    maxIntervalMs: usualLongestMs(budget.unitsPerDay),
  }
}

export function usualLongestMs(unitsPerDay: number): number {
  return Math.max(usualMs.longest, wholeSeconds((slowestFactor * 86_400_000) / unitsPerDay))
}

/** Rounded up, to a whole second where it is longer than one. */
export function wholeSeconds(ms: number): number {
  return ms <= 1_000 ? Math.ceil(ms) : Math.ceil(ms / 1_000) * 1_000
}
