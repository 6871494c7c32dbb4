import { budgetDay } from './budget.ts'
import type { Schedule, ScheduleOptions } from './schedule.ts'

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
 * halved until its ends are within one per cent, or one unit.
 */
export function smallestBudget(
  target: Target,
  unitsMax: number,
  lagAt: (unitsPerDay: number) => Lags,
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
  return { unitsPerDay: high, budgets: table(high) }

  function table(units: number): BudgetLag[] {
    const budgets = [...new Set(around.map((factor) => within(factor * units)))]
    return budgets.map((unitsPerDay) => ({ unitsPerDay, lag: known.get(unitsPerDay) ?? lagAt(unitsPerDay) }))
  }
}
