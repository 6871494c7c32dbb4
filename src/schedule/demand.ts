/**
 * Demand for polls as it came against demand as the day's plan had it. Bursts take more than the profile knows of and
 * lulls less; and what is more, or less, in one hour is likely to go on into the next.
 */
export interface Demand {
  /** Of the last days, in demand-days, and the days that they are of; all fading from day to day. */
  real: number
  planned: number
  days: number
  /** The same of the last hours. */
  lateReal: number
  latePlanned: number
}

/** What yesterday keeps of its weight. */
const kept = 0.9
/** Days of demand that come before the ratio is half believed. */
const cautionDays = 0.3
/** How long an unforeseen wave of alerts shows, and how much average demand, in days, makes one believed. */
const tideSeconds = 5_400
const tideCautionDays = 0.04
const tideBounds = { low: 0.3, high: 5 }

export function emptyDemand(): Demand {
  return { real: 0, planned: 0, days: 0, lateReal: 0, latePlanned: 0 }
}

export function fadeDemand(demand: Demand): void {
  demand.real *= kept
  demand.planned *= kept
  demand.days *= kept
}

/** Takes in `seconds` with a demand of `real` where the plan had `planned`. */
export function noteDemand(demand: Demand, seconds: number, real: number, planned: number): void {
  const days = seconds / 86_400
  demand.real += days * real
  demand.planned += days * planned
  demand.days += days
  const left = Math.exp(-seconds / tideSeconds)
  demand.lateReal = demand.lateReal * left + days * real
  demand.latePlanned = demand.latePlanned * left + days * planned
}

/** What the plan's demand has to be multiplied by on an ordinary day. */
export function usualDemand({ real, planned, days }: Demand): number {
  return real > 0 && planned > 0 ? (real / planned) ** (days / (days + cautionDays)) : 1
}

/** What it has to be multiplied by on top of that now: above 1 in a wave that was not foreseen. */
export function tideOf(demand: Demand): number {
  const { planned, days, lateReal, latePlanned } = demand
  if (days <= 0 || planned <= 0) return 1
  const caution = (tideCautionDays * planned) / Math.max(0.05, days)
  const usual = usualDemand(demand)
  const tide = (lateReal + caution * usual) / (usual * (latePlanned + caution))
  return Math.min(tideBounds.high, Math.max(tideBounds.low, tide))
}

/** How much of a tide is left after so many seconds. */
export function tideLasts(seconds: number): number {
  return Math.exp(-seconds / tideSeconds)
}
