import type { ScheduleOptions } from './options.ts'
import type { Schedule } from './schedule.ts'
import { budgetDay } from './time/budget-day.ts'

/** What a schedule would have done with a history. Lags in milliseconds, in the order of the alerts. */
export interface Replay {
  readonly polls: readonly number[]
  readonly unitsPerDayMax: number
  readonly lagsMs: Float64Array
}

/**
 * Puts a history (firing times, ascending, at least one) through a schedule with a simulated clock: a unit a poll,
 * calls that take no time, the first budget day that of the first alert. It ends with the budget day of the last
 * alert, or with the poll that sees the last alert where that comes later.
 */
export function replay(times: readonly number[], schedule: Schedule, options: ScheduleOptions): Replay {
  const polls: number[] = []
  const lagsMs = new Float64Array(times.length)
  const endMs = budgetDay(times.at(-1) ?? 0, options).endMs
  let day = budgetDay(times[0] ?? 0, options)
  let nowMs = day.startMs
  let used = 0
  let unitsPerDayMax = 0
  let seen = 0
  for (;;) {
    const budget = { unitsPerDay: options.unitsPerDay, unitsLeft: options.unitsPerDay - used, day }
    nowMs = Math.ceil(Math.max(nowMs, schedule.next(nowMs, budget).atMs))
    if (nowMs >= endMs && seen === times.length) return { polls, unitsPerDayMax, lagsMs }
    if (nowMs >= day.endMs) {
      day = budgetDay(nowMs, options)
      used = 0
    }
    const from = seen
    for (; seen < times.length && (times[seen] ?? 0) <= nowMs; seen++)
      lagsMs[seen] = nowMs - (times[seen] ?? 0)
    const firedAtMs = times.slice(from, seen)
    schedule.observe({ atMs: nowMs, ok: true, firedAtMs, pages: 1, pagesLeft: 'none' })
    polls.push(nowMs)
    used++
    unitsPerDayMax = Math.max(unitsPerDayMax, used)
  }
}

export interface LagSummary {
  readonly mean: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

/** Seconds, to the millisecond; percentiles by the nearest rank. */
export function summarizeLags(lagsMs: Float64Array): LagSummary {
  const sorted = lagsMs.toSorted()
  const rank = (share: number) => (sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0) / 1_000
  const mean = sorted.reduce((sum, lag) => sum + lag, 0) / Math.max(1, sorted.length) / 1_000
  return {
    mean: Math.round(mean * 1_000) / 1_000,
    p50: rank(0.5),
    p95: rank(0.95),
    p99: rank(0.99),
    max: rank(1),
  }
}

/** The lags of polls that lie evenly in every budget day, half a gap from its ends. */
export function evenLags(times: readonly number[], options: ScheduleOptions): Float64Array {
  return Float64Array.from(times, (at) => {
    const day = budgetDay(at, options)
    const gapMs = (day.endMs - day.startMs) / options.unitsPerDay
    const poll = Math.ceil((at - day.startMs) / gapMs - 0.5) + 0.5
    return day.startMs + poll * gapMs - at
  })
}
