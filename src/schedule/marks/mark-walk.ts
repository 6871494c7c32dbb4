import type { Decision } from '../schedule.ts'
import {
  emptySlot,
  type MarkPattern,
  minutesToNext,
  minuteWeight,
  pollsInSlot,
  slotIsDue,
  slotOf,
  slotStartMs,
} from './pattern.ts'

/** What the walk over marks has to know of the moment. */
export interface MarkView {
  /** The last poll. */
  readonly fromMs: number
  /** The bounds that minimum and maximum interval set for the next one. */
  readonly earliestMs: number
  readonly latestMs: number
  /** How much later than its firing time a row can be read. */
  readonly lateMs: number
  /** Polls a minute that would be right if alerts came at any time. */
  wishAt(atMs: number): number
  /** Expected alerts, in any unit of rate. */
  rateAt(atMs: number): number
}

/**
 * The next poll where alerts fire on marks: the next instant of the current slot, or the first one of the slot from
 * which waiting on would cost more than a poll.
 */
export function nextOnMarks(pattern: MarkPattern, view: MarkView): Decision {
  const { fromMs, earliestMs, latestMs, lateMs } = view
  const current = slotOf(pattern, fromMs - lateMs)
  const rest = firstInstant(pattern, view, current)
  if (rest !== undefined) return { atMs: rest, reason: 'mark' }
  let pending = 0
  let waited = 0
  let lastResort = Number.NaN
  for (let slot = current + 1; slotStartMs(pattern, slot) + lateMs < latestMs; slot++) {
    const middleMs = slotStartMs(pattern, slot) + 30_000
    const rate = Math.max(1e-12, view.rateAt(middleMs))
    pending += rate * minuteWeight(pattern, slot)
    const first = firstInstant(pattern, view, slot)
    const waitedUntilNext = (waited + pending * minutesToNext(pattern, slot)) / rate
    if (first !== undefined && slotIsDue(pattern, slot, view.wishAt(middleMs), waitedUntilNext))
      return { atMs: first, reason: 'mark' }
    if (first !== undefined && first <= latestMs) lastResort = first
    waited += pending
  }
  // The longest interval ends before a slot is due: then the last mark before its end, where there is one.
  return Number.isNaN(lastResort) || lastResort < earliestMs
    ? { atMs: latestMs, reason: 'floor' }
    : { atMs: lastResort, reason: 'mark' }
}

/** The first instant of a slot that the shortest interval allows; none in slots without firings. */
function firstInstant(pattern: MarkPattern, view: MarkView, slot: number): number | undefined {
  if (minuteWeight(pattern, slot) < emptySlot) return undefined
  const startMs = slotStartMs(pattern, slot)
  const offsets = pattern.offsetsMs[pollsInSlot(pattern, slot, view.wishAt(startMs + 30_000)) - 1] ?? []
  const offset = offsets.find((each) => startMs + each + view.lateMs >= view.earliestMs)
  return offset === undefined ? undefined : startMs + offset + view.lateMs
}
