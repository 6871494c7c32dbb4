import { type DayPlan, rateAt, stepAt, stepMs } from './day-plan.ts'
import { tideLasts, tideOf, usualDemand } from './demand.ts'
import { type MarkPlan, pollsFor } from './mark-plan.ts'
import { nextOnMarks } from './mark-walk.ts'
import type { Memory } from './memory.ts'
import type { ScheduleOptions } from './options.ts'
import { expectedRate, type Outlook, outlookAt } from './outlook.ts'
import { addSpan, clamp, createSpans, type Limits, mostPolls, type Spans, solveScale } from './pace.ts'
import type { BudgetView, Decision, DecisionReason } from './schedule.ts'

/**
 * One decision of the learned schedule: what the rest of the day demands, the scale that spends the units on it, and
 * the instant at which one poll's worth of it has passed since the last poll. It depends on the memory, the time of the
 * last poll and the units alone, so asking again, or after a restart, gives the same answer.
 */

/** The near future is looked at closely, for bursts fade within minutes. */
const nearSeconds = [1, 2, 4, 8, 15, 30, 30, 60, 90, 120, 240]
/** What an operator's word multiplies the demand by. */
const hotFactor = 4
/** Kept for further pages at the start of the day, as a share of the units. */
const reserveShare = 0.005
const learnedLeast = 10

const spans: Spans = createSpans(400)

interface Situation {
  readonly memory: Memory
  readonly options: ScheduleOptions
  readonly plan: DayPlan
  readonly budget: BudgetView
  /** The last poll, or the start of the day where that is later. */
  readonly fromMs: number
  readonly outlook: Outlook
  readonly limits: PaceLimits
}

export function decide(
  memory: Memory,
  options: ScheduleOptions,
  plan: DayPlan,
  pattern: MarkPlan | undefined,
  budget: BudgetView,
  lastAtMs: number,
  learned: number,
): Decision {
  const fromMs = Math.max(lastAtMs, plan.day.startMs)
  const limits = limitsFor(options, plan, budget.unitsLeft + 0.5, fromMs)
  const marks = limits.slack >= 1 ? pattern : undefined
  const outlook = outlookAt(memory.intensity, fromMs)
  const units = spendable(memory, budget, fromMs) - (marks ? markReserve(budget, fromMs) : 0)
  const situation: Situation = { memory, options, plan, budget, fromMs, outlook, limits }
  fillSpans(situation)
  const response = marks && ((perSecond: number) => pollsFor(marks, perSecond))
  memory.scale = solveScale(spans, units, limits, memory.scale, response)
  const surplus = response ? Math.max(0, units - mostPolls(spans, limits, response)) : 0
  const floor = Math.min(
    limits.ceiling,
    limits.floor + (surplus * 1_000) / Math.max(1, plan.day.endMs - fromMs),
  )
  const earliestMs = lastAtMs + options.minIntervalMs
  const latestMs = lastAtMs + Math.max(options.minIntervalMs, 1_000 / floor)
  const paced = memory.behind
    ? catchUp(situation)
    : marks
      ? onMarks(marks, situation, earliestMs, latestMs)
      : walk(situation, learned)
  if (marks && paced.atMs >= plan.day.endMs && budget.unitsLeft >= 2) {
    // No mark is left today, and what is not spent expires.
    const evenMs = (plan.day.endMs - fromMs) / (budget.unitsLeft + 0.5)
    return { atMs: Math.min(latestMs, Math.max(earliestMs, fromMs + evenMs)), reason: 'even' }
  }
  if (paced.atMs >= latestMs) return { atMs: latestMs, reason: paced.reason === 'even' ? 'even' : 'floor' }
  if (paced.atMs <= earliestMs)
    return { atMs: earliestMs, reason: paced.reason === 'catch_up' ? 'catch_up' : 'ceiling' }
  return paced
}

/** Polls a second that are wished for at an instant, before floor and ceiling. */
function wishAt({ memory, options, plan, outlook, fromMs }: Situation, atMs: number): number {
  const rate = expectedRate(outlook, rateAt(plan, atMs), (atMs - fromMs) / 1_000)
  return memory.scale * rate ** options.exponent * (atMs < memory.hotUntilMs ? hotFactor : 1)
}

function onMarks(marks: MarkPlan, situation: Situation, earliestMs: number, latestMs: number): Decision {
  const { memory, plan, outlook, fromMs } = situation
  return nextOnMarks(marks, {
    fromMs,
    earliestMs,
    latestMs,
    lateMs: memory.phase.lateMs,
    wishAt: (atMs) => 60 * wishAt(situation, atMs),
    rateAt: (atMs) => expectedRate(outlook, rateAt(plan, atMs), (atMs - fromMs) / 1_000),
  })
}

/** Half a gap is left before the end of the day, and the reserve for further pages shrinks with what is ahead. */
function spendable(
  { extraPages }: Memory,
  { unitsLeft, unitsPerDay, day }: BudgetView,
  fromMs: number,
): number {
  const ahead = clamp((day.endMs - fromMs) / (day.endMs - day.startMs), 0, 1)
  const reserve = (reserveShare * unitsPerDay + extraPages.average) * ahead
  return unitsLeft + 0.5 - Math.min(unitsLeft / 2, reserve)
}

/** Whole polls a slot cannot follow the plan exactly; what that may cost is released in the last minutes. */
function markReserve({ unitsPerDay, unitsLeft, day }: BudgetView, fromMs: number): number {
  return Math.min(unitsLeft / 2, 0.001 * unitsPerDay * clamp((day.endMs - fromMs) / 900_000, 0, 1))
}

interface PaceLimits extends Limits {
  /** Units beyond those that the floor takes until the end of the day. */
  readonly slack: number
}

/** Where even the floor costs more than there is, what there is goes evenly. */
function limitsFor(options: ScheduleOptions, { day }: DayPlan, units: number, fromMs: number): PaceLimits {
  const even = (options.unitsPerDay * 1_000) / (day.endMs - day.startMs)
  const ceiling = 1_000 / options.minIntervalMs
  const wanted = Math.min(ceiling, Math.max(1_000 / options.maxIntervalMs, options.floor * even))
  const secondsLeft = Math.max(1, day.endMs - fromMs) / 1_000
  return { floor: Math.min(wanted, units / secondsLeft), ceiling, slack: units - wanted * secondsLeft }
}

/** The near future by its expected alerts, bursts included; the rest of the day by its profile at today's level. */
function fillSpans(situation: Situation): void {
  const { memory, options, plan, outlook, fromMs } = situation
  const { day, demands } = plan
  spans.length = 0
  let at = fromMs
  for (const seconds of nearSeconds) {
    const length = Math.min(seconds, (day.endMs - at) / 1_000)
    if (length <= 0) return
    const middle = at + length * 500
    const rate = expectedRate(outlook, rateAt(plan, middle), (middle - fromMs) / 1_000)
    addSpan(spans, length, rate ** options.exponent * (middle < memory.hotUntilMs ? hotFactor : 1))
    at += length * 1_000
  }
  const factor = outlook.level ** options.exponent * usualDemand(memory.demand)
  const tide = tideOf(memory.demand) - 1
  for (let step = stepAt(plan, at); step < demands.length && at < day.endMs; step++) {
    const end = Math.min(day.endMs, day.startMs + (step + 1) * stepMs)
    const wave = 1 + tide * tideLasts((at - fromMs) / 1_000)
    const hot = at < memory.hotUntilMs ? hotFactor : 1
    addSpan(spans, (end - at) / 1_000, factor * wave * hot * (demands[step] ?? 0))
    at = end
  }
}

/** The instant at which one poll's worth of the plan has passed since the last poll. */
function walk(situation: Situation, learned: number): Decision {
  const { memory, plan, limits, fromMs, outlook } = situation
  let passed = 0
  let at = fromMs
  for (let span = 0; span < spans.length; span++) {
    const wish = memory.scale * (spans.demand[span] ?? 0)
    const rate = clamp(wish, limits.floor, limits.ceiling)
    const seconds = spans.seconds[span] ?? 0
    if (passed + rate * seconds >= 1) {
      at += ((1 - passed) / rate) * 1_000
      return { atMs: at, reason: reasonOf(memory, wish, limits, outlook, rateAt(plan, at), at, learned) }
    }
    passed += rate * seconds
    at += seconds * 1_000
  }
  // The day ends first. Its last pace goes on into the next one, whose plan decides from then on.
  const last = clamp(memory.scale * (spans.demand[spans.length - 1] ?? 0), limits.floor, limits.ceiling)
  return { atMs: at + ((1 - passed) / last) * 1_000, reason: 'expected' }
}

function reasonOf(
  memory: Memory,
  wish: number,
  limits: Limits,
  outlook: Outlook,
  base: number,
  atMs: number,
  learned: number,
): DecisionReason {
  if (wish >= limits.ceiling) return 'ceiling'
  if (wish <= limits.floor) return 'floor'
  if (atMs < memory.hotUntilMs) return 'hot'
  if (expectedRate(outlook, base, 0) > 2 * base * outlook.level) return 'burst'
  return learned < learnedLeast ? 'even' : 'expected'
}

/** Alerts that wait unread on a full page. */
const alertsOnPage = 100

/**
 * A further page competes with fresh polls in the same coin: it is bought once the hundred alerts that wait on it have
 * waited together as long as a fresh poll's alerts would have.
 */
function catchUp(situation: Situation): Decision {
  const { plan, outlook, limits, fromMs } = situation
  const rate = expectedRate(outlook, rateAt(plan, fromMs), 0)
  const gap = 1 / clamp(wishAt(situation, fromMs), limits.floor, limits.ceiling)
  const seconds = Math.min(gap, (0.5 * rate * gap * gap) / alertsOnPage)
  return { atMs: fromMs + seconds * 1_000, reason: 'catch_up' }
}
