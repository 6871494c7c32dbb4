import { budgetDay } from '../../src/schedule/budget.ts'
import type { ScheduleOptions } from '../../src/schedule/schedule.ts'
import type { Trace } from './traces.ts'

/** What ours is measured against. Each gives its polls over the whole trace, never more than the units of a day. */
type Policy = (trace: Trace, options: ScheduleOptions) => number[]

/** Knows the rate of every minute that is to come: the fair limit for a Poisson feed. */
export const trueRate: Policy = (trace, options) => byRate(trace, options, trace.trueRate)
/** Knows the week's true profile, but no halt, no holiday out of turn, no storm. */
export const seasonalRate: Policy = (trace, options) => byRate(trace, options, trace.seasonalRate)

/** 60 % of the units between 08:45 and 12:45, the rest outside. */
export const marketHours: Policy = (trace, options) => {
  const weight = new Float64Array(1_440).map((_, m) => (m >= 525 && m < 765 ? 0.6 / 240 : 0.4 / 1_200))
  const rate = new Float64Array(trace.trueRate.length).map((_, at) => (weight[at % 1_440] ?? 0) ** 2)
  return byRate(trace, options, rate)
}

/** Halves its interval on a hit and lengthens it by half on a miss; stops when the day's units are gone. */
export const backOff: Policy = (trace, options) => {
  const polls: number[] = []
  const even = 86_400_000 / options.unitsPerDay
  let interval = even
  let day = budgetDay(trace.startMs, options)
  let used = 0
  let seen = 0
  const endMs = trace.startMs + trace.days * 86_400_000
  for (let at = trace.startMs; at < endMs; at += interval) {
    if (at >= day.endMs) {
      day = budgetDay(at, options)
      used = 0
    }
    if (used >= options.unitsPerDay) {
      at = day.endMs - interval
      continue
    }
    used++
    polls.push(at)
    const before = seen
    while ((trace.times[seen] ?? Number.POSITIVE_INFINITY) <= at) seen++
    const wanted = seen > before ? interval / 2 : interval * 1.5
    interval = Math.min(options.maxIntervalMs, Math.max(options.minIntervalMs, wanted))
  }
  return polls
}

/** The lag of each alert: the first poll at or after it. An alert after the last poll waits for the end. */
export function lagsOf(times: readonly number[], polls: readonly number[], endMs: number): Float64Array {
  let next = 0
  return Float64Array.from(times, (at) => {
    while (next < polls.length && (polls[next] ?? 0) < at) next++
    return (polls[next] ?? Math.max(at, endMs)) - at
  })
}

/** Polls with a density along the square root of the rate, within the intervals, all units of each day. */
function byRate(trace: Trace, options: ScheduleOptions, rate: Float64Array): number[] {
  const polls: number[] = []
  const [slowest, fastest] = [60_000 / options.maxIntervalMs, 60_000 / options.minIntervalMs]
  for (let day = 0; day < trace.days; day++) {
    const roots = rate.slice(day * 1_440, (day + 1) * 1_440).map(Math.sqrt)
    const clip = (scale: number, root: number) => Math.min(fastest, Math.max(slowest, scale * root))
    const total = (scale: number) => {
      let sum = 0
      for (const root of roots) sum += clip(scale, root)
      return sum
    }
    let [low, high] = [0, 1e9]
    for (let round = 0; round < 100; round++) {
      const middle = round < 50 ? Math.sqrt(Math.max(low, 1e-6) * high) : (low + high) / 2
      if (round >= 50 && (middle === low || middle === high)) break
      if (total(middle) > options.unitsPerDay) high = middle
      else low = middle
    }
    const density = roots.map((root) => clip(low, root))
    const scale = Math.min(1, options.unitsPerDay / total(low))
    let sum = 0.5
    let next = 1
    for (let minute = 0; minute < 1_440; minute++) {
      const here = (density[minute] ?? 0) * scale
      for (; next <= sum + here && next <= options.unitsPerDay; next++)
        polls.push(trace.startMs + Math.round((day * 1_440 + minute + (next - sum) / here) * 60_000))
      sum += here
    }
  }
  return polls
}
