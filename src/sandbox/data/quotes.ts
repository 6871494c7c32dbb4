import { createHash } from 'node:crypto'
import type { Instrument } from '../market.ts'
import { chance, dayOf, type Session, sessionsOf } from './sessions.ts'

/**
 * What follows from the history of an instrument: its row in the catalog and on the board, its prices, its readings. Names
 * that the API's document does not show are the sandbox's own, here and in all of `sandbox/data/`; a client must not depend
 * on them.
 */
export interface Scene {
  readonly seed: number
  readonly nowMs: number
}

/** How many sessions readings are computed from. */
const seriesSessions = 260

const [metals, cars, oil, banks] = [
  'فلزات اساسی',
  'خودرو و ساخت قطعات',
  'فرآورده‌های نفتی',
  'بانک‌ها و مؤسسات اعتباری',
]
const industries: Readonly<Record<string, string>> = {
  ...{ foolad: metals, fameli: metals, kegol: 'استخراج کانه‌های فلزی', khodro: cars, khesapa: cars },
  ...{ shepna: oil, shabandar: oil, vabmellat: banks, vatejarat: banks, shasta: 'سرمایه‌گذاری‌ها' },
}
const venues = ['bourse', 'fara', 'fara_base'] as const

export function catalogRow(instrument: Instrument, scene: Scene) {
  const { id, symbol, slug, persian, english, unit } = instrument
  const { last } = quote(instrument, scene)
  return {
    ...{ id, symbol, slug, namePersian: persian, nameEnglish: english },
    ...{ market: marketOf(instrument), board: venueOf(instrument), last, unit },
  }
}

export function profileRow(instrument: Instrument, scene: Scene) {
  const row = catalogRow(instrument, scene)
  const { free_float: freeFloat, market_cap: marketCap } = readings(instrument, scene)
  return {
    ...row,
    freeFloatPercent: freeFloat ?? null,
    marketCap: marketCap ?? null,
    sector: industryOf(instrument),
  }
}

export function boardRow(instrument: Instrument, scene: Scene) {
  const { id, symbol, slug, persian, english, unit } = instrument
  const { last, close, change, volume, value } = quote(instrument, scene)
  const share = (use: number) => Math.round(chance(scene.seed, id, dayOf(scene.nowMs), use) * 1_000) / 10
  return {
    ...{ instrumentId: id, symbol, slug, namePersian: persian, nameEnglish: english },
    ...{ group: groupOf(instrument), exchange: venueOf(instrument), industry: industryOf(instrument) },
    ...{ last, close, change, volume, value, retailBuyShare: share(20), retailSellShare: share(21), unit },
  }
}

export function pricesRecord(instrument: Instrument, scene: Scene, days: number) {
  const { symbol, slug, unit } = instrument
  const points = sessionsOf(instrument, scene.seed, scene.nowMs, days)
  const closes = points.map(({ close }) => close)
  const [first = 0] = closes
  const last = closes.at(-1) ?? first
  return {
    ...{ symbol, slug, unit, days, points },
    statistics: {
      high: Math.max(...points.map(({ high }) => high)),
      low: Math.min(...points.map(({ low }) => low)),
      averageClose: twoDigits(mean(closes)),
      changePercent: twoDigits((last / first - 1) * 100),
      haltedSessions: points.filter(({ halted }) => halted).length,
    },
  }
}

export function indicatorsRecord(instrument: Instrument, scene: Scene) {
  const { symbol, slug } = instrument
  const series = sessionsOf(instrument, scene.seed, scene.nowMs, seriesSessions)
  const struck = series.map(({ date, close }) => `${date} ${close}`).join('\n')
  return {
    ...{ symbol, slug, asOf: series.at(-1)?.date ?? null },
    seriesHash: createHash('sha256').update(struck).digest('hex').slice(0, 32),
    indicators: indicators(series),
  }
}

/** The readings that the screener has of an instrument; a key without a reading is absent. */
export function readings(instrument: Instrument, scene: Scene): Readonly<Partial<Record<string, number>>> {
  const series = sessionsOf(instrument, scene.seed, scene.nowMs, seriesSessions)
  const { last, change, volume, value } = quote(instrument, scene)
  const back = (sessions: number) => {
    const before = series.at(-1 - sessions)?.close
    return before === undefined ? 0 : twoDigits((last / before - 1) * 100)
  }
  const moves = { return_1w: back(5), return_1m: back(22), return_3m: back(65), return_1y: back(245) }
  return {
    ...{ last, change, volume, value, ...moves, ...indicators(series) },
    ...(instrument.unit === 'rial' ? companyReadings(instrument, scene.seed, last) : {}),
  }
}

function companyReadings({ id, price }: Instrument, seed: number, last: number) {
  const shareCount = 1_000_000_000 * (10 + Math.floor(chance(seed, id, 0, 30) * 90))
  const eps = Math.round(price * (0.08 + chance(seed, id, 0, 31) * 0.2))
  const holders = Math.round(55 + chance(seed, id, 0, 32) * 30)
  return {
    ...{ share_count: shareCount, market_cap: shareCount * last, eps, pe: twoDigits(last / eps) },
    free_float: 100 - holders,
  }
}

/** The quote of the last session, with the change to the one before in percent. */
function quote(instrument: Instrument, { seed, nowMs }: Scene) {
  const [before, today] = sessionsOf(instrument, seed, nowMs, 2) as [Session, Session]
  const { close, volume, value } = today
  return { last: close, close, volume, value, change: twoDigits((close / before.close - 1) * 100) }
}

function indicators(series: readonly Session[]): Record<string, number> {
  const closes = series.map(({ close }) => close)
  const last = closes.at(-1) ?? 0
  const gap = (sessions: number) => twoDigits((last / mean(closes.slice(-sessions)) - 1) * 100)
  const moves = closes.slice(-15).flatMap((close, index, all) => {
    const before = all[index - 1]
    return before === undefined ? [] : [close - before]
  })
  const up = mean(moves.map((move) => Math.max(0, move)))
  const down = mean(moves.map((move) => Math.max(0, -move)))
  return {
    // Without any move there is no reading.
    ...(up + down === 0 ? {} : { rsi: twoDigits((100 * up) / (up + down)) }),
    ...{ sma_20_gap: gap(20), sma_50_gap: gap(50), sma_100_gap: gap(100), sma_200_gap: gap(200) },
  }
}

function marketOf({ unit, slug }: Instrument): string {
  if (unit === 'rial') return 'tse'
  return slug === 'usd-free' ? 'currency' : 'gold'
}

export function venueOf({ id, unit }: Instrument): string | null {
  return unit === 'rial' ? (venues[id % 3] ?? null) : null
}

export function groupOf({ unit }: Instrument): string {
  return unit === 'rial' ? 'equity' : 'commodity'
}

export function industryOf({ slug }: Instrument): string | null {
  return industries[slug] ?? null
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
}

export function twoDigits(value: number): number {
  return Math.round(value * 100) / 100
}
