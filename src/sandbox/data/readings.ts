import { instruments, type Listing } from '../market.ts'
import { companyReadings } from './fundamentals.ts'
import { retailShareOf, type Scene } from './scene.ts'
import { chance, closeOn, dayOf, type Session, sessionsOf } from './sessions.ts'
import { mean, rounded, spread, technicalReadings } from './technical.ts'

/** How many sessions readings are computed from. */
export const seriesSessions = 260

/** The reading of a key, undefined where there is none. */
export type Readings = (key: string) => number | undefined

/** The readings of one day stay the same, and a screen asks for those of the whole market. */
const known = new Map<string, Readings>()
const knownMax = 1_000

/** The readings that the screener has of an instrument, each group of them computed when one of it is asked for. */
export function readings(instrument: Listing, scene: Scene): Readings {
  const name = `${scene.seed} ${instrument.id} ${dayOf(scene.nowMs)}`
  const before = known.get(name)
  if (before !== undefined) return before
  if (known.size >= knownMax) known.clear()
  const made = makeReadings(instrument, scene)
  known.set(name, made)
  return made
}

/** Groups that are cheap to compute come first. A key that no group has computes all of them. */
function makeReadings(instrument: Listing, scene: Scene): Readings {
  const { unit, group } = instrument
  const seriesNow = () => sessionsOf(instrument, scene.seed, scene.nowMs, seriesSessions)
  const quote = quoteOf(sessionsOf(instrument, scene.seed, scene.nowMs, 2))
  const groups: (() => Readonly<Record<string, number>>)[] = [
    () => moves(instrument, scene, quote.last),
    ...(group === 'equity' ? [() => companyReadings(instrument, scene, quote.last)] : []),
    ...(group === 'fund' || group === 'fixed_income' ? [() => fundReadings(instrument, scene)] : []),
    () => technicalReadings(seriesNow()),
    () => tradingReadings(instrument, scene, seriesNow()),
    ...(unit === 'rial' ? [() => retailReadings(instrument, scene, seriesNow())] : []),
    () => risk(instrument, scene),
  ]
  const made: Readonly<Record<string, number>>[] = [quote]
  return (key) => {
    for (const part of made) if (key in part) return part[key]
    for (let next = groups.shift(); next !== undefined; next = groups.shift()) {
      const part = rounded(next())
      made.push(part)
      if (key in part) return part[key]
    }
    return undefined
  }
}

function fundReadings({ id }: Listing, { seed, nowMs }: Scene): Record<string, number> {
  return { nav_gap: chance(seed, id, dayOf(nowMs), 60) * 6 - 3 }
}

/** The quote of the last session, with the change to the one before in percent. */
export function quoteOf(series: readonly Session[]) {
  const [before, today] = series.slice(-2) as [Session, Session]
  const { close, volume, value } = today
  return { last: close, change: Math.round((close / before.close - 1) * 10_000) / 100, volume, value }
}

/** Returns over calendar time; `net`: less the inflation of that time. */
function moves(of: Listing, { seed, nowMs }: Scene, last: number): Record<string, number> {
  const today = dayOf(nowMs)
  const yearStart = Math.floor(Date.UTC(new Date(nowMs).getUTCFullYear(), 2, 21) / 86_400_000)
  const sinceNewYear = today >= yearStart ? today - yearStart : today - yearStart + 365
  const spans = {
    '1w': 7,
    '1m': 30,
    '3m': 91,
    '6m': 182,
    ytd: Math.max(1, sinceNewYear),
    '1y': 365,
    '5y': 1_826,
  }
  return Object.fromEntries(
    Object.entries(spans).flatMap(([name, days]) => {
      const move = (last / closeOn(of, seed, today - days) - 1) * 100
      return [
        [`return_${name}`, move],
        [`return_${name}_net`, move - (days / 365) * 30],
      ]
    }),
  )
}

function tradingReadings({ id }: Listing, { seed, nowMs }: Scene, series: readonly Session[]) {
  const today = series.at(-1) as Session
  const [before] = series.slice(-2) as [Session]
  const average = (key: 'volume' | 'value', sessions: number) =>
    mean(series.slice(-sessions).map((each) => each[key]))
  const spans = {
    '3d': 3,
    '5d': 5,
    '10d': 10,
    '20d': 20,
    '30d': 30,
    '50d': 50,
    '90d': 90,
    '200d': 200,
    '1y': 245,
  }
  const averages = Object.entries(spans).flatMap(([name, sessions]): [string, number][] => [
    [`avg_volume_${name}`, average('volume', sessions)],
    [`avg_value_${name}`, average('value', sessions)],
    [`volume_vs_${name}`, today.volume / average('volume', sessions)],
    [`value_vs_${name}`, today.value / average('value', sessions)],
  ])
  const span = (name: string, sessions: number): [string, number][] => {
    const part = series.slice(-sessions)
    const sum = (key: 'volume' | 'value') => part.reduce((total, each) => total + each[key], 0)
    return [
      [`${name}_open`, part[0]?.open ?? Number.NaN],
      [`${name}_high`, Math.max(...part.map(({ high }) => high))],
      [`${name}_low`, Math.min(...part.map(({ low }) => low))],
      [`${name}_close`, today.close],
      [`${name}_vwap`, sum('value') / sum('volume')],
    ]
  }
  const [high, low] = [
    Math.max(...series.map((each) => each.high)),
    Math.min(...series.map((each) => each.low)),
  ]
  const back = series.toReversed()
  const sign = (at: number) => Math.sign((back[at]?.close ?? 0) - (back[at + 1]?.close ?? 0))
  let run = 1
  while (run < 20 && sign(run) === sign(0)) run += 1
  return {
    ...Object.fromEntries([...averages, ...span('week', 5), ...span('month', 22)]),
    trade_count: Math.round(today.volume / (2_000 + (id % 13) * 400)),
    band_room: 5 - Math.abs((today.close / before.close - 1) * 100),
    volume_ratio: today.volume / average('volume', 20),
    avg_volume_month: average('volume', 22),
    volume_surge: (today.volume / average('volume', 22) - 1) * 100,
    run_sessions: run * sign(0),
    gap_open: (today.open / before.close - 1) * 100,
    high_gap: (today.close / high - 1) * 100,
    low_gap: (today.close / low - 1) * 100,
    range_position: ((today.close - low) / (high - low)) * 100,
    pattern_count: back
      .slice(0, 20)
      .filter((each) => Math.abs(each.close - each.open) < (each.high - each.low) / 10).length,
    pattern_days: back.findIndex((each) => Math.abs(each.close - each.open) < (each.high - each.low) / 10),
    score: 20 + chance(seed, id, dayOf(nowMs), 61) * 70,
    percentile_liquidity: Math.min(99, Math.log10(1 + average('value', 22)) * 7),
    stance_edge: chance(seed, id, dayOf(nowMs), 62) * 2 - 1,
    stance_direction: sign(0),
    stance_tradability: Math.min(1, average('volume', 22) / 10_000_000),
  }
}

function retailReadings(
  of: Listing,
  { seed, nowMs }: Scene,
  series: readonly Session[],
): Record<string, number> {
  const day = dayOf(nowMs)
  const net = (back: number) => {
    const { value = 0 } = series.at(-1 - back) ?? {}
    const { buy, sell } = retailShareOf(of, seed, day - back)
    return (value * (buy - sell)) / 100
  }
  const sum = (sessions: number) =>
    Array.from({ length: sessions }, (_, back) => net(back)).reduce((a, b) => a + b, 0)
  const shares = Array.from({ length: 20 }, (_, back) => retailShareOf(of, seed, day - back))
  const [buy, sell] = [mean(shares.map((each) => each.buy)), mean(shares.map((each) => each.sell))]
  const perHead = mean(series.slice(-20).map(({ value }) => value)) / 400
  return {
    retail_buy: retailShareOf(of, seed, day).buy,
    retail_net: net(0),
    retail_net_5d: sum(5),
    retail_net_20d: sum(20),
    retail_share_20d: (buy + sell) / 2,
    retail_per_capita_buy_20d: (perHead * buy) / 100,
    retail_per_capita_sell_20d: (perHead * sell) / 100,
    buyer_strength_20d: buy / sell,
    queue_sessions_20d: series.slice(-20).filter(({ open, close }) => close / open > 1.009).length,
    turnover_share: (mean(series.slice(-20).map(({ volume }) => volume)) / 1e11) * 100,
  }
}

/** The volatility of returns; their beta and correlation with the index of large companies, with that of all, and with the dollar. */
function risk(of: Listing, scene: Scene): Record<string, number> {
  const windows = { '90d': [1, 90], '60w': [7, 60], '36m': [30, 36] } as const
  return Object.fromEntries(
    Object.entries(windows).flatMap(([name, [stepDays, count]]): [string, number][] => {
      const own = returnsOf(of, scene, stepDays, count)
      const falls = own.filter((each) => each < 0)
      const spreads: [string, number][] = [
        [`stdev_${name}`, spread(own)],
        [
          `semi_stdev_${name}`,
          falls.length === 0 ? Number.NaN : Math.sqrt(mean(falls.map((each) => each ** 2))),
        ],
        ...(name === '90d' ? [['volatility_30d', spread(own.slice(0, 30))] as [string, number]] : []),
      ]
      return [
        ...spreads,
        ...Object.entries(marketReturns(scene, stepDays, count)).flatMap(
          ([index, market]): [string, number][] => {
            const [middle, marketMiddle] = [mean(own), mean(market)]
            const products = own.map((each, at) => (each - middle) * ((market[at] ?? 0) - marketMiddle))
            const together = mean(products)
            return [
              [`beta_${index}_${name}`, together / spread(market) ** 2],
              [`correlation_${index}_${name}`, together / (spread(own) * spread(market))],
              [`shared_sessions_${index}_${name}`, count],
            ]
          },
        ),
      ]
    }),
  )
}

/** In percent, the latest first. */
function returnsOf(of: Listing, { seed, nowMs }: Scene, stepDays: number, count: number): number[] {
  const today = dayOf(nowMs)
  const closes = Array.from({ length: count + 1 }, (_, back) => closeOn(of, seed, today - back * stepDays))
  return closes.slice(0, -1).map((close, at) => (close / (closes[at + 1] ?? close) - 1) * 100)
}

let marketKnown: { readonly name: string; readonly returns: Record<string, number[]> }[] = []

function marketReturns(scene: Scene, stepDays: number, count: number): Record<string, number[]> {
  const name = `${scene.seed} ${dayOf(scene.nowMs)} ${stepDays}`
  const before = marketKnown.find((each) => each.name === name)
  if (before !== undefined) return before.returns
  const index = (members: readonly Listing[]) => {
    const all = members.map((each) => returnsOf(each, scene, stepDays, count))
    return Array.from({ length: count }, (_, at) => mean(all.map((each) => each[at] ?? 0)))
  }
  const shares = instruments.filter(({ group }) => group === 'equity')
  const returns = {
    tedpix: index(shares.slice(0, 10)),
    tepixew: index(shares.slice(0, 40)),
    usd_free: index(instruments.filter(({ slug }) => slug === 'usd-free')),
  }
  marketKnown = [{ name, returns }, ...marketKnown].slice(0, 6)
  return returns
}
