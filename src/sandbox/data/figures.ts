import type { Listing } from '../market.ts'
import { chance, dayOf } from './sessions.ts'

/**
 * What a company filed, quarter by quarter, from the seed: statements, valuations, holders and the screener's readings all
 * follow from these figures. In rial.
 */
export interface Quarter {
  readonly revenue: number
  readonly grossProfit: number
  readonly operatingProfit: number
  readonly financeCosts: number
  readonly netProfit: number
  readonly operatingCashFlow: number
  readonly capex: number
}

export const quarterDays = 91

/** The latest quarter with a letter, counted from the epoch; letters come within 60 days after its end. */
export function latestQuarter({ id }: Listing, seed: number, nowMs: number): number {
  return Math.floor((dayOf(nowMs - publishedMs) - letterLagDays(id, seed)) / quarterDays)
}

/** Letters come out at 15:30 in Tehran, which is 12:00 UTC. */
const publishedMs = 15.5 * 3_600_000

export function letterLagDays(id: number, seed: number): number {
  return 5 + Math.floor(chance(seed, id, 0, 40) * 55)
}

export function shareCountOf({ id }: Listing, seed: number): number {
  return 1_000_000_000 * (10 + Math.floor(chance(seed, id, 0, 30) * 90))
}

function quarterOf(of: Listing, seed: number, quarter: number): Quarter {
  const { id, price } = of
  const trait = (use: number) => chance(seed, id, 0, use)
  const grown = 1.04 ** (quarter - 220) * (0.85 + 0.3 * chance(seed, id, quarter, 42))
  const revenue = Math.round(price * shareCountOf(of, seed) * (0.1 + 0.3 * trait(31)) * grown)
  const grossProfit = Math.round(
    revenue * (0.12 + 0.3 * trait(33) + 0.06 * (chance(seed, id, quarter, 43) - 0.5)),
  )
  const operatingProfit = Math.round(grossProfit - revenue * (0.04 + 0.08 * trait(34)))
  const financeCosts = Math.round(revenue * 0.05 * trait(35))
  const netProfit = Math.round((operatingProfit - financeCosts) * 0.85)
  const operatingCashFlow = Math.round(netProfit * (0.6 + 0.7 * chance(seed, id, quarter, 44)))
  const capex = Math.round(revenue * (0.01 + 0.06 * trait(36)))
  return { revenue, grossProfit, operatingProfit, financeCosts, netProfit, operatingCashFlow, capex }
}

/** The sum of `count` quarters up to `quarter`. */
export function sumOf(of: Listing, seed: number, quarter: number, count: number): Quarter {
  const parts = Array.from({ length: count }, (_, back) => quarterOf(of, seed, quarter - back))
  const sum = (key: keyof Quarter) => parts.reduce((total, part) => total + part[key], 0)
  return {
    revenue: sum('revenue'),
    grossProfit: sum('grossProfit'),
    operatingProfit: sum('operatingProfit'),
    financeCosts: sum('financeCosts'),
    netProfit: sum('netProfit'),
    operatingCashFlow: sum('operatingCashFlow'),
    capex: sum('capex'),
  }
}

/** Percent of the shares, the largest holder first; what is left floats. */
export function holdingsOf({ id }: Listing, seed: number): number[] {
  const registered = Math.round(55 + chance(seed, id, 0, 32) * 30)
  const [first, second] = [Math.round(registered * 0.6), Math.round(registered * 0.25)]
  return [first, second, registered - first - second]
}
