import { createHash } from 'node:crypto'
import type { Listing } from '../market.ts'
import { quoteOf, readings, seriesSessions } from './readings.ts'
import { retailShareOf, type Scene, twoDigits } from './scene.ts'
import { dayOf, sessionsOf } from './sessions.ts'
import { mean, technicalReadings } from './technical.ts'

/**
 * What follows from the history of an instrument: its row in the catalog and on the board, its prices, its indicators. Names
 * that the API's document does not show are the sandbox's own, here and in all of `sandbox/data/`; a client must not depend
 * on them.
 */
export function catalogRow(instrument: Listing, scene: Scene) {
  const { id, symbol, slug, persian, english, unit, market, venue } = instrument
  const { last } = quote(instrument, scene)
  return {
    id,
    symbol,
    slug,
    namePersian: persian,
    nameEnglish: english,
    market,
    board: venue,
    last,
    unit,
  }
}

export function profileRow(instrument: Listing, scene: Scene) {
  const row = catalogRow(instrument, scene)
  const reading = readings(instrument, scene)
  return {
    ...row,
    freeFloatPercent: reading('free_float') ?? null,
    marketCap: reading('market_cap') ?? null,
    sector: instrument.industry,
  }
}

export function boardRow(instrument: Listing, scene: Scene) {
  const { id, symbol, slug, persian, english, unit, group, venue, industry } = instrument
  const { last, change, volume, value } = quote(instrument, scene)
  const { buy, sell } = retailShareOf(instrument, scene.seed, dayOf(scene.nowMs))
  return {
    instrumentId: id,
    symbol,
    slug,
    namePersian: persian,
    nameEnglish: english,
    group,
    exchange: venue,
    industry,
    last,
    close: last,
    change,
    volume,
    value,
    retailBuyShare: buy,
    retailSellShare: sell,
    unit,
  }
}

export function pricesRecord(instrument: Listing, scene: Scene, days: number) {
  const { symbol, slug, unit } = instrument
  const points = sessionsOf(instrument, scene.seed, scene.nowMs, days)
  const closes = points.map(({ close }) => close)
  const [first = 0] = closes
  const last = closes.at(-1) ?? first
  return {
    symbol,
    slug,
    unit,
    days,
    points,
    statistics: {
      high: Math.max(...points.map(({ high }) => high)),
      low: Math.min(...points.map(({ low }) => low)),
      averageClose: twoDigits(mean(closes)),
      changePercent: twoDigits((last / first - 1) * 100),
      haltedSessions: points.filter(({ halted }) => halted).length,
    },
  }
}

export function indicatorsRecord(instrument: Listing, scene: Scene) {
  const { symbol, slug } = instrument
  const series = sessionsOf(instrument, scene.seed, scene.nowMs, seriesSessions)
  const struck = series.map(({ date, close }) => `${date} ${close}`).join('\n')
  return {
    symbol,
    slug,
    asOf: series.at(-1)?.date ?? null,
    seriesHash: createHash('sha256').update(struck).digest('hex').slice(0, 32),
    indicators: technicalReadings(series),
  }
}

function quote(instrument: Listing, { seed, nowMs }: Scene) {
  return quoteOf(sessionsOf(instrument, seed, nowMs, 2))
}
