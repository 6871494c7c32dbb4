import { type DayForecast, emptyRecent, outlookAt } from '../forecast/outlook.ts'
import { binMs } from '../forecast/profile.ts'
import type { BudgetDay, ScheduleOptions } from '../schedule.ts'
import { decide } from './decide.ts'
import { beginDay, type Family, pacesOf, spendUntil } from './family.ts'
import { floorOf, type Guard, keptShareMin } from './guard.ts'
import { clamp, limitsFor } from './solve.ts'

/**
 * Where a handful of polls goes in a day. A pace says little about ten polls: their instants are chosen together, each just
 * after the alerts that it is for, by dynamic programming over steps of ten minutes. The days before and after are taken to
 * be like this one, so what comes after the last poll waits for the first one of the next day.
 */

/** Up to so many units a day. Market: 0.41 of even with 10 units (by paces 0.56), 0.54 with 24 (0.63), 0.48 with 48 (0.50). */
export const fewUnits = 50
/** Steps of the forecast that make one of these steps. */
const stepsTogether = 2
/** Gaps are whole steps. */
export const fewStepMs = stepsTogether * binMs
/**
 * The first and the last poll of a day depend on each other: each round plans with those of the round before. Where the rounds end
 * depends on the instants that they begin with, so several are tried (market at two units: 0.73 of even with one, 0.54 with eight;
 * four seeds).
 */
const rounds = 3
const turns = 8
/**
 * What came on one of the last days may come again, and one poll of ten then finds more than p99 lets wait. So where more than this
 * share of the events of the last days came on one of them, and all would have waited so many even intervals or longer, no gap is.
 * Ten units, from the second of six weeks on, seeds 101 and 102: p99 of a session in the morning or the evening, by chance, 1.37 of even
 * (before 2.53), of one that changes between the two every three days 1.36 (2.50); market 0.43 either way.
 */
const rememberedShareMax = 0.01
const rememberedIntervals = 1.9
/** The longest gap is at least so many times the even one between the polls before and after: else no plan may fit. */
const slack = 1.2

/** The polls of a day, each set ascending; they cost a hundred decisions. */
export interface FewDay {
  readonly forecast: DayForecast
  readonly longestMs: number
  readonly chosen: readonly number[]
  readonly even: readonly number[]
  readonly steps: DaySteps
}

function evenInstants({ startMs, endMs }: BudgetDay, polls: number): number[] {
  return Array.from({ length: polls }, (_, k) => startMs + ((k + 0.5) / polls) * (endMs - startMs))
}

/** Where as many polls come in such a day by the pace, as it is planned before anything of the day is known. */
export function pacedInstants(
  memory: { readonly family: Family; readonly guard: Guard },
  { forecast, even }: FewDay,
  options: ScheduleOptions,
): number[] {
  const { day } = forecast
  const unitsPerDay = even.length
  const daySeconds = (day.endMs - day.startMs) / 1_000
  const limits = limitsFor(options, unitsPerDay, daySeconds)
  const guarded = (floorOf(memory.guard, options.floor) * unitsPerDay) / daySeconds
  const usual = {
    limits,
    floor: clamp(guarded, limits.floor, limits.ceiling),
    minIntervalMs: options.minIntervalMs,
    family: { ...memory.family, dayStartMs: null },
    guard: { ...memory.guard, slower: 0 },
    marks: undefined,
    markPeriod: undefined,
    lateMs: 0,
    hotUntilMs: 0,
    extraPagesPerDay: 0,
  }
  const recent = { ...emptyRecent(), credit: { profile: [1], mean: [1] } }
  const instants: number[] = []
  let lastAtMs = day.startMs - (500 * daySeconds) / unitsPerDay
  for (let unitsLeft = unitsPerDay; unitsLeft > 0; unitsLeft--) {
    const budget = { day, unitsPerDay, unitsLeft }
    const fromMs = Math.max(lastAtMs, day.startMs)
    beginDay(usual.family, budget, fromMs)
    const paces = pacesOf(usual.family, outlookAt(forecast, recent, options.exponent, fromMs), limits)
    lastAtMs = decide({ ...usual, paces, budget, lastAtMs }).atMs
    if (lastAtMs >= day.endMs) break
    spendUntil(usual.family, paces, lastAtMs, undefined)
    instants.push(lastAtMs)
  }
  return instants
}

/** Chooses the instants of so many polls in a whole day with the least waiting, no gap being longer than `longestMs`. */
export function fewDay(forecast: DayForecast, polls: number, longestMs: number): FewDay {
  const steps = stepsOf(forecast, polls)
  const longest = Math.floor(longestMs / steps.stepMs)
  const even = evenInstants(forecast.day, polls)
  // Most turns come to the same ends, which take long to place.
  const placed = new Map<number, number[]>()
  let best: number[] = []
  for (let turn = 0; turn < turns; turn++) {
    const shiftMs = ((turn / turns - 0.5) * (forecast.day.endMs - forecast.day.startMs)) / polls
    let ends = even.map((at) => stepAt(steps, at + shiftMs))
    for (let round = 0; round < rounds; round++) {
      const [first, last] = [ends[0] ?? 0, ends.at(-1) ?? 0]
      const key = first * (3 * steps.size + 1) + last
      const bounds = {
        polls,
        pollsPerDay: polls,
        previous: last - steps.size,
        next: first + steps.size,
        longest,
      }
      ends = placed.get(key) ?? place(steps, bounds)
      placed.set(key, ends)
    }
    if (best.length === 0 || costOf(steps, ends) < costOf(steps, best)) best = ends
  }
  return { forecast, longestMs, chosen: best.map((end) => instantOf(steps, end)), even, steps }
}

/** The instants of so many polls after the last one, which was today or yesterday. */
export function restOfFew(
  { forecast, longestMs, chosen, steps }: FewDay,
  polls: number,
  lastAtMs: number,
): number[] {
  const ends = place(steps, {
    polls,
    pollsPerDay: chosen.length,
    previous: stepAt(steps, lastAtMs),
    next: stepAt(steps, chosen[0] ?? forecast.day.endMs) + steps.size,
    longest: Math.floor(longestMs / steps.stepMs),
  })
  return ends.map((end) => instantOf(steps, end))
}

/** Running sums of the expected events, and of these times their instants, over yesterday, today and tomorrow, which are alike. */
interface DaySteps {
  readonly startMs: number
  readonly stepMs: number
  /** Of one day. */
  readonly size: number
  readonly events: Float64Array
  readonly moments: Float64Array
  /** The earliest end of the poll before one at each end, by what came on the last days. */
  readonly nearest: Int16Array
}

function stepsOf({ day, rates, lately }: DayForecast, pollsPerDay: number): DaySteps {
  const size = Math.ceil(rates.length / stepsTogether)
  const events = sumsOf(rates, size)
  const moments = new Float64Array(events.length)
  for (let at = 1; at < events.length; at++)
    moments[at] = (moments[at - 1] ?? 0) + ((events[at] ?? 0) - (events[at - 1] ?? 0)) * (at - 0.5)
  const nearest = nearestOf(
    lately.map((each) => sumsOf(each, size)),
    size,
    (rememberedIntervals * size) / pollsPerDay,
  )
  return { startMs: day.startMs, stepMs: (day.endMs - day.startMs) / size, size, events, moments, nearest }
}

/** Running sums over three days alike. */
function sumsOf(day: Float64Array, size: number): Float64Array {
  const sums = new Float64Array(3 * size + 1)
  for (let at = 0; at < 3 * size; at++) {
    const from = (at % size) * stepsTogether
    let sum = sums[at] ?? 0
    for (let step = from; step < from + stepsTogether; step++) sum += day[step] ?? 0
    sums[at + 1] = sum
  }
  return sums
}

function nearestOf(lately: readonly Float64Array[], size: number, longSteps: number): Int16Array {
  const longMax = rememberedShareMax * lately.reduce((all, sums) => all + (sums[size] ?? 0), 0)
  const nearest = new Int16Array(3 * size + 1)
  for (const sums of lately) {
    let from = 0
    for (let end = 0; end < nearest.length; end++) {
      const long = Math.max(0, Math.floor(end - longSteps))
      while (from < long && (sums[long] ?? 0) - (sums[from] ?? 0) > longMax) from++
      nearest[end] = Math.max(nearest[end] ?? 0, from)
    }
  }
  return nearest
}

/** Steps are counted from the start of yesterday. */
function stepAt({ startMs, stepMs, size }: DaySteps, atMs: number): number {
  return clamp(size + Math.round((atMs - startMs) / stepMs), 0, 3 * size)
}

function instantOf({ startMs, stepMs, size }: DaySteps, step: number): number {
  return startMs + (step - size) * stepMs
}

/** What waits from `from` on for a poll at the end of `to`, in steps. */
function waiting({ events, moments }: DaySteps, from: number, to: number): number {
  return to * ((events[to] ?? 0) - (events[from] ?? 0)) - ((moments[to] ?? 0) - (moments[from] ?? 0))
}

/** All that waits in a day with these polls. */
function costOf(steps: DaySteps, ends: readonly number[]): number {
  const last = (ends.at(-1) ?? 0) - steps.size
  return ends.reduce((sum, end, at) => sum + waiting(steps, ends[at - 1] ?? last, end), 0)
}

/** The steps of today at whose ends polls go, between the poll before them and the one after them. */
function place(
  steps: DaySteps,
  bounds: {
    readonly polls: number
    readonly pollsPerDay: number
    readonly previous: number
    readonly next: number
    readonly longest: number
  },
  nearest = steps.nearest,
): number[] {
  const { size } = steps
  const { previous, next } = bounds
  const [first, last] = [Math.max(size, previous) + 1, 2 * size]
  // At the end of a day there may be more units than steps.
  const polls = Math.min(bounds.polls, last - first + 1)
  if (polls < 1) return []
  const longest = Math.max(bounds.longest, Math.ceil((slack * (next - previous)) / (polls + 1)))
  const ahead = last - first + 1
  // A day that turns out otherwise can go on from any instant, as by the guard: no poll comes before so many are left to others.
  const kept = Math.min((keptShareMin * bounds.pollsPerDay) / size, polls / ahead)
  const earliest = (poll: number) =>
    poll === 0 ? first : Math.max(first + poll, Math.ceil(last - (polls - poll - 0.5) / kept))
  let costs = new Float64Array(last + 1).fill(Number.POSITIVE_INFINITY)
  // Where the longest gap is over already, a poll is due at once.
  let [from, to] = [first, Math.min(last, Math.max(first, previous + longest))]
  for (let end = from; end <= to; end++)
    if (end === first || (nearest[end] ?? 0) <= previous) costs[end] = waiting(steps, previous, end)
  const before: Int16Array[] = []
  for (let poll = 1; poll < polls; poll++) {
    // After a long silence the longest gap may ask for more polls than are to be used so early: it comes first.
    const until = Math.min(last, to + longest)
    const reach = { from: Math.max(from + 1, Math.min(earliest(poll), until)), to: until }
    const extended = extend(steps, costs, { from, to, longest, nearest }, reach)
    before.push(extended.from)
    costs = extended.costs
    ;[from, to] = [reach.from, reach.to]
  }
  let best = { cost: Number.POSITIVE_INFINITY, end: last }
  for (let end = Math.max(first, next - longest, nearest[next] ?? 0); end <= last; end++) {
    const cost = (costs[end] ?? 0) + waiting(steps, end, next)
    if (cost < best.cost) best = { cost, end }
  }
  // So many polls cannot keep to what the last days ask for.
  if (best.cost === Number.POSITIVE_INFINITY && nearest.at(-1) !== 0)
    return place(steps, bounds, new Int16Array(nearest.length))
  const ends = [best.end]
  for (const from of before.toReversed()) ends.unshift(from[ends[0] ?? 0] ?? 0)
  return ends
}

/**
 * The least cost of each end within `reach`, and the end of the poll before it, which is at one of `ends` and no further away
 * than the longest gap and the last days allow. Of two ends the later one never has the earlier best poll before it, since what
 * waits in a gap grows faster the longer the gap is already; so the middle end halves what is left to try for those on either
 * side of it.
 */
function extend(
  steps: DaySteps,
  costs: Float64Array,
  ends: {
    readonly from: number
    readonly to: number
    readonly longest: number
    readonly nearest: Int16Array
  },
  reach: { readonly from: number; readonly to: number },
) {
  const { events, moments } = steps
  const extended = new Float64Array(costs.length).fill(Number.POSITIVE_INFINITY)
  const before = new Int16Array(costs.length)
  const between = (low: number, high: number, earliest: number, latest: number) => {
    if (low > high) return
    const end = (low + high) >> 1
    let least = Number.POSITIVE_INFINITY
    const last = Math.min(latest, end - 1)
    let best = last
    for (let at = Math.max(earliest, end - ends.longest, ends.nearest[end] ?? 0); at <= last; at++) {
      // As `waiting`, less what all have in common.
      const cost = (costs[at] ?? 0) + (moments[at] ?? 0) - end * (events[at] ?? 0)
      if (cost >= least) continue
      least = cost
      best = at
    }
    if (least < Number.POSITIVE_INFINITY) extended[end] = (costs[best] ?? 0) + waiting(steps, best, end)
    before[end] = best
    between(low, end - 1, earliest, best)
    between(end + 1, high, best, latest)
  }
  between(reach.from, reach.to, ends.from, ends.to)
  return { costs: extended, from: before }
}
