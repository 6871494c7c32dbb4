import type { DayForecast } from '../forecast/day-forecast.ts'
import { clamp } from '../pace/solve.ts'
import { type Announced, delaySeconds } from './evidence.ts'
import { eachBetween } from './rules.ts'

/** How many alerts are expected in each second of a day, by the announced evaluations and what earlier alerts showed. */
export interface EvaluationDay {
  readonly startMs: number
  /** The expected alerts of the evaluations of each second of the day, and of an hour beyond it. */
  readonly brought: Float32Array
  readonly density: readonly number[]
  readonly otherShare: number
  readonly steps: readonly Step[]
}

/** One hour. Its seconds with expected alerts are grouped by how many are expected; all others are quiet. */
interface Step {
  readonly levels: readonly Level[]
  readonly quietSeconds: number
}

interface Level {
  seconds: number
  /** The mean square root of the rate in these seconds: how many polls they need. */
  root: number
  /** Expected alerts in these seconds. */
  alerts: number
}

export const stepSeconds = 3_600
/** The rate of a level as a multiple of the one below. */
const levelFactor = 4
const levelCount = 8
const beyondSeconds = 3_600
/** Seconds with less than this part of the day's mean rate are quiet. */
const busyPart = 0.05
const likelihoodMin = 0.05
const likelihoodMax = 20

/** How likely alerts are at an instant, against the mean of the day. */
export function likelihoodAt({ day, halfHours, meanRate }: DayForecast, atMs: number): number {
  const half = clamp(Math.floor((atMs - day.startMs) / 1_800_000), 0, halfHours.rates.length - 1)
  return clamp((halfHours.rates[half] ?? 0) / Math.max(1e-12, meanRate), likelihoodMin, likelihoodMax)
}

export function evaluationDay({ rules, inUse }: Announced, forecast: DayForecast): EvaluationDay {
  const { startMs, endMs } = forecast.day
  const seconds = Math.ceil((endMs - startMs) / 1_000)
  const brought = new Float32Array(seconds + beyondSeconds)
  const likelihoods = new Map<number, number>()
  for (const rule of rules) {
    eachBetween(rule, startMs - 1, startMs + brought.length * 1_000 - 1, (atMs) => {
      const half = Math.floor((atMs - startMs) / 1_800_000)
      const likelihood = likelihoods.get(half) ?? likelihoodAt(forecast, atMs)
      likelihoods.set(half, likelihood)
      const second = Math.floor((atMs - startMs) / 1_000)
      brought[second] = (brought[second] ?? 0) + rule.rate * likelihood
    })
  }
  const { density, otherShare } = inUse
  const rates = new Float32Array(brought.length + delaySeconds)
  for (let second = 0; second < brought.length; second++) {
    const alerts = brought[second] ?? 0
    if (alerts === 0) continue
    for (let delay = 0; delay < delaySeconds; delay++)
      rates[second + delay] = (rates[second + delay] ?? 0) + alerts * (density[delay] ?? 0)
  }
  const busy = busyPart * forecast.meanRate
  const steps: Step[] = []
  for (let from = 0; from < seconds; from += stepSeconds) {
    const until = Math.min(seconds, from + stepSeconds)
    const levels = Array.from({ length: levelCount }, (): Level => ({ seconds: 0, root: 0, alerts: 0 }))
    let quietSeconds = until - from
    const other = otherShare * (forecast.meanRate * likelihoodAt(forecast, startMs + from * 1_000))
    for (let second = from; second < until; second++) {
      const rate = rates[second] ?? 0
      if (rate < busy) continue
      const place = Math.floor(Math.log(rate / busy) / Math.log(levelFactor))
      const level = levels[Math.min(levelCount - 1, place)]
      if (!level) continue
      quietSeconds--
      level.seconds++
      level.root += Math.sqrt(rate + other)
      level.alerts += rate + other
    }
    for (const level of levels) level.root /= Math.max(1, level.seconds)
    steps.push({ levels: levels.filter((level) => level.seconds > 0), quietSeconds })
  }
  return { startMs, brought, density, otherShare, steps }
}

/** Expected alerts a second at an instant, from announced evaluations. */
export function broughtAt({ startMs, brought, density }: EvaluationDay, atMs: number): number {
  const second = Math.floor((atMs - startMs) / 1_000)
  let rate = 0
  for (let delay = 0; delay < delaySeconds; delay++) {
    const alerts = brought[second - delay] ?? 0
    if (alerts > 0) rate += alerts * (density[delay] ?? 0)
  }
  return rate
}

/** Expected alerts in each of so many seconds from `from` on, from announced evaluations. */
export function broughtFrom(
  { brought, density }: EvaluationDay,
  from: number,
  seconds: number,
): Float64Array {
  const rates = new Float64Array(seconds)
  for (let second = -delaySeconds; second < seconds; second++) {
    const alerts = brought[from + second] ?? 0
    if (alerts === 0) continue
    for (let delay = Math.max(0, -second); delay < delaySeconds && second + delay < seconds; delay++)
      rates[second + delay] = (rates[second + delay] ?? 0) + alerts * (density[delay] ?? 0)
  }
  return rates
}
