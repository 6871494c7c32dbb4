import { budgetDay } from './budget.ts'
import { type MarkPattern, type MarkPlan, pollsInSlot } from './marks/pattern.ts'
import type { Phase } from './marks/phase.ts'
import { visitsOf, waitsOnMarks } from './pace/guard.ts'
import { clamp } from './pace/solve.ts'
import type { BudgetDay, Schedule, ScheduleOptions } from './schedule.ts'

/** What a schedule would have done with a history. Lags in milliseconds, in the order of the alerts. */
interface Simulation {
  readonly polls: readonly number[]
  readonly unitsPerDayMax: number
  readonly lagsMs: Float64Array
}

/**
 * Puts a history (firing times, ascending, at least one) through a schedule with a simulated clock: a unit a poll,
 * calls that take no time, the first budget day that of the first alert. It ends with the budget day of the last
 * alert, or with the poll that sees the last alert where that comes later.
 */
export function simulate(times: readonly number[], schedule: Schedule, options: ScheduleOptions): Simulation {
  const polls: number[] = []
  const lagsMs = new Float64Array(times.length)
  const endMs = budgetDay(times.at(-1) ?? 0, options).endMs
  let day = budgetDay(times[0] ?? 0, options)
  let nowMs = day.startMs
  let used = 0
  let unitsPerDayMax = 0
  let seen = 0
  for (;;) {
    const budget = { unitsPerDay: options.unitsPerDay, unitsLeft: options.unitsPerDay - used, day }
    nowMs = Math.ceil(Math.max(nowMs, schedule.next(nowMs, budget).atMs))
    if (nowMs >= endMs && seen === times.length) return { polls, unitsPerDayMax, lagsMs }
    if (nowMs >= day.endMs) {
      day = budgetDay(nowMs, options)
      used = 0
    }
    const from = seen
    for (; seen < times.length && (times[seen] ?? 0) <= nowMs; seen++)
      lagsMs[seen] = nowMs - (times[seen] ?? 0)
    const firedAtMs = times.slice(from, seen)
    schedule.observe({ atMs: nowMs, ok: true, firedAtMs, pages: 1, pagesLeft: 'none' })
    polls.push(nowMs)
    used++
    unitsPerDayMax = Math.max(unitsPerDayMax, used)
  }
}

export interface LagSummary {
  readonly mean: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

/** Seconds, to the millisecond; percentiles by the nearest rank. */
export function summarizeLags(lagsMs: Float64Array): LagSummary {
  const sorted = lagsMs.toSorted()
  const rank = (share: number) => (sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0) / 1_000
  const mean = sorted.reduce((sum, lag) => sum + lag, 0) / Math.max(1, sorted.length) / 1_000
  return {
    mean: Math.round(mean * 1_000) / 1_000,
    p50: rank(0.5),
    p95: rank(0.95),
    p99: rank(0.99),
    max: rank(1),
  }
}

/** The lags of polls that lie evenly in every budget day, half a gap from its ends. */
export function evenLags(times: readonly number[], options: ScheduleOptions): Float64Array {
  return Float64Array.from(times, (at) => {
    const day = budgetDay(at, options)
    const gapMs = (day.endMs - day.startMs) / options.unitsPerDay
    const poll = Math.ceil((at - day.startMs) / gapMs - 0.5) + 0.5
    return day.startMs + poll * gapMs - at
  })
}

/** The smallest budget that reaches a lag, and what budgets around it reach. */

export const lagMeasures = ['mean', 'p50', 'p95', 'p99'] as const
type LagMeasure = (typeof lagMeasures)[number]
export type Lags = Pick<LagSummary, LagMeasure>

export interface Target {
  readonly measure: LagMeasure
  readonly seconds: number
}

interface BudgetLag {
  readonly unitsPerDay: number
  readonly lag: Lags
}

export interface TargetAnswer {
  /** undefined where no budget up to the largest reaches the target. */
  readonly unitsPerDay: number | undefined
  /** Budgets around it, the smallest first; where none reaches it, around the largest. */
  readonly budgets: readonly BudgetLag[]
}

const around = [0.5, 0.75, 1, 1.5, 2]
const firstUnits = 500
/** Budgets this close to each other reach the same: polls fall a little differently at each. */
const closeness = 1.01

/**
 * Lag falls about as units grow, so the first guess follows from one budget that was tried; from there on the bracket is
 * halved until its ends are within one per cent, or one unit. Few units are placed one by one, and more of them may do worse: each number
 * up to `fewMax` is tried where the answer may be one of these.
 */
export function smallestBudget(
  target: Target,
  unitsMax: number,
  lagAt: (unitsPerDay: number) => Lags,
  fewMax = 0,
): TargetAnswer {
  const known = new Map<number, Lags>()
  const reach = (units: number) => {
    const lag = known.get(units) ?? lagAt(units)
    known.set(units, lag)
    return lag[target.measure] <= target.seconds
  }
  const within = (units: number) => Math.min(unitsMax, Math.max(1, Math.round(units)))
  const first = within(firstUnits)
  reach(first)
  const guess = within((first * (known.get(first)?.[target.measure] ?? 0)) / target.seconds)
  let [low, high] = reach(guess) ? [within(guess / 1.2), guess] : [guess, within(guess * 1.2)]
  while (low > 1 && reach(low)) [low, high] = [within(low / 2), low]
  while (high < unitsMax && !reach(high)) [low, high] = [high, within(high * 2)]
  if (!reach(high)) return { unitsPerDay: undefined, budgets: table(high) }
  if (reach(low)) high = low
  while (high - low > 1 && high / low > closeness) {
    const middle = within(Math.sqrt(low * high))
    if (middle === low || middle === high) break
    if (reach(middle)) high = middle
    else low = middle
  }
  const few = high > 2 * fewMax ? [] : Array.from({ length: Math.min(high - 1, fewMax) }, (_, at) => at + 1)
  const unitsPerDay = few.find(reach) ?? high
  return { unitsPerDay, budgets: table(unitsPerDay) }

  function table(units: number): BudgetLag[] {
    const budgets = [...new Set(around.map((factor) => within(factor * units)))]
    return budgets.map((unitsPerDay) => ({ unitsPerDay, lag: known.get(unitsPerDay) ?? lagAt(unitsPerDay) }))
  }
}

/** The middles of the quarters of a second. */
const quartersMs = [125, 375, 625, 875]

/** A share of the alerts, and what these wait at least and on average. */
export interface Wait {
  readonly share: number
  readonly leastSeconds: number
  readonly seconds: number
}

/**
 * What alerts that fire as those of `phase` did wait, where a wish for so many polls a minute leads to a pace of so many a second.
 * Where they would wait for longer than the longest gap, polls come between marks, and an alert waits for any part of it.
 */
function waitsOfFirings(
  plan: MarkPattern,
  phase: Phase,
  { wish, pace, longestSeconds }: { wish: number; pace: number; longestSeconds: number },
): Wait[] {
  const visits = visitsOf(plan, 300 * pace)
  const total = phase.seconds.reduce((sum, count) => sum + count, 0)
  const most = (slot: number) => pollsInSlot(plan, slot, wish)
  const sumOver = (of: (polls: number) => number) =>
    visits.reduce((sum, visited, slot) => sum + visited * of(most(slot)), 0)
  // Where polls do not suffice for as many in each slot, some have one fewer.
  const [missing, more] = [sumOver((polls) => polls) - 300 * pace, sumOver((polls) => Math.min(1, polls - 1))]
  const fewer = clamp(missing / Math.max(1e-9, more), 0, 1)
  const numbers = [
    { part: 1 - fewer, pollsIn: most },
    { part: fewer, pollsIn: (slot: number) => Math.max(1, most(slot) - 1) },
  ].filter(({ part }) => part > 0)
  // By whole seconds; -1 stands for the longest gap.
  const parts = new Map<number, { share: number; seconds: number }>()
  for (const [second, count] of phase.seconds.entries()) {
    if (count === 0) continue
    const instants = numbers.flatMap((each) => quartersMs.map((quarterMs) => ({ ...each, quarterMs })))
    for (const { part, pollsIn, quarterMs } of instants)
      for (const wait of waitsOnMarks(plan, visits, pollsIn, second * 1_000 + quarterMs)) {
        const isLonger = wait.seconds > longestSeconds
        const key = isLonger ? -1 : Math.floor(wait.seconds)
        const sum = parts.get(key) ?? { share: 0, seconds: 0 }
        const share = (part * wait.share * count) / total / quartersMs.length
        sum.share += share
        sum.seconds += share * (isLonger ? longestSeconds / 2 : wait.seconds)
        parts.set(key, sum)
      }
  }
  return Array.from(parts, ([second, { share, seconds }]) => ({
    share,
    leastSeconds: Math.max(0, second),
    seconds: seconds / share,
  }))
}

/** Paces that are within 3 % of each other count as one, so that steps which are alike share their waits. */
export function rememberWaits(phase: Phase) {
  const known = new Map<string, readonly Wait[]>()
  return (plan: MarkPlan, paced: Parameters<typeof waitsOfFirings>[2]): readonly Wait[] => {
    const key = [paced.pace, paced.longestSeconds].map((each) => Math.round(20 * Math.log2(each))).join()
    const waits = known.get(key) ?? waitsOfFirings(plan, phase, paced)
    known.set(key, waits)
    return waits
  }
}

/** What alerts that fire at any time of a part of a day wait for the next of these instants, which come every day; ascending. */
export function waitsUntil(
  instants: readonly number[],
  { startMs, endMs }: BudgetDay,
  fromMs: number,
  toMs: number,
): Wait[] {
  const waits: Wait[] = []
  for (let at = fromMs; at < toMs; ) {
    const nextMs = instants.find((each) => each > at) ?? (instants[0] ?? startMs) + endMs - startMs
    const untilMs = Math.min(toMs, nextMs)
    const share = (untilMs - at) / (toMs - fromMs)
    const [leastSeconds, seconds] = [(nextMs - untilMs) / 1_000, (nextMs - (at + untilMs) / 2) / 1_000]
    waits.push({ share, leastSeconds, seconds })
    at = untilMs
  }
  return waits
}

/** The wait that so many of the expected alerts do not exceed, by halving. */
export function waitOfShare(
  alerts: number,
  steps: readonly {
    readonly alerts: number
    readonly lagSeconds: number
    readonly waits?: readonly Wait[]
  }[],
): number {
  const alike = new Map<readonly Wait[], number>()
  const waits: { alerts: number; from: number; span: number }[] = []
  for (const { waits: each, alerts: some, lagSeconds } of steps)
    if (each) alike.set(each, (alike.get(each) ?? 0) + some)
    else waits.push({ alerts: some, from: 0, span: 2 * lagSeconds })
  for (const [parts, some] of alike)
    for (const { share, leastSeconds, seconds } of parts)
      waits.push({ alerts: share * some, from: leastSeconds, span: 2 * (seconds - leastSeconds) })
  let low = 0
  let high = waits.reduce((most, { from, span }) => Math.max(most, from + span), 0)
  for (let round = 0; round < 24; round++) {
    const wait = (low + high) / 2
    const within = waits.reduce(
      (sum, { alerts: some, from, span }) => sum + some * clamp((wait - from) / Math.max(1e-9, span), 0, 1),
      0,
    )
    if (within < alerts) low = wait
    else high = wait
  }
  return high
}
