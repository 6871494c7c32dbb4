import { createRandom, type Random } from './random.ts'

/**
 * Synthetic histories. Every trace knows the rate it was drawn from, minute by minute, so that schedulers that know
 * the truth can be measured on the same alerts. Nothing here was fitted to a real feed.
 */
export interface Trace {
  readonly name: string
  readonly startMs: number
  readonly days: number
  /** Firing times, ascending. */
  readonly times: number[]
  /** Alerts a second, a value a minute, of the very days drawn: holidays, halts and storms included. */
  readonly trueRate: Float64Array
  /** The same without what no calendar foretells. */
  readonly seasonalRate: Float64Array
}

export const scenarioNames = [
  'market',
  'bursty',
  'quiet',
  'heavy',
  'halts',
  'shift',
  'wrongprior',
  'flat',
  'storm',
  'tick60',
] as const
export type ScenarioName = (typeof scenarioNames)[number]

/** Saturday 2024-01-06 00:00 in Tehran, which keeps +03:30 all year. */
export const benchStartMs = Date.UTC(2024, 0, 5, 20, 30)
const minutes = 1_440

export function createTrace(name: ScenarioName, seed: number, days = 70): Trace {
  const random = createRandom(seed * 7_919 + scenarioNames.indexOf(name) * 104_729 + 1)
  const trueRate = new Float64Array(days * minutes)
  const seasonalRate = new Float64Array(days * minutes)
  for (let day = 0; day < days; day++) {
    const weekday = day % 7
    const seasonal = seasonalDay(name, weekday, day >= days / 2)
    const actual = actualDay(name, seasonal, weekday, random)
    const factor = Math.exp(0.4 * random.normal() - 0.08)
    seasonalRate.set(seasonal, day * minutes)
    trueRate.set(
      actual.map((rate) => rate * factor),
      day * minutes,
    )
  }
  if (name === 'storm') addStorms(trueRate, days, random)
  return {
    name,
    startMs: benchStartMs,
    days,
    times: drawTimes(name, trueRate, random),
    trueRate,
    seasonalRate,
  }
}

/** Arrivals of a Poisson process with a rate for each minute from `startMs`. */
export function drawPoisson(rate: Float64Array, startMs: number, random: Random): number[] {
  const times: number[] = []
  for (let minute = 0; minute < rate.length; minute++) {
    const count = random.poisson((rate[minute] ?? 0) * 60)
    for (let k = 0; k < count; k++) times.push(startMs + Math.floor((minute + random.next()) * 60_000))
  }
  return times.sort((a, b) => a - b)
}

/** Each arrival begets others: `branching` on average, exponentially late with a mean of `memorySeconds`. */
export function withOffspring(
  immigrants: readonly number[],
  branching: number,
  memorySeconds: number,
  endMs: number,
  random: Random,
): number[] {
  const all = [...immigrants]
  for (let at = 0; at < all.length; at++) {
    const parent = all[at] ?? 0
    for (let k = random.poisson(branching); k > 0; k--) {
      const child = parent + Math.floor(random.exponential(memorySeconds * 1_000))
      if (child < endMs) all.push(child)
    }
  }
  return all.sort((a, b) => a - b)
}

const alertsADay: Partial<Record<ScenarioName, number>> = { quiet: 5, heavy: 5_000 }

function seasonalDay(name: ScenarioName, weekday: number, lateHalf: boolean): Float64Array {
  const rate = new Float64Array(minutes)
  const alerts = alertsADay[name] ?? 200
  if (name === 'flat') return spread(rate, 0, 24, alerts)
  const trading = weekday < 5
  const volume = trading ? 1 : weekday === 5 ? 0.2 : 0.1
  const later = name === 'shift' && lateHalf ? 1 : 0
  if (name === 'wrongprior') {
    spread(rate, 18, 22, 0.8 * alerts * volume)
    spread(rate, 8, 24, 0.17 * alerts * volume)
    return spread(rate, 0, 24, 0.03 * alerts * volume)
  }
  if (trading) {
    spread(rate, 9 + later, 12.5 + later, 0.38 * alerts)
    decaying(rate, 9 + later, 20, 0.24 * alerts)
    spread(rate, 12.25 + later, 12.5 + later, 0.1 * alerts)
  } else spread(rate, 9, 17, 0.4 * alerts * volume)
  spread(rate, 15, 19, 0.16 * alerts * volume)
  spread(rate, 10, 22, 0.1 * alerts * volume)
  return spread(rate, 0, 24, 0.02 * alerts * volume)
}

function actualDay(
  name: ScenarioName,
  seasonal: Float64Array,
  weekday: number,
  random: Random,
): Float64Array {
  if (name !== 'halts' || weekday >= 5) return seasonal
  if (random.next() < 0.12) return seasonalDay(name, 6, false)
  if (random.next() >= 0.35) return seasonal
  const rate = seasonal.slice()
  const from = Math.floor(9.2 * 60 + random.next() * 120)
  const to = from + 20 + Math.floor(random.next() * 70)
  rate.fill(0, from, to)
  for (let minute = to; minute < to + 20; minute++) rate[minute] = (rate[minute] ?? 0) * 3 + 1 / 60
  return rate
}

function addStorms(rate: Float64Array, days: number, random: Random): void {
  for (let storm = 0; storm < 4; storm++) {
    const day = Math.floor(((storm + 0.3 + 0.5 * random.next()) * days) / 4)
    const from = day * minutes + 540 + Math.floor(random.next() * 180)
    const length = 5 + Math.floor(random.next() * 25)
    const alerts = 1_500 + 2_500 * random.next()
    for (let minute = from; minute < from + length; minute++)
      rate[minute] = (rate[minute] ?? 0) + alerts / length / 60
  }
}

function drawTimes(name: ScenarioName, rate: Float64Array, random: Random): number[] {
  const endMs = benchStartMs + rate.length * 60_000
  switch (name) {
    case 'bursty':
      return withOffspring(
        drawPoisson(
          rate.map((r) => r * 0.25),
          benchStartMs,
          random,
        ),
        0.75,
        120,
        endMs,
        random,
      )
    case 'heavy':
      return batched(
        drawPoisson(
          rate.map((r) => r * 0.6),
          benchStartMs,
          random,
        ),
        random,
      )
    case 'tick60':
      return drawPoisson(rate, benchStartMs, random)
        .map((at) => Math.floor(at / 60_000) * 60_000 + Math.floor(random.next() * 3_000))
        .sort((a, b) => a - b)
    default:
      return drawPoisson(rate, benchStartMs, random)
  }
}

/** One arrival in ten brings about seven more within its second. */
function batched(times: readonly number[], random: Random): number[] {
  return times.flatMap((at) => {
    const extra = random.next() < 0.1 ? random.poisson(6.7) : 0
    return Array.from({ length: 1 + extra }, () => at)
  })
}

function spread(rate: Float64Array, fromHour: number, toHour: number, alerts: number): Float64Array {
  const [from, to] = [Math.round(fromHour * 60), Math.round(toHour * 60)]
  for (let minute = from; minute < to; minute++)
    rate[minute] = (rate[minute] ?? 0) + alerts / (to - from) / 60
  return rate
}

function decaying(rate: Float64Array, fromHour: number, meanMinutes: number, alerts: number): void {
  for (let k = 0; k < 120; k++) {
    const minute = Math.round(fromHour * 60) + k
    rate[minute] = (rate[minute] ?? 0) + (alerts * Math.exp(-k / meanMinutes)) / meanMinutes / 60
  }
}
