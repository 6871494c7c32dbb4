import type { Session } from './sessions.ts'

/**
 * The technical readings of a price series, by their usual formulas, under the screener's keys. A reading that the series is
 * too short for, or that would divide by zero, is absent.
 */
export function technicalReadings(series: readonly Session[]): Record<string, number> {
  const closes = series.map(({ close }) => close)
  const last = closes.at(-1) ?? Number.NaN
  const gap = (to: number) => (last / to - 1) * 100
  const macd = zip(ema(closes, 12), ema(closes, 26), (fast, slow) => fast - slow)
  const signal = ema(macd, 9)
  const rsis = closes.slice(-30).map((_, index, { length }) => rsi(closes, length - 1 - index))
  const [k, d] = stochastic(series, 3)
  const [fastK, fastD] = stochastic(series, 1)
  const [rsiK, rsiD] = smoothed(
    rsis.map((_, at) => placeWithin(rsis.slice(Math.max(0, at - 13), at + 1))),
    3,
  )
  const deviation = spread(closes.slice(-20))
  const [smaNow, emaNow] = [sma(closes, 20), ema(closes, 20).at(-1) ?? Number.NaN]
  const typical = series.map(({ high, low, close }) => (high + low + close) / 3)
  const ranges = trueRanges(series)
  const range = mean(ranges.slice(-14))
  const { plus, minus, adx } = directional(series, ranges)
  return rounded({
    rsi: rsis.at(-1),
    macd_percent: ((macd.at(-1) ?? Number.NaN) / last) * 100,
    macd_signal_percent: ((signal.at(-1) ?? Number.NaN) / last) * 100,
    macd_histogram_percent: (((macd.at(-1) ?? Number.NaN) - (signal.at(-1) ?? 0)) / last) * 100,
    macd_cross: cross(macd, signal),
    bbands_sma_position: ((last - smaNow) / (2 * deviation)) * 50 + 50,
    bbands_sma_width: ((4 * deviation) / smaNow) * 100,
    bbands_ema_position: ((last - emaNow) / (2 * deviation)) * 50 + 50,
    bbands_ema_width: ((4 * deviation) / emaNow) * 100,
    natr: (range / last) * 100,
    stoch_k: k.at(-1),
    stoch_d: d.at(-1),
    stoch_cross: cross(k, d),
    stochf_k: fastK.at(-1),
    stochf_d: fastD.at(-1),
    stochf_cross: cross(fastK, fastD),
    stochrsi_k: rsiK.at(-1),
    stochrsi_d: rsiD.at(-1),
    stochrsi_cross: cross(rsiK, rsiD),
    cci: channelIndex(typical.slice(-20)),
    willr: (stochastic(series, 1)[0].at(-1) ?? Number.NaN) - 100,
    adx,
    plus_di: plus,
    minus_di: minus,
    // The trailing stop: three average ranges from the highest close of a rising trend, or the lowest of a falling one.
    sar_gap: gap(
      sma(closes, 5) >= sma(closes, 20)
        ? Math.max(...closes.slice(-10)) - 3 * range
        : Math.min(...closes.slice(-10)) + 3 * range,
    ),
    mfi: moneyFlow(typical.slice(-15), series.slice(-15)),
    ...averages('sma', (sessions) => gap(sma(closes, sessions)), closes.length),
    ...averages('ema', (sessions) => gap(ema(closes, sessions).at(-1) ?? Number.NaN), closes.length),
    ...averages('wma', (sessions) => gap(wma(closes.slice(-sessions))), closes.length),
    ...pivots(series.at(-2), last),
  })
}

export function rsi(closes: readonly number[], sessionsBack = 0, sessions = 14): number {
  const end = closes.length - sessionsBack
  const moves = closes
    .slice(end - sessions - 1, end)
    .flatMap((close, at, all) => (at === 0 ? [] : [close - (all[at - 1] ?? 0)]))
  const up = moves.reduce((sum, move) => sum + Math.max(0, move), 0)
  const down = moves.reduce((sum, move) => sum + Math.max(0, -move), 0)
  return moves.length < sessions ? Number.NaN : (100 * up) / (up + down)
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** The standard deviation. */
export function spread(values: readonly number[]): number {
  const middle = mean(values)
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)))
}

/** What is no number is left out: an absent reading is not a zero. */
export function rounded(readings: Readonly<Record<string, number | undefined>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(readings).flatMap(([key, value]) =>
      value === undefined || !Number.isFinite(value)
        ? []
        : [[key, (Math.abs(value) < 1e6 ? Math.round(value * 100) / 100 : Math.round(value)) || 0]],
    ),
  )
}

function averages(name: string, gapOf: (sessions: number) => number, length: number): Record<string, number> {
  const spans = [20, 50, 100, 200].filter((sessions) => sessions <= length)
  return Object.fromEntries(spans.map((sessions) => [`${name}_${sessions}_gap`, gapOf(sessions)]))
}

function sma(values: readonly number[], sessions: number): number {
  return values.length < sessions ? Number.NaN : mean(values.slice(-sessions))
}

function ema(values: readonly number[], sessions: number): number[] {
  let average = values[0] ?? Number.NaN
  return values.map((value) => {
    average += (2 / (sessions + 1)) * (value - average)
    return average
  })
}

function wma(values: readonly number[]): number {
  const weights = (values.length * (values.length + 1)) / 2
  return values.reduce((sum, value, at) => sum + value * (at + 1), 0) / weights
}

function zip(a: readonly number[], b: readonly number[], join: (a: number, b: number) => number): number[] {
  return a.map((value, at) => join(value, b[at] ?? Number.NaN))
}

/** 1 where the line has just risen above its signal, -1 where it has just fallen below, else 0. */
function cross(line: readonly number[], signal: readonly number[]): number {
  const side = (back: number) => Math.sign((line.at(-back) ?? Number.NaN) - (signal.at(-back) ?? Number.NaN))
  return side(1) === side(2) ? 0 : side(1)
}

/** The place of the last value between the lowest (0) and the highest (100). */
function placeWithin(values: readonly number[]): number {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  return (((values.at(-1) ?? Number.NaN) - low) / (high - low)) * 100
}

function smoothed(line: readonly number[], sessions: number): [number[], number[]] {
  const signal = line.map((_, at) => mean(line.slice(Math.max(0, at - sessions + 1), at + 1)))
  return [[...line], signal]
}

/** %K and %D of the last sessions over 14; `slowing` 1 is the fast form. */
function stochastic(series: readonly Session[], slowing: number): [number[], number[]] {
  const raw = [8, 7, 6, 5, 4, 3, 2, 1].map((back) => {
    const span = series.slice(series.length - back - 13, series.length - back + 1)
    const [low, high] = [
      Math.min(...span.map((each) => each.low)),
      Math.max(...span.map((each) => each.high)),
    ]
    return (((span.at(-1)?.close ?? Number.NaN) - low) / (high - low)) * 100
  })
  return smoothed(slowing === 1 ? raw : smoothed(raw, slowing)[1], 3)
}

function trueRanges(series: readonly Session[]): number[] {
  return series.flatMap(({ high, low }, at) => {
    const before = series[at - 1]?.close
    return before === undefined ? [] : [Math.max(high, before) - Math.min(low, before)]
  })
}

function directional(series: readonly Session[], ranges: readonly number[]) {
  const at = (back: number) => {
    const [moved, size] = [
      series.slice(series.length - back - 15, series.length - back),
      ranges.slice(ranges.length - back - 14, ranges.length - back),
    ]
    const steps = moved.flatMap(({ high, low }, index) => {
      const before = moved[index - 1]
      return before === undefined ? [] : [[high - before.high, before.low - low] as const]
    })
    const total = size.reduce((sum, range) => sum + range, 0)
    const plus = (100 * steps.reduce((sum, [up, down]) => sum + (up > down && up > 0 ? up : 0), 0)) / total
    const minus =
      (100 * steps.reduce((sum, [up, down]) => sum + (down > up && down > 0 ? down : 0), 0)) / total
    return { plus, minus, index: (100 * Math.abs(plus - minus)) / (plus + minus) }
  }
  const { plus, minus } = at(0)
  return { plus, minus, adx: mean(Array.from({ length: 14 }, (_, back) => at(back).index)) }
}

function channelIndex(typical: readonly number[]): number {
  const middle = mean(typical)
  const deviation = mean(typical.map((value) => Math.abs(value - middle)))
  return ((typical.at(-1) ?? Number.NaN) - middle) / (0.015 * deviation)
}

function moneyFlow(typical: readonly number[], series: readonly Session[]): number {
  const flow = (sign: number) =>
    typical.reduce((sum, value, at) => {
      const before = typical[at - 1]
      return before !== undefined && Math.sign(value - before) === sign
        ? sum + value * (series[at]?.volume ?? 0)
        : sum
    }, 0)
  return (100 * flow(1)) / (flow(1) + flow(-1))
}

/** How far it is from the last close to the first resistance and support of the session before, in percent. */
function pivots(before: Session | undefined, last: number): Record<string, number> {
  if (before === undefined) return {}
  const { high, low, close, open } = before
  const [middle, range] = [(high + low + close) / 3, high - low]
  const demark =
    (close < open ? high + 2 * low + close : close > open ? 2 * high + low + close : high + low + 2 * close) /
    2
  const woodie = (high + low + 2 * close) / 4
  const levels: Readonly<Record<string, readonly [number, number]>> = {
    standard: [2 * middle - low, 2 * middle - high],
    fibonacci: [middle + 0.382 * range, middle - 0.382 * range],
    demark: [demark - low, demark - high],
    camarilla: [close + (range * 1.1) / 12, close - (range * 1.1) / 12],
    woodie: [2 * woodie - low, 2 * woodie - high],
  }
  return Object.fromEntries(
    Object.entries(levels).flatMap(([name, [resistance, support]]) => [
      [`pivot_${name}_to_resistance`, (resistance / last - 1) * 100],
      [`pivot_${name}_to_support`, (support / last - 1) * 100],
    ]),
  )
}
