import type { Clock } from '../lib/clock.ts'
import { isFarAhead, waits } from '../lib/waits.ts'
import {
  budgetInForce,
  confirmSpending,
  exactResetMs,
  type Grant,
  grantSchema,
  isSameReset,
  type Lesson,
  learnRefusal,
  namedResetMs,
} from '../schedule/budget.ts'
import type { BudgetDay, BudgetView } from '../schedule/schedule.ts'
import type { DayUse } from '../store/ledger/day-use.ts'
import type { GrantStore } from '../store/ledger/grant.ts'
import { budgetHoldMsMax } from '../store/ledger/hold.ts'
import type { Ledger, Reservation, TakenUnits } from '../store/ledger/ledger.ts'
import { resetGuardMs } from '../store/ledger/ledger-days.ts'
import type { Logger } from '../telemetry/log.ts'

/** The length of the API's own day, which has no time zone. */
const budgetDayMs = 86_400_000
/** A wait of no seconds may be over before its refusal is counted. */
const refusalMs = 1_000

interface GrantedBudgetDeps {
  readonly source: string
  readonly ledger: Pick<Ledger, 'used' | 'usedSince' | 'apiDay' | 'countApiDay'>
  readonly budgetDay: (nowMs: number) => BudgetDay
  readonly clock: Clock
  readonly log: Logger
  /** As configured. */
  readonly unitsPerDay: number
  /** What the source plans with of its account; all of it where that is absent. */
  readonly share?: UnitsShare
}

/** What the plan may spend, and of which day. */
export interface AvailableBudget {
  readonly budget: BudgetView & { readonly trialAtMs?: number }
  /** What people see: of the API's own day, also while a plan goes by the configured one, unless that has nothing left. */
  readonly shown: BudgetView
  /** Units used of the day that is shown, and for what. */
  readonly used: number
  readonly byPurpose: DayUse['byPurpose']
  /** Units used of the configured day, which the ledger counts. */
  readonly ledgerUsed: number
  /** What refusals showed and is valid now, for people; null where only the config is known. */
  readonly lesson: string | null
}

/** Of the units of an account for this share of a day, those that one of its sources plans with. */
export type UnitsShare = (units: number, dayShare: number) => number

/** The part of an account's budget that one of its sources plans with: each plans again at every poll with what is left. */
export function shareOf<B extends BudgetView>(budget: B, nowMs: number, share: UnitsShare): B {
  const ahead = Math.max(0, budget.day.endMs - nowMs) / budgetDayMs
  return { ...budget, unitsPerDay: share(budget.unitsPerDay, 1), unitsLeft: share(budget.unitsLeft, ahead) }
}

/** Units counted before and with a call. */
export interface CountedUnits {
  readonly atMs: number
  /** Of the configured day. */
  readonly unitsUsed: number
  /** Of the API's own day. */
  readonly apiDayUsed?: number
}

/**
 * Whether to plan by the configured day: it has fewer units for its time than the API's own, and would end before what the API
 * grants until then. A plan that looked at the API's day alone would spend them early, and find nothing until the reset. A plan
 * begins anew with each change of its day: so it changes only for a day with half the pace, and returns once the paces are the same.
 * Both are this source's part: where other sources have fixed paces, little of an account may be left. `was`: the answer before.
 */
function isScarcer(configured: BudgetView, theirs: BudgetView, nowMs: number, was: boolean): boolean {
  const pace = ({ unitsLeft, day }: BudgetView) => unitsLeft / Math.max(1, day.endMs - nowMs)
  const laterMs = Math.max(0, configured.day.endMs - theirs.day.endMs)
  const grantedUntilEnd = theirs.unitsLeft + (theirs.unitsPerDay * laterMs) / budgetDayMs
  const paceMin = pace(theirs) * (was ? 1 : 0.5)
  return pace(configured) < paceMin && configured.unitsLeft < grantedUntilEnd
}

/**
 * What the account's budget really is, as the API's refusals and grants show it: fewer units, or another day than the
 * configured one. The plan uses it. The ledger, which guarantees the limit, still counts the configured day, too: the plan
 * uses that one while it has less.
 */
export class GrantedBudget {
  readonly #deps: GrantedBudgetDeps
  readonly #store: GrantStore
  #grant: Grant | undefined
  #byConfig = false
  /** In a row, and the config's day of the last one. */
  #refusals = { day: '', count: 0 }

  constructor(deps: GrantedBudgetDeps, store: GrantStore) {
    this.#deps = deps
    this.#store = store
  }

  /** Throws what Redis throws. */
  async load(): Promise<void> {
    await this.#adopt(await this.#stored())
  }

  async #stored(): Promise<Grant | undefined> {
    const parsed = grantSchema.safeParse(await this.#store.load())
    return parsed.success && !isFarAheadGrant(parsed.data, this.#deps.clock.now()) ? parsed.data : undefined
  }

  async #adopt(grant: Grant | undefined): Promise<void> {
    // The config may have been corrected since.
    const { budgetDay, ledger } = this.#deps
    const agrees =
      grant?.resetsAtMs != null && isSameReset(grant.resetsAtMs, budgetDay(grant.resetsAtMs), exactResetMs)
    if (agrees) await ledger.countApiDay(null)
    this.#grant = grant && agrees ? { ...grant, resetsAtMs: null } : grant
  }

  /** Throws what Redis throws. */
  async available(nowMs: number): Promise<AvailableBudget> {
    const { ledger, unitsPerDay } = this.#deps
    // Other sources of the account learn too, and calls that are no polls.
    const stored = await this.#stored()
    if (stored !== undefined && stored.learnedAtMs > (this.#grant?.learnedAtMs ?? 0))
      await this.#adopt(stored)
    const day = this.#deps.budgetDay(nowMs)
    const [{ used, byPurpose }, apiDay] = await Promise.all([ledger.used(day), ledger.apiDay()])
    const configured = { unitsPerDay, unitsLeft: Math.max(0, unitsPerDay - used), day }
    const theirs = apiDay && {
      ...configured,
      unitsLeft: Math.max(0, unitsPerDay - apiDay.used),
      day: apiDay.day,
    }
    const granted = budgetInForce(theirs ?? configured, this.#grant, nowMs)
    const lesson = this.#lesson(granted, !isSameReset(granted.day.endMs, day))
    const known = { ledgerUsed: used, lesson }
    if (apiDay === undefined) return { ...known, budget: granted, shown: granted, used, byPurpose }
    const { share = (units) => units } = this.#deps
    const own = (budget: BudgetView) => shareOf(budget, nowMs, share)
    this.#byConfig =
      configured.unitsLeft === 0 || isScarcer(own(configured), own(granted), nowMs, this.#byConfig)
    const budget = this.#byConfig ? { ...configured, unitsPerDay: granted.unitsPerDay } : granted
    if (configured.unitsLeft === 0) return { ...known, budget, shown: budget, used, byPurpose }
    return { ...known, budget, shown: granted, used: apiDay.used, byPurpose: apiDay.byPurpose }
  }

  /** The API granted a call, for whatever page. */
  noteAnswer(): void {
    this.#refusals = { day: '', count: 0 }
  }

  /**
   * How long nobody calls after a refusal that names this wait. An API may name the same one until its reset, however far that is:
   * refusals in a row are tried again less and less often, as rarely as one that names no wait; but also at the config's reset, and
   * after the wait that the first one of its day names, since the API's clock may be late.
   */
  holdAfter(askedMs: number): number {
    const nowMs = this.#deps.clock.now()
    const { key, endMs } = this.#deps.budgetDay(nowMs)
    const isFirst = this.#refusals.day !== key
    const count = this.#refusals.count + 1
    this.#refusals = { day: key, count }
    const rarerMs = Math.min(refusalMs * 2 ** (count - 2), budgetHoldMsMax, endMs + resetGuardMs - nowMs)
    return isFirst ? askedMs : Math.max(askedMs, rarerMs)
  }

  /** The API refused a call for the day's budget; `spent` as it was before the call, which cost `cost`. */
  async noteRefusal(
    spent: CountedUnits & { readonly cost: number },
    askedMs: number | undefined,
  ): Promise<void> {
    // A wait longer than a budget day is no reset.
    const retryAfterMs = (askedMs ?? 0) > waits.apiHold.maxMs ? undefined : askedMs
    const { ledger, budgetDay, unitsPerDay } = this.#deps
    const { atMs, unitsUsed, apiDayUsed = 0 } = spent
    // When Redis does not answer, the API's own day is not known: the next refusal teaches all of it.
    const known = await ledger.apiDay().catch(() => null)
    if (known === null) return
    const apiDay = known && { ...known, used: apiDayUsed }
    const named =
      retryAfterMs === undefined
        ? undefined
        : await ledger.usedSince(atMs + retryAfterMs - budgetDayMs).catch(() => undefined)
    const lesson = learnRefusal({
      atMs,
      unitsUsed,
      retryAfterMs,
      unitsPerDay,
      apiDay,
      day: budgetDay(atMs),
      usedOfNamedDay: named === undefined ? undefined : Math.max(0, named - spent.cost),
      earlier: this.#grant,
    })
    const { resetsAtMs } = lesson.grant
    const isKnown = resetsAtMs !== null && apiDay !== undefined && isSameReset(resetsAtMs, apiDay.day)
    // At the turn the API still refuses for its day before: the call was none of the day that begins, whose start it names.
    const isTurn = isKnown && resetsAtMs < apiDay.day.endMs - budgetDayMs / 2
    const leastMs = isTurn ? (resetsAtMs ?? 0) + refusalMs : atMs + refusalMs
    const startsMs = resetsAtMs === null ? null : Math.max(resetsAtMs, leastMs)
    const used = isTurn ? 0 : isKnown ? apiDay.used + spent.cost : (named ?? unitsUsed)
    // Another one, or moved, as by a clock that was corrected.
    const toleranceMs = namedResetMs(retryAfterMs ?? 0)
    const mayStay = isKnown && !isTurn && isSameReset(resetsAtMs, apiDay.day, toleranceMs)
    if (!mayStay) await this.#countFrom(startsMs === null ? null : { atMs: startsMs, used })
    await this.#learn(lesson)
  }

  /** The API granted a call; `spent` with the call. */
  async noteGrant({ atMs, unitsUsed, apiDayUsed }: CountedUnits): Promise<void> {
    const lesson = this.#grant && confirmSpending(this.#grant, { atMs, unitsUsed: apiDayUsed ?? unitsUsed })
    if (!lesson) return
    if (lesson.grant.resetsAtMs === null) await this.#countFrom(null)
    await this.#learn(lesson)
  }

  /** What Redis could not store is learned again at the next refusal. */
  async #countFrom(reset: Parameters<Ledger['countApiDay']>[0]): Promise<void> {
    await this.#deps.ledger.countApiDay(reset).catch(() => {})
  }

  async #learn({ grant, text }: Lesson): Promise<void> {
    this.#grant = grant
    this.#deps.log.warn(
      { source: this.#deps.source, unitsPerDay: grant.unitsPerDay, resetsAt: isoOf(grant.resetsAtMs) },
      `budget.learned: ${text}`,
    )
    await this.#store.save(grant).catch(() => {})
  }

  #lesson({ unitsPerDay, day }: BudgetView, otherDay: boolean): string | null {
    const parts = [
      ...(unitsPerDay < this.#deps.unitsPerDay
        ? [`the API grants ${unitsPerDay} units a day, the config says ${this.#deps.unitsPerDay}`]
        : []),
      ...(otherDay ? [`the API's day starts anew at ${minuteOf(day.endMs)}, not when the config says`] : []),
    ]
    return parts.length === 0 ? null : parts.join('; ')
  }
}

/**
 * For calls that are no polls: what a refusal for the day's budget teaches is stored, and the plan reads it with its next poll.
 * Never rejects: where Redis does not store it, the next refusal teaches the same.
 */
export function budgetTeacher(
  deps: GrantedBudgetDeps,
  store: GrantStore,
): (taken: TakenUnits, askedMs: number | undefined) => Promise<void> {
  return async (taken, askedMs) => {
    try {
      const budget = new GrantedBudget(deps, store)
      await budget.load()
      await budget.noteRefusal(spentBefore(taken, taken.units, deps.clock.now()), askedMs)
    } catch {}
  }
}

/** Without the refused call, which was counted before it was made. */
export function spentBefore({ unitsUsed, apiDayUsed }: Reserved, cost: number, atMs: number) {
  return {
    atMs,
    cost,
    unitsUsed: unitsUsed - cost,
    ...(apiDayUsed === undefined ? {} : { apiDayUsed: apiDayUsed - cost }),
  }
}

type Reserved = Extract<Reservation, { ok: true }>

/** Stored by a clock that was ahead: the budget would not be tried again before that time. */
function isFarAheadGrant({ learnedAtMs, resetsAtMs }: Grant, nowMs: number): boolean {
  return isFarAhead(Math.max(learnedAtMs, resetsAtMs ?? 0), nowMs)
}

/** `2026-11-22T00:00:00Z`, to the nearest minute: the API names whole seconds, so a reset at 00:00 may come out as 23:59:59. */
function minuteOf(ms: number): string {
  return new Date(Math.round(ms / 60_000) * 60_000).toISOString().replace('.000Z', 'Z')
}

function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
