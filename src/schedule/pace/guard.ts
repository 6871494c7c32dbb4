import {
  emptySlot,
  type MarkPattern,
  minuteWeight,
  pollsInSlot,
  slotOf,
  slotStartMs,
} from '../marks/pattern.ts'
import type { BudgetDay, BudgetView } from '../schedule.ts'

/**
 * Keeps the plan from being worse than evenly spaced polls. Every alert shows when it fired, so its lag under even polls is
 * known exactly. The guard adds up, alert by alert, what the plan won or lost against them, in mean lags of even polls. The
 * plan may poll more slowly than evenly only as far as it has won before (a conservative policy: Wu, Shariff, Lattimore and
 * Szepesvari, *Conservative bandits*, ICML 2016). The bound: schedule/README.md.
 */
export interface Guard {
  /** Won against even polls; earlier days count less and less. */
  won: number
  dayStartMs: number | null
  /** The day began with less than nothing won. */
  beganInDebt: boolean
  /** Alerts, and how many of them waited about two even intervals or longer; earlier days count less and less. */
  seen: number
  long: number
  /** The most alerts that one poll saw; earlier days count less and less. */
  heap: number
  /** Alerts of today and of the six days before, the latest first. */
  ofDays: number[]
  /** Units of the day that polls have left when nothing else spends any, and of how many; null before the day's first plan. */
  unitsLeft: number | null
  unitsPerDay: number
  /**
   * By how much the units that went elsewhere slow even polls down, as a share of their pace. Below 0 where the plan has spent more than
   * its part of an account has lost: other sources may still spend as much.
   */
  slower: number
  /** The pace of even polls with what is really left, as a share of that with all units. */
  evenShare: number
  /** The same as the day before ended. */
  evenShareBefore: number
}

/** What a new plan starts with: so many mean lags may be lost before anything is known. */
const wonAtFirst = 10
/** Added to `won` for each alert: how much worse than even polls the plan may be in the long run. */
const allowedExcess = 0.03
/** The part of `won` that is left after a day. */
const wonKept = 0.97
/**
 * No more is kept than so many mean lags for each alert of the liveliest of the last seven days: what was won on thousands of alerts is not
 * lost on the few that come once rules have changed. After a week of 5,000 alerts a day, twenty in a session and a heap of fifty in each
 * night have 1.55, 1.52, 1.41 and 1.39 of even in the third to sixth week without it, 1.45, 1.29, 1.00 and 1.06 with it (200 units, four seeds).
 */
const wonPerAlertMax = 5
const daysRemembered = 7
/**
 * Units are kept back for so many unexpected alerts of a day; the part of them that is kept has two bounds. A day of 20,000 alerts
 * within two hours after the session, after days of 170, costs 1.17 of even with at least 0.65 kept, 0.99 with 0.78, 0.95 with 0.8
 * (200 units, six weeks, four seeds); market 0.487, 0.488 and 0.500 (500 units, ten weeks, seed 4242). With more than 0.93 a session
 * just after the reset could win nothing.
 */
const unforeseenAlerts = 3_500
export const keptShareMin = 0.78
const keptShareMax = 0.93

/** p99 allows one alert in a hundred to wait two even intervals; the guard allows half of that. */
const longShareMax = 0.005
const longIntervals = 1.9
/** The part of the counts that is left after a day: about 42 days count. */
const countsKept = 0.976
/** The same for `heap`: with 0.9 two minutes of a thousand alerts once a week cost 1.11 of even, with 0.95 1.02. */
const heapKept = 0.95
/** The slowest pace, as a share of the even one: while few more alerts may wait long, and once too many did. */
export const cautiousFloor = 1 / 3
export const tightFloor = 0.5
/** When so many more alerts may wait long, one surprise at the configured floor does no harm. */
const allowanceMin = 10
/**
 * By how much the gap of polls that are taken for even ones may differ from theirs. With 0, alerts of the last six hours with context have
 * 0.51 of even in place of 0.37 (2,000 units, days 3 to 14, four seeds).
 */
const evenTolerance = 0.15

export function emptyGuard(): Guard {
  return {
    won: wonAtFirst,
    dayStartMs: null,
    beganInDebt: false,
    seen: 0,
    long: 0,
    heap: 0,
    ofDays: [0],
    evenShareBefore: 1,
    ...ofNewDay(),
  }
}

function ofNewDay(): Pick<Guard, 'unitsLeft' | 'unitsPerDay' | 'slower' | 'evenShare'> {
  return { unitsLeft: null, unitsPerDay: 0, slower: 0, evenShare: 1 }
}

/**
 * Looks at the units before a plan is made. Those that were spent on anything but polls (context, the command `api`, other sources of
 * the account) are missing to even polls, too, from then on: a plan that is compared with more units than it has would lose whatever
 * it does, and be kept at the even pace for ever.
 */
export function noteUnits(guard: Guard, { day, unitsPerDay, unitsLeft }: BudgetView, nowMs: number): void {
  beginGuardedDay(guard, day)
  const before = guard.unitsPerDay === unitsPerDay ? guard.unitsLeft : null
  const evenLeft = (unitsPerDay * Math.max(1, day.endMs - nowMs)) / (day.endMs - day.startMs)
  const elsewhere = before === null ? 0 : before - unitsLeft
  guard.slower = before === null ? 0 : guard.slower + elsewhere / evenLeft
  // Never 0: nothing is planned where no unit is left.
  guard.evenShare = Math.min(1, Math.max(1 - guard.slower, unitsLeft / evenLeft))
  Object.assign(guard, { unitsPerDay, unitsLeft })
}

/** The plan itself has spent so many. */
export function noteSpent(guard: Guard, units: number): void {
  if (guard.unitsLeft !== null) guard.unitsLeft -= units
}

/** One poll and the one before it, with what it saw. */
interface Waited {
  readonly fromMs: number
  readonly atMs: number
  readonly firedAtMs: readonly number[]
  /** When each could probably be read, in any order. */
  readonly readableMs: readonly number[]
}

/**
 * Counts what the alerts of one poll waited. Not called after an outage, which is not the plan's fault. Waits
 * begin when a row could probably be read; for p99, where nobody knows how much of the gap a late row waited, all of it counts.
 */
export function noteWaits(
  guard: Guard,
  day: BudgetDay,
  unitsPerDay: number,
  { fromMs, atMs, firedAtMs, readableMs }: Waited,
): void {
  beginGuardedDay(guard, day)
  const allMs = (day.endMs - day.startMs) / unitsPerDay
  const gapMs = allMs / guard.evenShare
  guard.seen += firedAtMs.length
  guard.ofDays[0] = (guard.ofDays[0] ?? 0) + firedAtMs.length
  guard.heap = Math.max(guard.heap, firedAtMs.length)
  for (const at of firedAtMs) if (atMs - Math.max(at, fromMs) > longIntervals * gapMs) guard.long++
  // Even polls that others slow down are at no known instants: where the plan is as slow as these, it is taken to be them.
  const slowerBy = (atMs - fromMs) / gapMs - 1
  const isSlowed = guard.evenShare < 1
  // Nor can the plan be at theirs where it has fewer units than they. At their pace it loses nothing then, or it would never win again;
  // once something is won, the gap may be one of marks that have moved.
  const isInDebt = guard.beganInDebt && guard.won <= 0
  const isBehind = isInDebt && guard.unitsLeft !== null && guard.unitsLeft < evenPollsAfter(day, allMs, atMs)
  const isEven = (isSlowed || isBehind) && Math.abs(slowerBy) <= evenTolerance
  const lostEvenly = isSlowed ? slowerBy : Math.min(0, slowerBy)
  for (const at of readableMs) {
    const lost = isEven ? lostEvenly : (atMs - evenPollAfter(day, gapMs, at)) / (gapMs / 2)
    guard.won += allowedExcess - (at < day.startMs ? lostBefore(at) : lost)
  }

  /** Of an alert after the last poll of a day: even polls of that day had no more units than its plan had. */
  function lostBefore(at: number): number {
    const beforeMs = allMs / guard.evenShareBefore
    const evenMs = Math.min(evenPollAfter(day, beforeMs, at), day.startMs + allMs / 2)
    return (atMs - evenMs) / (beforeMs / 2)
  }
}

/** The first even poll at or after an instant. */
export function evenPollAfter({ startMs }: BudgetDay, gapMs: number, atMs: number): number {
  return startMs + (Math.ceil((atMs - startMs) / gapMs - 0.5) + 0.5) * gapMs
}

/** How many even polls of a day come after one of them. */
export function evenPollsAfter({ endMs }: BudgetDay, gapMs: number, atMs: number): number {
  return Math.floor((endMs - 1 - atMs) / gapMs + 0.5)
}

/** Earlier days count less from now on. */
export function beginGuardedDay(guard: Guard, { startMs }: BudgetDay): void {
  if (guard.dayStartMs === startMs) return
  const isFirst = guard.dayStartMs === null
  guard.dayStartMs = startMs
  guard.evenShareBefore = guard.evenShare
  Object.assign(guard, ofNewDay())
  if (isFirst) return
  guard.won = Math.min(wonKept * guard.won, Math.max(wonAtFirst, wonPerAlertMax * Math.max(...guard.ofDays)))
  guard.beganInDebt = guard.won < 0
  guard.ofDays = [0, ...guard.ofDays].slice(0, daysRemembered)
  guard.seen *= countsKept
  guard.long *= countsKept
  guard.heap *= heapKept
}

/** The part of the even polls of the rest of a day that must stay affordable at any time. */
export function keptShare({ won }: Guard): number {
  return Math.max(keptShareMin, Math.min(keptShareMax, 1 / (1 + Math.max(0, won) / unforeseenAlerts)))
}

/** The slowest pace that recent alerts allow, as a share of the even one. */
export function floorOf(guard: Guard, configured: number): number {
  const { seen, long, heap } = guard
  const affordable = Math.max(configured, heapFloor(guard))
  const allowance = longShareMax * seen - long
  if (allowance >= Math.max(allowanceMin, heap)) return affordable
  return Math.max(affordable, allowance >= 0 ? cautiousFloor : tightFloor)
}

/** A batch as large as `heap` that comes where the plan is slowest may cost no more than what was won. */
export function heapFloor({ won, heap }: Guard): number {
  return 1 / (1 + Math.max(0, won) / Math.max(1, heap))
}

/** What an alert at an instant waits on average where so many polls a second go over the marks, in seconds. */
export function waitOnMarks(plan: MarkPattern, perSecond: number, atMs: number): number {
  const pollsIn = (slot: number) => pollsInSlot(plan, slot, perSecond * 60)
  const waits = waitsOnMarks(plan, visitsOf(plan, 300 * perSecond), pollsIn, atMs)
  return waits.reduce((sum, { share, seconds }) => sum + share * seconds, 0)
}

/** What alerts at an instant wait where slots are visited so, with so many polls in each. */
export function waitsOnMarks(
  plan: MarkPattern,
  visits: readonly number[],
  pollsIn: (slot: number) => number,
  atMs: number,
) {
  for (let slot = slotOf(plan, atMs); ; slot++) {
    if (minuteWeight(plan, slot) < emptySlot) continue
    const startMs = slotStartMs(plan, slot)
    const offsets = plan.offsetsMs[pollsIn(slot) - 1] ?? []
    const offset = offsets.find((each) => startMs + each >= atMs)
    if (offset === undefined) continue
    const waits: { share: number; seconds: number }[] = []
    let seconds = (startMs + offset - atMs) / 1_000
    // The next slot with a poll is the one where the visits from here on reach a number between 0 and 1 that nobody knows.
    let missed = 1
    for (let next = slot; missed > 0; next++, seconds += 60) {
      const share = Math.min(missed, visits[((next % 5) + 5) % 5] ?? 0)
      if (share > 0) waits.push({ share, seconds })
      missed -= share
    }
    return waits
  }
}

/** How many of the slots of each minute of five have a poll, of so many polls in five minutes: the more firings, the more, and at most all. */
export function visitsOf({ minuteWeights }: MarkPattern, polls: number): number[] {
  let left = Math.max(1e-3, polls)
  const visits = minuteWeights.map((weight) => (weight < emptySlot ? 0 : weight))
  let sum = visits.reduce((all, weight) => all + weight)
  for (const [minute, weight] of [...visits.entries()].sort(([, a], [, b]) => b - a)) {
    visits[minute] = sum > 0 ? Math.min(1, (left * weight) / sum) : 0
    left -= visits[minute] ?? 0
    sum -= weight
  }
  return visits
}
