import { rateAt } from './day-plan.ts'
import { type Situation, wishAt } from './decide.ts'
import { expectedRate } from './intensity.ts'
import {
  type MarkPlan,
  minutesToNext,
  minuteWeight,
  pollsInSlot,
  slotIsDue,
  slotOf,
  slotStartMs,
} from './marks.ts'
import type { Decision } from './schedule.ts'

/**
 * The next poll where alerts fire on marks: the next instant of the current slot, or the first one of the slot from
 * which waiting on would cost more than a poll.
 */
export function nextOnMarks(
  marks: MarkPlan,
  situation: Situation,
  earliestMs: number,
  latestMs: number,
): Decision {
  const { fromMs, limits, memory } = situation
  const lateMs = memory.phase.lateMs
  const wish = (slot: number) =>
    60 * Math.min(limits.ceiling, wishAt(situation, slotStartMs(marks, slot) + 30_000))
  const instants = (slot: number) => {
    const offsets = marks.offsetsMs[pollsInSlot(marks, slot, wish(slot)) - 1] ?? []
    return offsets.map((offset) => slotStartMs(marks, slot) + offset + lateMs)
  }
  const current = slotOf(marks, fromMs - lateMs)
  const rest =
    minuteWeight(marks, current) > 0.3
      ? instants(current).find((at) => at >= earliestMs && at > fromMs)
      : undefined
  // A slot that was not polled at all (the walk skipped it) is not begun in its middle.
  if (rest !== undefined && fromMs - lateMs > slotStartMs(marks, current))
    return { atMs: rest, reason: 'mark' }
  let pending = 0
  let waited = 0
  let candidate = latestMs
  for (let slot = current + 1; slotStartMs(marks, slot) < latestMs; slot++) {
    const middleMs = slotStartMs(marks, slot) + 30_000
    const rate = expectedRate(
      situation.outlook,
      rateAt(situation.plan, middleMs),
      (middleMs - fromMs) / 1_000,
    )
    pending += rate * minuteWeight(marks, slot)
    const first = instants(slot).find((at) => at >= earliestMs)
    if (first !== undefined && first <= latestMs && minuteWeight(marks, slot) > 0.3) candidate = first
    const waitedUntilNext = (waited + pending * minutesToNext(marks, slot)) / Math.max(1e-12, rate)
    if (first !== undefined && slotIsDue(marks, slot, wish(slot), waitedUntilNext))
      return { atMs: first, reason: 'mark' }
    waited += pending
  }
  // The longest interval ends before a slot is due: the last mark before its end, then.
  return { atMs: candidate, reason: candidate < latestMs ? 'mark' : 'floor' }
}
