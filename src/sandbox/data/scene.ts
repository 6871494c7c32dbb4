import type { Listing } from '../market.ts'
import { chance } from './sessions.ts'

/** Of which seed the market is, and when it is looked at. */
export interface Scene {
  readonly seed: number
  readonly nowMs: number
}

/** What persons bought and sold of the day's value, in percent. */
export function retailShareOf({ id }: Listing, seed: number, day: number): { buy: number; sell: number } {
  const share = (use: number) => Math.round(chance(seed, id, day, use) * 1_000) / 10
  return { buy: share(20), sell: share(21) }
}

export function twoDigits(value: number): number {
  return Math.round(value * 100) / 100
}
