import type { PaceLimits, Response } from '../pace/solve.ts'
import type { Decision } from '../schedule.ts'
import { isProven, type Phase, quarterDensity, quartersPerMinute, slotStart, weighMinutes } from './phase.ts'

/**
 * Where polls go when alerts fire on marks: a slot is a minute that begins just before the firings do. The plan holds
 * the best instants for one, two, three … polls within a slot, what each more of them saves, and how slots share the
 * firings of five minutes.
 */
export interface MarkPattern {
  /** Milliseconds from the minute at which slots begin. */
  readonly startMs: number
  /** offsetsMs[m - 1]: where m polls of one slot go, from its start. */
  readonly offsetsMs: readonly (readonly number[])[]
  /** savedSeconds[m - 1]: what the m-th poll of a slot saves on each of its alerts; never rising. */
  readonly savedSeconds: readonly number[]
  /** The mean wait of an alert, in seconds, for a poll a minute. */
  readonly waitSeconds: number
  /** How much of its even share each minute of five gets. */
  readonly minuteWeights: readonly number[]
}

const minuteMs = 60_000
const quarterSeconds = 0.25
const pollsPerSlotMax = 40
/** Marks are worth it only if they save this share of the waiting that a poll a minute has anyway. */
const waitSecondsMax = 0.75 * 30
const secondWaitSecondsMax = 0.6 * 15
/** A slot with less than this share of its firings is neither waited for nor polled for its own sake. */
export const emptySlot = 0.3

/** The pattern, or undefined where it is not proven or would not help. `isLocked`: polls are locked on one already. */
function findPattern(phase: Phase, minIntervalMs: number, isLocked: boolean): MarkPattern | undefined {
  if (!isProven(phase.secondGain, isLocked)) return undefined
  const density = quarterDensity(phase)
  const start = slotStart(density)
  const turned = density.map((_, at) => density[(at + start) % quartersPerMinute] ?? 0)
  const best = placePolls(turned, Math.max(1, Math.ceil(minIntervalMs / 250)))
  const one = best[0]?.waitSeconds ?? 30
  if (one > waitSecondsMax && (best[1]?.waitSeconds ?? 15) > secondWaitSecondsMax) return undefined
  const savedSeconds: number[] = [60]
  for (let m = 1; m < best.length; m++) {
    const saved = (best[m - 1]?.waitSeconds ?? 0) - (best[m]?.waitSeconds ?? 0)
    savedSeconds.push(Math.max(1e-6, Math.min(saved, savedSeconds[m - 1] ?? saved)))
  }
  const minuteWeights = weighMinutes(phase, start, isLocked)
  const offsetsMs = best.map(({ ends }) => ends.map((end) => (end + 1) * 250))
  return { startMs: start * 250, offsetsMs, savedSeconds, waitSeconds: one, minuteWeights }
}

/** The slot that holds `atMs`, counted from the epoch. */
export function slotOf(plan: MarkPattern, atMs: number): number {
  return Math.floor((atMs - plan.startMs) / minuteMs)
}

export function slotStartMs(plan: MarkPattern, slot: number): number {
  return slot * minuteMs + plan.startMs
}

/** How many polls a slot is worth where `wish` polls a minute would be right if alerts came at any time. */
export function pollsInSlot(plan: MarkPattern, slot: number, wish: number): number {
  const least = 30 / (dithered(wish, slot) ** 2 * Math.max(1e-3, minuteWeight(plan, slot)))
  let polls = 1
  while (polls < plan.savedSeconds.length && (plan.savedSeconds[polls] ?? 0) >= least) polls++
  return polls
}

/**
 * Whether it costs more to pass over this slot than to poll in it. `waitedUntilNext`: what all alerts since the last poll will have
 * waited together by the next slot with firings, in minutes, at one alert a minute.
 */
function slotIsDue(pattern: MarkPattern, slot: number, wish: number, waitedUntilNext: number): boolean {
  if (minuteWeight(pattern, slot) < emptySlot) return false
  return waitedUntilNext >= 0.5 / dithered(wish, slot) ** 2
}

/** Minutes from this slot to the next one with firings. */
function minutesToNext(plan: MarkPattern, slot: number): number {
  for (let ahead = 1; ahead < 5; ahead++) if (minuteWeight(plan, slot + ahead) >= emptySlot) return ahead
  return 5
}

export function minuteWeight({ minuteWeights }: MarkPattern, slot: number): number {
  return minuteWeights[((slot % 5) + 5) % 5] ?? 1
}

/** Varies the wish a little from slot to slot, so that a small change of the scale changes few slots, not all at once. */
function dithered(wish: number, slot: number): number {
  const blur = ((slot * 0.618_033_988_749_894_9) % 1) - 0.5
  return wish * Math.exp(0.1 * blur)
}

interface Placement {
  /** The quarter second at whose end each poll goes. */
  readonly ends: readonly number[]
  readonly waitSeconds: number
}

/** For each number of polls the instants with the least waiting: dynamic programming over where the last one goes. */
function placePolls(density: readonly number[], gap: number): Placement[] {
  const size = density.length
  const mass = new Float64Array(size + 1)
  const moment = new Float64Array(size + 1)
  for (let at = 0; at < size; at++) {
    mass[at + 1] = (mass[at] ?? 0) + (density[at] ?? 0)
    moment[at + 1] = (moment[at] ?? 0) + (density[at] ?? 0) * at
  }
  const cost = (from: number, end: number) =>
    (end + 0.5) * ((mass[end + 1] ?? 0) - (mass[from] ?? 0)) - ((moment[end + 1] ?? 0) - (moment[from] ?? 0))
  const tail = (end: number, first: number) =>
    (size - 0.5 + first) * ((mass[size] ?? 0) - (mass[end + 1] ?? 0)) -
    ((moment[size] ?? 0) - (moment[end + 1] ?? 0))
  const placements: Placement[] = []
  const cameFrom: Int16Array[] = []
  let row = Float64Array.from({ length: size }, (_, end) => cost(0, end))
  const polls = Math.min(pollsPerSlotMax, Math.floor(size / gap))
  for (let m = 1; m <= polls; m++) {
    placements.push(closeSlot(row, cameFrom, tail))
    const next = new Float64Array(size).fill(Number.POSITIVE_INFINITY)
    const from = new Int16Array(size).fill(-1)
    for (let end = m * gap; end < size; end++) {
      let [least, best] = [Number.POSITIVE_INFINITY, -1]
      const [massEnd, momentEnd] = [mass[end + 1] ?? 0, moment[end + 1] ?? 0]
      for (let before = (m - 1) * gap; before <= end - gap; before++) {
        // `cost(before + 1, end)`; a call would take most of a million rounds.
        const waiting =
          (end + 0.5) * (massEnd - (mass[before + 1] ?? 0)) - (momentEnd - (moment[before + 1] ?? 0))
        const value = (row[before] ?? 0) + waiting
        if (value >= least) continue
        least = value
        best = before
      }
      next[end] = least
      from[end] = best
    }
    cameFrom.push(from)
    row = next
  }
  return placements
}

/** Picks the last poll: what fires after it waits for the next slot's first one. */
function closeSlot(
  row: Float64Array,
  cameFrom: readonly Int16Array[],
  tail: (end: number, first: number) => number,
): Placement {
  const size = row.length
  let last = size - 1
  let best = Number.POSITIVE_INFINITY
  for (let end = 0; end < size; end++) {
    const value = (row[end] ?? 0) + tail(end, cameFrom.length === 0 ? end : 0)
    if (value < best) {
      best = value
      last = end
    }
  }
  const ends = [last]
  for (let m = cameFrom.length - 1; m >= 0; m--) ends.unshift(cameFrom[m]?.[ends[0] ?? 0] ?? 0)
  return { ends, waitSeconds: best * quarterSeconds }
}

/** What the next poll on marks depends on, beside the pattern. */
interface MarkView {
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

/** A pattern, and how many polls going over its marks takes for each wish, where no gap is longer than the guard's floor allows. */
export interface MarkPlan extends MarkPattern {
  readonly responseTo: (floor: number) => Response
}

/** Wishes of 2^-6, 2^-5.5, … polls a minute are measured. */
const octaves = { from: -6, to: 8, steps: 2 }
const pollsMeasured = 200
const minutesMeasuredMax = 1_500
/** Floors are rounded up to whole parts of the slowest, so that few are measured: those of the guard are 6, 10 and 15 such parts. */
const floorParts = 6

/** The plan for the pattern in `phase`, or undefined where it is not proven or would not help. */
export function planMarks(phase: Phase, limits: PaceLimits, isLocked: boolean): MarkPlan | undefined {
  const pattern = findPattern(phase, 1_000 / limits.ceiling, isLocked)
  if (!pattern) return undefined
  const part = limits.floor / floorParts
  const known: Response[] = []
  const responseTo = (floor: number) => {
    const parts = Math.max(floorParts, Math.ceil(floor / part - 1e-6))
    known[parts] ??= measureResponse(pattern, { ...limits, floor: parts * part })
    return known[parts]
  }
  return { ...pattern, responseTo }
}

/** Goes over the marks with each wish, alerts being equally likely all the time, and counts the polls. */
function measureResponse(pattern: MarkPattern, { floor, ceiling }: PaceLimits): Response {
  const paces = new Float64Array((octaves.to - octaves.from) * octaves.steps + 1)
  for (let at = 0; at < paces.length; at++) {
    const wish = 2 ** (octaves.from + at / octaves.steps)
    let fromMs = 0
    let polls = 0
    while (polls < pollsMeasured && fromMs < minutesMeasuredMax * 60_000) {
      const bounds = { earliestMs: fromMs + 1_000 / ceiling, latestMs: fromMs + 1_000 / floor }
      const view = { fromMs, ...bounds, lateMs: 0, wishAt: () => wish, rateAt: () => 1 }
      fromMs = Math.min(Math.max(nextOnMarks(pattern, view).atMs, view.earliestMs), view.latestMs)
      polls++
    }
    paces[at] = Math.max((polls * 1_000) / fromMs, paces[at - 1] ?? 0)
  }
  return { paces, from: octaves.from - Math.log2(60), steps: octaves.steps }
}
