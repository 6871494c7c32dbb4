import { instruments } from '../market.ts'
import type { Scene } from './scene.ts'
import { chance, dateOf, dayOf, sessionsOf } from './sessions.ts'

/** The macro layer: daily series that follow an instrument, and monthly ones. A day without an observation is absent. */
interface Series {
  readonly key: string
  readonly name: string
  readonly unit: string
  readonly cadence: 'daily' | 'monthly'
  /** The instrument whose closes it shows. */
  readonly slug?: string
  readonly base?: number
}

const declared: readonly Series[] = [
  { key: 'usd_free', name: 'دلار آزاد', unit: 'toman', cadence: 'daily', slug: 'usd-free' },
  { key: 'gold_ounce', name: 'اونس جهانی طلا', unit: 'usd', cadence: 'daily', slug: 'gold-ounce' },
  { key: 'cpi', name: 'شاخص قیمت مصرف‌کننده', unit: 'index', cadence: 'monthly', base: 320 },
  { key: 'policy_rate', name: 'نرخ سود بین‌بانکی', unit: 'percent', cadence: 'monthly', base: 23 },
]
/** The last value of this series is overdue, so that a client can be tested with a stale series. */
const staleKey = 'policy_rate'
const dayMs = 86_400_000
const absentShare = 0.04
/** From one monthly observation to the next, counted from the epoch. */
const monthDays = 30

export function macroCatalog({ nowMs }: Scene) {
  return declared.map(({ key, name, unit, cadence }) => {
    const stale = key === staleKey
    const behindMs = (cadence === 'monthly' ? 12 : 0.1) * dayMs + (stale ? 60 * dayMs : 0)
    const freshAt = new Date(nowMs - behindMs).toISOString().replace(/\.\d{3}Z$/, 'Z')
    return { key, name, unit, cadence, freshAt, stale }
  })
}

/** undefined where a key is unknown. */
export function macroSeries(keys: readonly string[], days: number, scene: Scene) {
  const found = keys.map((key) => declared.find((each) => each.key === key))
  const known = found.filter((each) => each !== undefined)
  return known.length < found.length
    ? undefined
    : known.map((series) => ({ key: series.key, unit: series.unit, points: pointsOf(series, days, scene) }))
}

function pointsOf(series: Series, days: number, { seed, nowMs }: Scene) {
  const today = dayOf(nowMs)
  const instrument = instruments.find(({ slug }) => slug === series.slug)
  if (instrument !== undefined)
    return sessionsOf(instrument, seed, nowMs, days)
      .filter((_, index) => chance(seed, instrument.id, today - days + 1 + index, 50) >= absentShare)
      .map(({ date, close }) => ({ date, value: close }))
  const { base = 100, key } = series
  const behindDays = key === staleKey ? 72 : 12
  const lastMonth = Math.floor((today - behindDays) / monthDays)
  const firstMonth = Math.ceil((today - days) / monthDays)
  return Array.from({ length: Math.max(0, lastMonth - firstMonth + 1) }, (_, index) => {
    const day = (firstMonth + index) * monthDays
    return { date: dateOf(day), value: Math.round(base * (1 + chance(seed, base, day, 51) * 0.05) * 10) / 10 }
  })
}
