import type { LagSummary } from './simulate.ts'

/** The smallest budget that reaches a lag, and what budgets around it reach. */

export const lagMeasures = ['mean', 'p50', 'p95', 'p99'] as const
export type LagMeasure = (typeof lagMeasures)[number]
export type Lags = Pick<LagSummary, LagMeasure>

export interface Target {
  readonly measure: LagMeasure
  readonly seconds: number
}

export interface BudgetLag {
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
