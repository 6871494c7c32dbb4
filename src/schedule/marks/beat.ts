import { isProven, type Phase, quartersPerMinute, sumOf } from './phase.ts'

/**
 * Marks that come several times a minute, closer together than polls do: no minute is waited for, but each planned poll goes
 * to just after a mark. (Marks of five seconds at 2,000 units: 0.59 of even without.)
 */
export interface Beat {
  readonly periodMs: number
  /** From a whole number of periods to the instant just after the firings. */
  readonly offsetMs: number
  /** What an alert waits until that instant, in seconds. */
  readonly waitSeconds: number
}

/** In quarter seconds: 5, 10, 15, 20 and 30 s, which divide the minute. */
const periods = [20, 40, 60, 80, 120]
/** The wait that is worth it, as a part of what polls at any instant of the period would leave. */
const waitShareMax = 0.6
/** Marks of the minute that are left out belong to a longer period. */
const markShareMin = 0.7
const quarterMs = 250

/** The shortest period on which firings lie close together; undefined where none is proven. */
export function findBeat(phase: Phase, isLocked: boolean): Beat | undefined {
  if (!isProven(phase.secondGain, isLocked)) return undefined
  for (const period of periods) {
    if (!usesEveryMark(phase, period)) continue
    const counts = new Float64Array(period)
    for (let at = 0; at < quartersPerMinute; at++)
      counts[at % period] = (counts[at % period] ?? 0) + (phase.quarters[at] ?? 0)
    let best = { wait: Number.POSITIVE_INFINITY, end: 0 }
    for (let end = 0; end < period; end++) {
      let wait = 0
      for (let back = 0; back < period; back++)
        wait += (counts[(end - back + period) % period] ?? 0) * (back + 0.5)
      if (wait < best.wait) best = { wait, end }
    }
    const waitQuarters = best.wait / Math.max(1e-9, phase.total)
    if (waitQuarters > (waitShareMax * period) / 2) continue
    const periodMs = period * quarterMs
    return { periodMs, offsetMs: ((best.end + 1) * quarterMs) % periodMs, waitSeconds: waitQuarters / 4 }
  }
  return undefined
}

function usesEveryMark({ quarters, total }: Phase, period: number): boolean {
  const marks = quartersPerMinute / period
  return Array.from({ length: marks }, (_, mark) => sumOf(quarters, mark * period, period)).every(
    (count) => count >= (markShareMin * total) / marks,
  )
}

/** The beat near a planned instant, now before and now after it, so that as many polls come as were planned. */
export function onBeat(
  { periodMs, offsetMs }: Beat,
  plannedMs: number,
  bounds: { readonly earliestMs: number; readonly latestMs: number; readonly lateMs: number },
): number | undefined {
  const shift = offsetMs + bounds.lateMs
  const periodsPassed = (plannedMs - shift) / periodMs
  const dither = (Math.floor(periodsPassed) * 0.618_033_988_749_894_9) % 1
  const first = Math.ceil((bounds.earliestMs - shift) / periodMs)
  const at = Math.max(first, Math.floor(periodsPassed + dither)) * periodMs + shift
  return at <= bounds.latestMs ? at : undefined
}
