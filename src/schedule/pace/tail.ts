/**
 * How many alerts waited long. The plan takes from quiet hours what it gives to busy ones, down to a gap of five even
 * intervals; where more than a small share of the alerts falls into such gaps after all, no gap may be longer than two
 * even intervals until the share is small again. So p99 stays at about twice that of a clock at most (alternating weeks: 1.9 to 2.04).
 */
export interface Tail {
  /** Alerts, fading from day to day. */
  seen: number
  /** Of these, those that waited longer than two even intervals, or nearly. */
  long: number
}

/** p99 leaves room for one in a hundred; half of it is spent at most. */
const longShareMax = 0.005
const longIntervals = 1.9
/** What a day leaves of the counts: 42 days count. */
const kept = 0.976
/** Floors, as shares of the even pace, while the allowance is small, and once it is overdrawn. */
const cautiousFloor = 1 / 3
const tightFloor = 0.5
/** Alerts of allowance that are enough to meet one surprise at the configured floor. */
const allowanceMin = 10

export function emptyTail(): Tail {
  return { seen: 0, long: 0 }
}

export function fadeTail(tail: Tail): void {
  tail.seen *= kept
  tail.long *= kept
}

/** Counts alerts that a poll saw; where the gap before it was an outage, its alerts are not the plan's doing. */
export function noteWaits(tail: Tail, atMs: number, firedAtMs: readonly number[], evenMs: number): void {
  tail.seen += firedAtMs.length
  for (const at of firedAtMs) if (atMs - at > longIntervals * evenMs) tail.long++
}

/** The slowest pace that alerts of late allow, as a share of the even one. */
export function floorOf({ seen, long }: Tail, configured: number): number {
  const allowance = longShareMax * seen - long
  if (allowance >= allowanceMin) return configured
  return Math.max(configured, allowance >= 0 ? cautiousFloor : tightFloor)
}
