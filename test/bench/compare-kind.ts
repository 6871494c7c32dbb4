import { createSchedule } from '../../src/schedule/create.ts'
import { evenLags, simulate, summarizeLags } from '../../src/schedule/simulate.ts'
import { benchOptions } from './compare.ts'
import { benchStartMs } from './traces.ts'
import type { Kind } from './unfriendly.ts'

/** Ours against even polls on a kind of history, from the second week on. */
export interface KindResult {
  /** Of all seeds together, and of each. */
  readonly mean: number
  readonly means: readonly number[]
  readonly p99: number
  /** In even intervals. */
  readonly longest: number
}

const dayMs = 86_400_000
const weekMs = 7 * dayMs

export function compareKind(
  kind: Kind,
  unitsPerDay: number,
  seeds: readonly number[],
  days: number,
): KindResult {
  const options = benchOptions(unitsPerDay)
  const ours: number[] = []
  const even: number[] = []
  const means = seeds.map((seed) => {
    const times = kind(seed, days)
    const first = times.findIndex((at) => at >= benchStartMs + weekMs)
    const lags = simulate(times, createSchedule(options, undefined), options).lagsMs.slice(first)
    const evens = evenLags(times, options).slice(first)
    for (const lag of lags) ours.push(lag)
    for (const lag of evens) even.push(lag)
    return sum(lags) / sum(evens)
  })
  const [mine, theirs] = [summarizeLags(Float64Array.from(ours)), summarizeLags(Float64Array.from(even))]
  return {
    mean: mine.mean / theirs.mean,
    means,
    p99: mine.p99 / theirs.p99,
    longest: (mine.max * 1_000 * unitsPerDay) / dayMs,
  }
}

function sum(values: Float64Array): number {
  return values.reduce((all, value) => all + value, 0)
}
