import { spanAt } from '../forecast/outlook.ts'
import { type MarkPlan, nextOnMarks } from '../marks/pattern.ts'
import { evenWaitsMax, type MarkPeriod, onNearMark } from '../marks/phase.ts'
import type { BudgetView, Decision, DecisionReason } from '../schedule.ts'
import { type Family, mixedPace, type Paces } from './family.ts'
import { evenPollAfter, evenPollsAfter, type Guard, keptShare, waitOnMarks } from './guard.ts'
import { clamp, type PaceLimits, type Response, respond, solveScale } from './solve.ts'

/**
 * One decision: the mixed pace is scaled to the units that are really left, and the next poll is due when one poll's
 * worth of it has passed since the last one. It depends on the memory, the time of the last poll and the units alone, so
 * asking again, or after a restart, gives the same answer.
 */
export interface DecisionState {
  readonly paces: Paces
  readonly family: Family
  readonly guard: Guard
  readonly budget: BudgetView
  readonly limits: PaceLimits
  /** The slowest pace while too many alerts waited long; otherwise that of `limits`. */
  readonly floor: number
  readonly marks: MarkPlan | undefined
  /** Marks that are closer together than polls. */
  readonly markPeriod: MarkPeriod | undefined
  readonly lateMs: number
  readonly lastAtMs: number
  readonly hotUntilMs: number
  readonly extraPagesPerDay: number
  readonly minIntervalMs: number
}

/** The pace is multiplied by this while an operator expects alerts. */
const hotFactor = 4
/** A gap that differs by so much from the even one is even. */
const snapTolerance = 0.15
/** With fewer units the pace changes within a gap: market at 10 units 0.61 of even with the polls of a clock, 0.56 without. */
const snapUnitsMin = 96

export function decide(moment: DecisionState): Decision {
  const { paces, family, budget, limits, lastAtMs, minIntervalMs } = moment
  const { outlook } = paces
  const { day, unitsLeft } = budget
  const secondsLeft = Math.max(1, day.endMs - outlook.fromMs) / 1_000
  // Where even the floor costs more than there is, what there is goes evenly.
  const affordable = (unitsLeft + 0.5) / secondsLeft
  const floor = Math.min(moment.floor, affordable)
  const marks = buysMarks(unitsLeft, limits, secondsLeft) ? moment.marks : undefined
  const units = spendable(moment) - (marks ? markReserve(budget, outlook.fromMs) : 0)
  const demands = hotPace(mixedPace(family, paces), moment)
  const response = marks?.responseTo(moment.floor)
  const bounds = { floor, ceiling: limits.ceiling }
  const scale = keptScale(moment, spansOf(outlook.seconds, demands, bounds, response), units)
  // Marks take only so many polls; what is left of the units goes between them.
  const mostOnMarks = clamp(response?.paces.at(-1) ?? 0, bounds.floor, bounds.ceiling) * secondsLeft
  const surplus = response ? Math.max(0, units - mostOnMarks) : 0
  const slowest = Math.min(limits.ceiling, floor + surplus / secondsLeft)
  const wishes = demands.map((demand) => demand * scale)
  const earliestMs = lastAtMs + minIntervalMs
  const latestMs = lastAtMs + Math.max(minIntervalMs, 1_000 / slowest)
  const next = marks
    ? nextOnMarks(marks, {
        fromMs: outlook.fromMs,
        earliestMs,
        latestMs,
        lateMs: moment.lateMs,
        wishAt: (atMs) => 60 * (wishes[spanAt(outlook, atMs)] ?? 0),
        rateAt: (atMs) => outlook.profileRecent.rates[spanAt(outlook, atMs)] ?? 0,
      })
    : walk(moment, wishes, bounds)
  if (marks && next.atMs >= day.endMs && unitsLeft >= 2) {
    // No mark is left today, and what is not spent expires.
    const evenMs = (day.endMs - outlook.fromMs) / (unitsLeft + 0.5)
    return { atMs: clamp(outlook.fromMs + evenMs, earliestMs, latestMs), reason: 'even' }
  }
  const beatMs =
    moment.markPeriod && !marks
      ? onNearMark(moment.markPeriod, clamp(next.atMs, earliestMs, latestMs), {
          earliestMs,
          latestMs: Math.min(latestMs, day.endMs - 1),
          lateMs: moment.lateMs,
        })
      : undefined
  if (beatMs !== undefined) return { atMs: beatMs, reason: 'mark' }
  const evenMs = marks ? undefined : evenInstant(moment, clamp(next.atMs, earliestMs, latestMs))
  const farthestMs = lastAtMs + 1_000 / Math.min(limits.floor, affordable)
  if (evenMs !== undefined && evenMs >= earliestMs && evenMs <= farthestMs)
    return { atMs: evenMs, reason: 'even' }
  if (next.atMs >= latestMs) return { atMs: latestMs, reason: next.reason === 'even' ? 'even' : 'floor' }
  return next.atMs <= earliestMs ? { atMs: earliestMs, reason: 'ceiling' } : next
}

/** Whether units are left beside those that the longest gap asks for: with none, polls cannot wait for marks. */
export function buysMarks(unitsLeft: number, { floor }: PaceLimits, secondsLeft: number): boolean {
  return unitsLeft + 0.5 - floor * secondsLeft >= 1
}

/** The rest of a day, in spans. */
export interface Spans {
  readonly seconds: readonly number[]
  pollsOf(span: number, scale: number): number
  /** The scale at which the first so many spans take so many units; `guess` is one that is thought to be near it. */
  scaleOf(count: number, units: number, guess?: number): number
}

export function spansOf(
  seconds: readonly number[],
  demands: readonly number[],
  bounds: PaceLimits,
  response?: Response,
): Spans {
  return {
    seconds,
    pollsOf: (span, scale) => {
      const wish = scale * (demands[span] ?? 0)
      const pace = clamp(response ? respond(response, wish) : wish, bounds.floor, bounds.ceiling)
      return pace * (seconds[span] ?? 0)
    },
    scaleOf: (count, units, guess) =>
      count === seconds.length
        ? solveScale(seconds, demands, units, bounds, response)
        : solveScale(seconds.slice(0, count), demands.slice(0, count), units, bounds, response, guess),
  }
}

/**
 * The scale of the spans ahead, such that at no time less is left than even polls of the rest would take, times the share
 * that the guard keeps: a day that turns out otherwise can go on evenly from any instant.
 */
export function keptScale(
  { paces, guard, budget }: Pick<DecisionState, 'paces' | 'guard' | 'budget'>,
  { seconds, ...spans }: Spans,
  units: number,
): number {
  const { fromMs } = paces.outlook
  const { day, unitsPerDay } = budget
  // Of the units that went elsewhere the rest of the day, too, misses its part.
  const even = ((unitsPerDay * 1_000) / (day.endMs - day.startMs)) * Math.max(0, 1 - guard.slower)
  let scale = spans.scaleOf(seconds.length, units)
  const secondsLeft = (day.endMs - fromMs) / 1_000
  // Whole polls fall on one side of an instant or the other, so half a unit more or less means nothing.
  const kept = even * Math.min(keptShare(guard), units / Math.max(1e-9, even * secondsLeft))
  for (let until = seconds.length; until > 1; ) {
    let left = units
    let worst = 0.5
    let at = 0
    let ahead = secondsLeft
    let unitsAt = 0
    for (let span = 0; span < until - 1; span++) {
      left -= spans.pollsOf(span, scale)
      ahead -= seconds[span] ?? 0
      const missing = kept * ahead - left
      if (missing > worst) [worst, at, unitsAt] = [missing, span + 1, units - kept * ahead]
    }
    if (at === 0) break
    until = at
    scale = spans.scaleOf(at, unitsAt, scale)
  }
  return scale
}

/**
 * The pace of the mix at an instant, as the guard lets it be: with the units that are really left, or, while polls follow another plan, with
 * those that its policies would have left.
 */
export function paceLeft(moment: DecisionState, isOther: boolean, atMs: number): number {
  const { family, paces, budget, floor, limits } = moment
  const own = family.unitsLeft.reduce((sum, each, policy) => sum + (family.weights[policy] ?? 0) * each, 0.5)
  const left = isOther ? own : budget.unitsLeft + 0.5
  const mixed = mixedPace(family, paces)[spanAt(paces.outlook, atMs)] ?? 0
  const affordable = (1_000 * left) / Math.max(1_000, budget.day.endMs - paces.outlook.fromMs)
  return clamp((mixed * left) / Math.max(0.5, own), Math.min(floor, Math.max(0, affordable)), limits.ceiling)
}

/**
 * What polls on marks save an alert, in even waits. While polls go on them, an alert waits until the poll that shows it; otherwise it would have
 * waited as such polls would leave it, half of the longest gap at most.
 */
export function savedByMarks(
  moment: DecisionState,
  marks: MarkPlan,
  isOther: boolean,
): (atMs: number, pollMs: number) => number {
  const { day, unitsPerDay } = moment.budget
  const evenWait = (day.endMs - day.startMs) / 2_000 / unitsPerDay
  const inEven = (seconds: number) => Math.min(evenWaitsMax, seconds / evenWait)
  const isOn = moment.marks !== undefined && !isOther
  return (atMs, pollMs) => {
    const pace = paceLeft(moment, false, atMs)
    const onMarks = () => Math.min(0.5 / moment.floor, waitOnMarks(marks, pace, atMs - moment.lateMs))
    const waited = isOn ? (pollMs - atMs) / 1_000 : onMarks()
    return inEven(1 / (2 * pace)) - inEven(waited)
  }
}

/** Where the plan is the even one, or nearly, its polls are the very polls of a clock; undefined where it is not. */
function evenInstant(moment: DecisionState, plannedMs: number): number | undefined {
  const { budget, lastAtMs, hotUntilMs } = moment
  const { day, unitsPerDay, unitsLeft } = budget
  // An operator asked for more polls than those of a clock.
  if (plannedMs < hotUntilMs) return undefined
  const gapMs = (day.endMs - day.startMs) / unitsPerDay
  const ratio = (plannedMs - lastAtMs) / gapMs
  // The units have to last for all polls of the clock that are still to come.
  const pollsAhead = evenPollsAfter(day, gapMs, Math.max(lastAtMs, day.startMs))
  if (unitsPerDay < snapUnitsMin || unitsLeft < pollsAhead) return undefined
  const next = evenPollAfter(day, gapMs, plannedMs - gapMs / 2)
  if (lastAtMs < day.startMs)
    return next < day.endMs && plannedMs < day.startMs + 0.65 * gapMs ? next : undefined
  if (ratio < 1 - snapTolerance || ratio > 1 + snapTolerance) return undefined
  return next < day.endMs && next > lastAtMs ? next : undefined
}

/** Half a gap is left before the end of the day, and half a gap has passed at its start. */
function passedOf({ lastAtMs, budget }: Pick<DecisionState, 'budget' | 'lastAtMs'>): number {
  return lastAtMs < budget.day.startMs ? 0.5 : 0
}

/** What the plan spends until half a gap after the last poll; what is kept for further pages shrinks with what is ahead. */
export function spendable(
  moment: Pick<DecisionState, 'budget' | 'paces' | 'extraPagesPerDay' | 'lastAtMs'>,
): number {
  const { budget, paces, extraPagesPerDay } = moment
  const { unitsLeft, day } = budget
  const ahead = clamp((day.endMs - paces.outlook.fromMs) / (day.endMs - day.startMs), 0, 1)
  return unitsLeft + 0.5 - passedOf(moment) - Math.min(unitsLeft / 2, extraPagesPerDay * ahead)
}

/** Whole polls a minute cannot follow the plan exactly; what that may cost is released in the last minutes. */
function markReserve({ unitsPerDay, unitsLeft, day }: BudgetView, fromMs: number): number {
  return Math.min(unitsLeft / 2, 0.001 * unitsPerDay * clamp((day.endMs - fromMs) / 900_000, 0, 1))
}

function hotPace(demands: readonly number[], { paces, hotUntilMs }: DecisionState): readonly number[] {
  const { fromMs, middleSeconds } = paces.outlook
  if (hotUntilMs <= fromMs) return demands
  return demands.map((demand, span) =>
    fromMs + (middleSeconds[span] ?? 0) * 1_000 < hotUntilMs ? demand * hotFactor : demand,
  )
}

/** The instant at which one poll's worth of the plan has passed since the last poll. */
function walk(moment: DecisionState, wishes: readonly number[], bounds: PaceLimits): Decision {
  const { outlook } = moment.paces
  let passed = passedOf(moment)
  let at = outlook.fromMs
  let pace = bounds.floor
  for (let span = 0; span < wishes.length; span++) {
    const wish = wishes[span] ?? 0
    pace = clamp(wish, bounds.floor, bounds.ceiling)
    const seconds = outlook.seconds[span] ?? 0
    if (passed + pace * seconds >= 1) {
      at += ((1 - passed) / pace) * 1_000
      return { atMs: at, reason: reasonOf(moment, wish, bounds, span, at) }
    }
    passed += pace * seconds
    at += seconds * 1_000
  }
  // The day ends first. Its last pace goes on into the next one, whose plan decides from then on.
  return { atMs: at + ((1 - passed) / pace) * 1_000, reason: 'expected' }
}

function reasonOf(
  { paces, family, hotUntilMs }: DecisionState,
  wish: number,
  bounds: PaceLimits,
  span: number,
  atMs: number,
): DecisionReason {
  if (wish >= bounds.ceiling) return 'ceiling'
  if (wish <= bounds.floor) return 'floor'
  if (atMs < hotUntilMs) return 'hot'
  const { profile, profileRecent } = paces.outlook
  if ((profileRecent.rates[span] ?? 0) > 2 * (profile.rates[span] ?? 0)) return 'burst'
  return (family.weights[0] ?? 0) > 0.5 ? 'even' : 'expected'
}
