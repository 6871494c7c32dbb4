import type { BudgetDay } from '../schedule.ts'

/**
 * What keeps the plan from being worse than a clock. Every alert shows when it fired, so what evenly spaced polls would
 * have made of it is known exactly. The guard keeps the account: alert by alert, what the plan won or lost against them,
 * in mean lags of even polls. The plan may leave the even pace only with what it has won (a conservative policy: Wu,
 * Shariff, Lattimore and Szepesvari, *Conservative bandits*, ICML 2016). README.md has the bound.
 */
export interface Guard {
  /** Won against even polls; fading from day to day. */
  won: number
  dayStartMs: number | null
  /** Alerts, fading, and of these the ones that waited longer than two even intervals, or nearly. */
  seen: number
  long: number
  /** The most alerts that one poll saw, fading. */
  heap: number
}

/** What a plan starts with: so many mean lags may be lost before anything is known. */
const wonAtFirst = 10
/** What each alert adds to what was won: how much worse than even polls the plan may be in the long run. */
const allowedExcess = 0.03
/** What a day leaves of what was won. */
const wonKept = 0.97
/**
 * Alerts of a day that nobody foresaw, for which units are kept back, and the bounds of the part that is kept. With 3,500 and
 * 0.65 a giant day of 8,000 alerts after a session of 200 a day costs 1.05 of even (2.24 without); with 2,000 and 0.55 1.20. The
 * price: alerts that foretell others 0.40 instead of 0.38 at 2,000 units, a session without an evening 0.35 instead of 0.22. With
 * more than 0.93 a session just after the reset could win nothing.
 */
const unforeseenAlerts = 3_500
const keptShareMin = 0.65
const keptShareMax = 0.93

/** p99 leaves room for one alert in a hundred that waits two even intervals; so many are taken at most. */
const longShareMax = 0.005
const longIntervals = 1.9
/** What a day leaves of the counts: 42 days count. */
const countsKept = 0.976
/** The same of the largest heap: with 0.9 two minutes of a thousand alerts once a week cost 1.11 of even, with 0.95 1.02. */
const heapKept = 0.95
/** Floors, as shares of the even pace, while the allowance is small, and once it is overdrawn. */
const cautiousFloor = 1 / 3
const tightFloor = 0.5
/** Alerts of allowance that are enough to meet one surprise at the configured floor. */
const allowanceMin = 10

export function emptyGuard(): Guard {
  return { won: wonAtFirst, dayStartMs: null, seen: 0, long: 0, heap: 0 }
}

/** Counts what alerts waited that a poll saw; after an outage that is not the plan's doing. */
export function noteWaits(
  guard: Guard,
  day: BudgetDay,
  unitsPerDay: number,
  atMs: number,
  firedAtMs: readonly number[],
): void {
  beginGuardedDay(guard, day)
  const gapMs = (day.endMs - day.startMs) / unitsPerDay
  guard.seen += firedAtMs.length
  guard.heap = Math.max(guard.heap, firedAtMs.length)
  for (const at of firedAtMs) {
    const waited = atMs - at
    if (waited > longIntervals * gapMs) guard.long++
    const lost = (waited - (evenPollAfter(day, gapMs, at) - at)) / (gapMs / 2)
    guard.won += allowedExcess - lost
  }
}

/** The first even poll at or after an instant. */
export function evenPollAfter({ startMs }: BudgetDay, gapMs: number, atMs: number): number {
  return startMs + (Math.ceil((atMs - startMs) / gapMs - 0.5) + 0.5) * gapMs
}

/** What happened on earlier days counts for less. */
export function beginGuardedDay(guard: Guard, { startMs }: BudgetDay): void {
  if (guard.dayStartMs === startMs) return
  const isFirst = guard.dayStartMs === null
  guard.dayStartMs = startMs
  if (isFirst) return
  guard.won *= wonKept
  guard.seen *= countsKept
  guard.long *= countsKept
  guard.heap *= heapKept
}

/** The part of the even polls of the rest of a day that must stay affordable at any time. */
export function keptShare({ won }: Guard): number {
  return Math.max(keptShareMin, Math.min(keptShareMax, 1 / (1 + Math.max(0, won) / unforeseenAlerts)))
}

/** The slowest pace that alerts of late allow, as a share of the even one. */
export function floorOf({ won, seen, long, heap }: Guard, configured: number): number {
  // A heap that comes where the plan is slowest costs no more than what was won.
  const affordable = 1 / (1 + Math.max(0, won) / Math.max(1, heap))
  const allowance = longShareMax * seen - long
  if (allowance >= Math.max(allowanceMin, heap)) return Math.max(configured, affordable)
  return Math.max(configured, affordable, allowance >= 0 ? cautiousFloor : tightFloor)
}
