import type { ScheduleOptions } from '../options.ts'
import { type Response, respond } from '../pace/solve.ts'
import { nextOnMarks } from './mark-walk.ts'
import {
  emptySlot,
  findPattern,
  type MarkPattern,
  minuteWeight,
  pollsInSlot,
  slotOf,
  slotStartMs,
} from './pattern.ts'
import type { Phase } from './phase.ts'

/** A pattern with what it makes of wishes: how many polls the walk over its marks spends. */
export interface MarkPlan extends MarkPattern {
  readonly response: Response
}

export interface MarkLimits {
  readonly minIntervalMs: number
  /** The longest gap that the floor leaves. */
  readonly gapMaxMs: number
}

export function markLimits(
  { minIntervalMs, maxIntervalMs, floor }: ScheduleOptions,
  unitsPerDay: number,
): MarkLimits {
  const evenMs = 86_400_000 / unitsPerDay
  return {
    minIntervalMs,
    gapMaxMs: Math.max(evenMs, Math.min(maxIntervalMs, evenMs / Math.max(1e-6, floor))),
  }
}

/** Wishes of 2^-6, 2^-5.5, … polls a minute are measured. */
const octaves = { from: -6, to: 8, steps: 2 }
const pollsMeasured = 200
const minutesMeasuredMax = 1_500

/** The plan for the pattern in `phase`, or undefined where it is not proven or would not help. */
export function planMarks(phase: Phase, limits: MarkLimits, isLocked: boolean): MarkPlan | undefined {
  const pattern = findPattern(phase, limits.minIntervalMs, isLocked)
  return pattern && { ...pattern, response: measureResponse(pattern, limits) }
}

/** What an alert at an instant waits on average where polls on the marks come at such a pace, in seconds. */
export function waitOnMarks(plan: MarkPlan, perSecond: number, atMs: number): number {
  const slots = plan.minuteWeights.filter((weight) => weight >= emptySlot).length / plan.minuteWeights.length
  const visited = Math.min(1, (respond(plan.response, perSecond) * 60) / Math.max(0.2, slots))
  const missedMs = (30_000 / slots) * (1 / Math.max(1e-6, visited) - 1)
  for (let slot = slotOf(plan, atMs); ; slot++) {
    if (minuteWeight(plan, slot) < emptySlot) continue
    const startMs = slotStartMs(plan, slot)
    const offsets = plan.offsetsMs[pollsInSlot(plan, slot, perSecond * 60) - 1] ?? []
    const offset = offsets.find((each) => startMs + each >= atMs)
    if (offset !== undefined) return (startMs + offset - atMs + missedMs) / 1_000
  }
}

/** Walks over the marks with each wish, alerts being equally likely all the time, and counts. */
function measureResponse(pattern: MarkPattern, { minIntervalMs, gapMaxMs }: MarkLimits): Response {
  const paces = new Float64Array((octaves.to - octaves.from) * octaves.steps + 1)
  for (let at = 0; at < paces.length; at++) {
    const wish = 2 ** (octaves.from + at / octaves.steps)
    let fromMs = 0
    let polls = 0
    while (polls < pollsMeasured && fromMs < minutesMeasuredMax * 60_000) {
      const view = {
        fromMs,
        earliestMs: fromMs + minIntervalMs,
        latestMs: fromMs + gapMaxMs,
        lateMs: 0,
        wishAt: () => wish,
        rateAt: () => 1,
      }
      fromMs = Math.min(Math.max(nextOnMarks(pattern, view).atMs, view.earliestMs), view.latestMs)
      polls++
    }
    paces[at] = Math.max((polls * 1_000) / fromMs, paces[at - 1] ?? 0)
  }
  return { paces, from: octaves.from - Math.log2(60), steps: octaves.steps }
}
