import type { DayForecast } from '../forecast/outlook.ts'
import type { BudgetDay } from '../schedule.ts'

/**
 * Where a handful of polls goes in a day. A pace says little about three polls: their instants are chosen together, each
 * just after the alerts that it is for. What comes after the last poll waits for the first one of the next day, which is
 * taken to be at the same time of day.
 */

/** Up to so many units a day: with two, market 0.38 of even instead of 0.74. */
export const fewUnits = 4
/** Chosen instants follow every whim of the forecast: they are taken while they would have cost a tenth less than even ones. */
const worthwhile = 0.9

/** What alerts would have waited for polls at chosen instants, and at even ones, in milliseconds; fading from day to day. */
export interface FewScore {
  chosen: number
  even: number
}

/** Counts an event of a day with these chosen instants for both. */
export function scoreFew(
  score: FewScore,
  { day }: DayForecast,
  chosen: readonly number[],
  atMs: number,
): void {
  score.chosen += waitFor(chosen, day.endMs - day.startMs, atMs)
  score.even += waitFor(evenInstants(day, chosen.length), day.endMs - day.startMs, atMs)
}

export function isWorthwhile({ chosen, even }: FewScore): boolean {
  return chosen < worthwhile * even
}

export function evenInstants({ startMs, endMs }: BudgetDay, polls: number): number[] {
  return Array.from({ length: polls }, (_, k) => startMs + ((k + 0.5) / polls) * (endMs - startMs))
}

/** Until the next of these instants, which come every day; an event of the evening before is one of that day's. */
function waitFor(instants: readonly number[], dayMs: number, atMs: number): number {
  const coming = [-dayMs, 0, dayMs].flatMap((shift) => instants.map((each) => each + shift - atMs))
  return coming.find((wait) => wait >= 0) ?? 0
}

interface Plan {
  readonly cost: number
  /** The half hours at whose ends polls go. */
  readonly ends: readonly number[]
}

/** Instants of so many polls with the least waiting. */
export function fewInstants({ day, halfHours }: DayForecast, polls: number): number[] {
  const size = halfHours.rates.length
  const dayMs = day.endMs - day.startMs
  const events = runningSums(Array.from(halfHours.rates))
  const moments = runningSums(Array.from(halfHours.rates, (rate, at) => rate * (at + 0.5)))
  const between = (from: number, to: number) => (events[to] ?? 0) - (events[from] ?? 0)
  /** What waits from the end of one half hour on for a poll at the end of another. */
  const waiting = (from: number, to: number) =>
    to * between(from, to) - ((moments[to] ?? 0) - (moments[from] ?? 0))
  const overnight = (last: number, first: number) => waiting(last, size) + first * between(last, size)
  let best: Plan = { cost: Number.POSITIVE_INFINITY, ends: [] }
  for (let first = 1; first <= size; first++) {
    let plans: Plan[] = Array.from({ length: size + 1 }, (_, end) => ({
      cost: end === first ? waiting(0, first) : Number.POSITIVE_INFINITY,
      ends: [first],
    }))
    for (let poll = 1; poll < polls; poll++) plans = plans.map((_, end) => extend(plans, end, waiting))
    for (const [end, { cost, ends }] of plans.entries())
      if (cost + overnight(end, first) < best.cost) best = { cost: cost + overnight(end, first), ends }
  }
  return best.ends.map((end) => day.startMs + (end / size) * dayMs)
}

/** The best plan with one more poll, at `end`. */
function extend(plans: readonly Plan[], end: number, waiting: (from: number, to: number) => number): Plan {
  let best = 0
  let bestCost = Number.POSITIVE_INFINITY
  for (let before = 1; before < end; before++) {
    const cost = (plans[before]?.cost ?? Number.POSITIVE_INFINITY) + waiting(before, end)
    if (cost < bestCost) [best, bestCost] = [before, cost]
  }
  return { cost: bestCost, ends: [...(plans[best]?.ends ?? []), end] }
}

function runningSums(values: readonly number[]): number[] {
  const sums = [0]
  for (const value of values) sums.push((sums.at(-1) ?? 0) + value)
  return sums
}
