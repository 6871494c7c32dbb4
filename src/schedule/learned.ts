import { isFarAhead } from '../lib/waits.ts'
import { type Announced, describeAnnounced, noteReading, useLearned } from './announced/evidence.ts'
import { type EvaluationDay, evaluationDay, followAnnounced } from './announced/follow.ts'
import { type DayForecast, forecastBudgetDay, outlookAt } from './forecast/outlook.ts'
import { learnedAlerts } from './forecast/profile.ts'
import { type Expectation, learnPast, learnPoll, rollDate } from './learn.ts'
import { type MarkPlan, planMarks } from './marks/pattern.ts'
import {
  findMarkPeriod,
  isProven,
  knowsMore,
  type MarkPeriod,
  type MarksLeft,
  marksLeftTexts,
  noteLoss,
  type Phase,
  whyMarksAreLeft,
} from './marks/phase.ts'
import { emptyMemory, type Memory, nextAfter, readMemory, saveMemory } from './memory.ts'
import { type DecisionState, decide, savedByMarks } from './pace/decide.ts'
import { beginDay, judgeFew, pacesOf } from './pace/family.ts'
import { type FewDay, fewDay, fewStepMs, fewUnits, restOfFew } from './pace/few.ts'
import { floorOf, noteSpent, noteUnits } from './pace/guard.ts'
import { hasUsualLongest, limitsFor } from './pace/solve.ts'
import type {
  BudgetView,
  Decision,
  PollReport,
  RulesReading,
  Schedule,
  ScheduleOptions,
  ScheduleView,
} from './schedule.ts'

/**
 * The schedule that learns. It owns the memory and what is derived from it (the forecast of the day, the paces of the
 * policies, the plan for marks), and derives them anew when the memory that they follow from changes, so that a restart
 * decides as if it had not been.
 */
export function learnedSchedule(options: ScheduleOptions, saved: unknown): Schedule {
  const restored = readMemory(saved)
  return new LearnedSchedule(options, restored ?? emptyMemory(), memoryState(saved, restored))
}

class LearnedSchedule implements Schedule {
  readonly #options: ScheduleOptions
  readonly #memory: Memory
  readonly #state: ScheduleView['memory']
  #forecast: DayForecast | undefined
  /** What the last decision expected of the time since the last poll. */
  #expectation: Expectation | undefined
  #marks: MarkPlan | undefined
  #markPeriod: MarkPeriod | undefined
  /** What announced evaluations bring on the day of the forecast. */
  #evaluations: EvaluationDay | undefined
  /** The chosen instants of the day of a forecast. */
  #few: FewDay | undefined
  #lookedAt = 0
  /** The budget that the API grants, which the plan for marks was made with. */
  #unitsPerDay: number

  constructor(options: ScheduleOptions, memory: Memory, state: ScheduleView['memory']) {
    this.#options = options
    this.#memory = memory
    this.#state = state
    this.#unitsPerDay = memory.family.unitsPerDay || options.unitsPerDay
    if (!memory.lockedOn) return
    this.#lockOn(memory.lockedOn, true)
    this.#lookedAt = memory.lockedOn.total
  }

  observe(poll: PollReport): void {
    noteSpent(this.#memory.guard, poll.pages)
    const dateChanged = rollDate(this.#memory, this.#options, poll.atMs)
    const profileChanged = learnPoll(this.#memory, this.#options, this.#expectation, poll)
    if (poll.ok) this.#expectation = undefined
    if (dateChanged || profileChanged) this.#forecast = undefined
    if (useLearned(this.#memory.announced, poll.atMs)) this.#evaluations = undefined
    if (poll.firedAtMs.length > 0) this.#lookForMarks()
    else if (poll.ok) judgeFew(this.#memory.few)
  }

  next(nowMs: number, budget: BudgetView): Decision {
    const memory = this.#memory
    if (rollDate(memory, this.#options, nowMs)) this.#forecast = undefined
    const { attempts } = memory
    if (budget.unitsLeft <= 0)
      return { ...this.#planNextDay(attempts.lastAtMs, budget), reason: 'budget_spent' }
    return nextAfter(attempts, nowMs, this.#options.minIntervalMs, (lastAtMs) => this.#plan(lastAtMs, budget))
  }

  #plan(lastAtMs: number, budget: BudgetView): Decision {
    const [options, memory] = [this.#options, this.#memory]
    this.#useBudget(budget.unitsPerDay)
    const fromMs = Math.max(lastAtMs, budget.day.startMs)
    const forecast = this.#forecastFor(budget)
    const daySeconds = (budget.day.endMs - budget.day.startMs) / 1_000
    const limits = limitsFor(options, budget.unitsPerDay, daySeconds)
    beginDay(memory.family, budget, fromMs)
    noteUnits(memory.guard, budget, fromMs)
    const outlook = outlookAt(forecast, memory.recent, options.exponent, fromMs)
    const paces = pacesOf(memory.family, outlook, limits)
    const guarded = (floorOf(memory.guard, options.floor) * budget.unitsPerDay) / daySeconds
    const floor = Math.min(limits.ceiling, Math.max(limits.floor, guarded))
    // Chosen instants may be most of a day apart.
    const mayChoose = budget.unitsPerDay <= fewUnits && hasUsualLongest(options)
    const longestMs = Math.floor(1_000 / floor / fewStepMs) * fewStepMs
    const few = mayChoose ? this.#fewDay(forecast, budget.unitsPerDay, longestMs) : undefined
    this.#expectation = { forecast, paces, few }
    const chosen = few && memory.few.isChosen ? this.#planFew(few, lastAtMs, budget) : undefined
    if (chosen && memory.hotUntilMs <= fromMs) return chosen
    const moment: DecisionState = {
      ...{ paces, budget, limits, floor, lastAtMs },
      family: memory.family,
      guard: memory.guard,
      marks: this.#marksLeft ? undefined : this.#marks,
      markPeriod: this.#marksLeft ? undefined : this.#markPeriod,
      lateMs: memory.phase.lateMs,
      hotUntilMs: memory.hotUntilMs,
      extraPagesPerDay: memory.extraPages.average,
      minIntervalMs: options.minIntervalMs,
    }
    const usual = { ...moment, hotUntilMs: 0 }
    const isHot = memory.hotUntilMs > fromMs
    const followed = this.#follow(usual, this.#expectation)
    if (this.#marks) {
      const saved = savedByMarks(moment, this.#marks, followed !== undefined && !isHot)
      this.#expectation = { ...this.#expectation, savedByMarks: saved }
    }
    if (!isHot) return followed ?? decide(moment)
    // More polls for an operator come by the pace, and none later than without these.
    const [hot, plain] = [decide(moment), chosen ?? followed ?? decide(usual)]
    return plain.atMs < hot.atMs ? plain : hot
  }

  get #marksLeft(): MarksLeft | undefined {
    return whyMarksAreLeft(this.#memory, this.#markPeriod !== undefined, this.#unitsPerDay)
  }

  /** The next poll along the announced evaluations, while they are followed. */
  #follow(moment: DecisionState, expectation: Expectation): Decision | undefined {
    const { announced, family } = this.#memory
    if (announced.rules.length === 0) return undefined
    // Where polls follow, and where nobody has counted yet, what is left for them is what is left.
    const { unitsLeft } = moment.budget
    family.followingLeft = announced.follows
      ? unitsLeft
      : Math.min(family.followingLeft ?? unitsLeft, unitsLeft)
    const { fromMs } = moment.paces.outlook
    const known = this.#evaluations
    // The clock may have been set back to an hour that was over.
    const isPlanned = known?.startMs === moment.budget.day.startMs && known.firstStepMs <= fromMs
    const day = isPlanned ? known : evaluationDay(announced, expectation.forecast, fromMs)
    this.#evaluations = day
    const { following, decision } = followAnnounced(announced, day, moment)
    this.#expectation = { ...expectation, following }
    return decision
  }

  wantsRules(nowMs: number, { unitsPerDay }: BudgetView): boolean {
    return isReadingDue(this.#memory.announced, nowMs, unitsPerDay)
  }

  learnRules(reading: RulesReading): void {
    noteSpent(this.#memory.guard, reading.pages)
    noteReading(this.#memory.announced, reading)
    this.#evaluations = undefined
  }

  learnHistory(firedAtMs: readonly number[]): void {
    learnPast(this.#memory, this.#options, firedAtMs)
    this.#forecast = undefined
    this.#lookForMarks()
  }

  setHot(untilMs: number): void {
    this.#memory.hotUntilMs = Math.max(0, untilMs)
  }

  snapshot(): unknown {
    return saveMemory(this.#memory)
  }

  describe(): ScheduleView {
    const isKnown = this.#marks !== undefined || this.#markPeriod !== undefined
    const left = this.#marksLeft
    return {
      learnedFrom: Math.round(learnedAlerts(this.#memory.profile)),
      memory: this.#state,
      firing:
        describeMarks(this.#marks, this.#markPeriod) +
        (isKnown && left ? `, but ${marksLeftTexts[left]}` : ''),
      onMarks: isKnown && left === undefined,
      announced: describeAnnounced(this.#memory.announced),
      hotUntilMs: this.#memory.hotUntilMs,
    }
  }

  /** The first poll of the next day, which is rarely worth most at the very reset. */
  #planNextDay(lastAtMs: number | null, { day, unitsPerDay }: BudgetView): Decision {
    if (lastAtMs === null || unitsPerDay <= 0) return { atMs: day.endMs, reason: 'budget_spent' }
    const nextDay = { key: day.key, startMs: day.endMs, endMs: day.endMs + 86_400_000 }
    const next = this.#plan(lastAtMs, { unitsPerDay, unitsLeft: unitsPerDay, day: nextDay })
    return { ...next, atMs: Math.max(day.endMs, next.atMs) }
  }

  #planFew(few: FewDay, lastAtMs: number, { unitsLeft, day }: BudgetView): Decision {
    const earliestMs = lastAtMs + this.#options.minIntervalMs
    const ahead = few.chosen.filter((each) => each >= earliestMs && each > lastAtMs)
    const isKept = ahead.length === unitsLeft && (ahead[0] ?? 0) <= lastAtMs + few.longestMs
    const instants = isKept ? ahead : restOfFew(few, unitsLeft, lastAtMs)
    return { atMs: Math.max(instants[0] ?? day.endMs - 1, earliestMs), reason: 'expected' }
  }

  #fewDay(forecast: DayForecast, polls: number, longestMs: number): FewDay {
    const known = this.#few
    const isKnown = known?.forecast === forecast && known.even.length === polls
    if (isKnown && known.longestMs === longestMs) return known
    this.#few = fewDay(forecast, polls, longestMs)
    return this.#few
  }

  #forecastFor({ day }: BudgetView): DayForecast {
    const known = this.#forecast
    if (known?.day.startMs === day.startMs && known.day.endMs === day.endMs) return known
    this.#forecast = forecastBudgetDay(this.#memory.profile, day, this.#options)
    this.#evaluations = undefined
    return this.#forecast
  }

  /** Marks are planned with the gaps that the budget in force leaves. */
  #useBudget(unitsPerDay: number): void {
    if (unitsPerDay === this.#unitsPerDay) return
    this.#unitsPerDay = unitsPerDay
    const { lockedOn } = this.#memory
    if (lockedOn) this.#lockOn(lockedOn, true)
  }

  /** Locks, unlocks, and looks again once much more is known than when it looked last. */
  #lookForMarks(): void {
    const { phase, lockedOn } = this.#memory
    const wasLocked = lockedOn !== null
    const lost = wasLocked && !isProven(phase.secondGain, true)
    if (!lost && !knowsMore(phase, lockedOn, this.#lookedAt)) return
    // Marks that one odd batch was held against are followed again as soon as they are proven again.
    if (lost) noteLoss(phase)
    this.#lookedAt = lost ? 0 : phase.total
    this.#lockOn(phase, wasLocked)
    // Minutes of five that were not proven then are not after a restart either.
    const minuteGain = isProven(phase.minuteGain, wasLocked) ? phase.minuteGain : 0
    const isKnown = this.#marks !== undefined || this.#markPeriod !== undefined
    this.#memory.lockedOn = isKnown ? { ...structuredClone(phase), minuteGain } : null
  }

  /** On marks that are closer together than polls, or else on those of the minute. */
  #lockOn(phase: Phase, wasLocked: boolean): void {
    this.#markPeriod = findMarkPeriod(phase, wasLocked)
    this.#marks = this.#markPeriod
      ? undefined
      : planMarks(phase, limitsFor(this.#options, this.#unitsPerDay), wasLocked)
  }
}

/** With fewer units a day, no page of rules is bought. */
const unitsToRead = 200
/** The share of the units that pages of rules may cost while polls follow the announcements, and while they do not. */
const paidShare = { following: 0.02, testing: 0.005 }
const hourMs = 3_600_000
const checkMs = 6 * hourMs
/** The second reading comes half an hour after the first; after each reading that was of no use the pause is longer. */
const testMs = hourMs / 2
const testFactor = 4
const testMsMax = 8 * 24 * hourMs

/** Whether to read the rules now: for the first time, or to see whether what they announced is still right. */
function isReadingDue({ reading, follows }: Announced, nowMs: number, unitsPerDay: number): boolean {
  const { atMs, pages, useless } = reading
  if (unitsPerDay < unitsToRead) return false
  if (atMs === null || isFarAhead(atMs, nowMs)) return true
  const share = follows ? paidShare.following : paidShare.testing
  const paidMs = (24 * hourMs * pages) / (share * unitsPerDay)
  const pauseMs = useless === 0 ? checkMs : Math.min(testMsMax, testMs * testFactor ** (useless - 1))
  return nowMs >= atMs + Math.max(paidMs, pauseMs)
}

function memoryState(saved: unknown, restored: Memory | undefined): ScheduleView['memory'] {
  // Polls that all failed showed nothing to remember.
  if (restored)
    return restored.attempts.lastAtMs !== null && restored.recent.atMs === 0 ? 'fresh' : 'restored'
  return saved === undefined || saved === null ? 'fresh' : 'lost'
}

function describeMarks(marks: MarkPlan | undefined, markPeriod: MarkPeriod | undefined): string {
  if (markPeriod)
    return `every ${markPeriod.periodMs / 1_000} s; an alert waits ${markPeriod.waitSeconds.toFixed(1)} s until the poll just after the mark`
  if (!marks) return 'at any time, as far as seen'
  const second = ((marks.startMs + (marks.offsetsMs[0]?.[0] ?? 0)) / 1_000) % 60
  return `each minute; one poll is best at second ${second.toFixed(2)}, where an alert waits ${marks.waitSeconds.toFixed(1)} s`
}
