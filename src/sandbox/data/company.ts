import { dateKey } from '../../lib/zone.ts'
import { instruments, type Listing } from '../market.ts'
import { holdingsOf, latestQuarter, letterLagDays, quarterDays, shareCountOf, sumOf } from './figures.ts'
import { catalogRow } from './quotes.ts'
import { type Scene, twoDigits } from './scene.ts'
import { chance, closeOn, dateOf, dayOf } from './sessions.ts'

/** The data about the company of a share: letters, statements, the caller's valuations, its holders. */

const letterCount = 8
const statementPeriods = 4
const dayMs = 86_400_000

interface Letter {
  readonly id: number
  /** The last one that it reports, counted from the epoch. */
  readonly quarter: number
  readonly instrumentId: number
  readonly symbol: string
  readonly slug: string
  readonly title: string
  readonly publishedAt: string
  readonly periodEnd: string
  readonly periodMonths: number
  readonly parsed: boolean
}

const shares = instruments.filter(({ group }) => group === 'equity')

/** Newest first. */
export function lettersOf(instrument: Listing, { seed, nowMs }: Scene): Letter[] {
  if (instrument.group !== 'equity') return []
  const { id, symbol, slug } = instrument
  const [lagDays, quarter] = [letterLagDays(id, seed), latestQuarter(instrument, seed, nowMs)]
  return Array.from({ length: letterCount }, (_, index) => {
    const ended = quarter - index
    const periodMonths = 3 * (1 + (ended % 4))
    return {
      id: id * 1_000 + ended,
      quarter: ended,
      instrumentId: id,
      symbol,
      slug,
      title: `اطلاعات و صورت‌های مالی ${periodMonths} ماهه`,
      publishedAt: `${dateOf(ended * quarterDays + lagDays)}T12:00:00Z`,
      periodEnd: dateOf(ended * quarterDays),
      periodMonths,
      parsed: chance(seed, id, ended, 41) < 0.9,
    }
  })
}

/** Of all companies, newest first. */
export function allLetters(scene: Scene): Letter[] {
  return shares
    .flatMap((share) => lettersOf(share, scene))
    .sort((a, b) => b.publishedAt.localeCompare(a.publishedAt) || b.id - a.id)
}

/** undefined where there is no such letter. */
export function statementsOf(instrument: Listing, letterId: number | undefined, scene: Scene): unknown {
  const parsed = lettersOf(instrument, scene).filter((letter) => letter.parsed)
  const chosen = letterId === undefined ? parsed : parsed.filter(({ id }) => id === letterId)
  if (letterId !== undefined && chosen.length === 0) return undefined
  const periods = chosen.slice(0, statementPeriods)
  const figures = periods.map(({ quarter, periodMonths }) =>
    sumOf(instrument, scene.seed, quarter, periodMonths / 3),
  )
  return {
    symbol: instrument.symbol,
    slug: instrument.slug,
    unit: instrument.unit,
    quota: { total: chosen.length, shown: periods.length },
    periods: periods.map(({ id, periodEnd, periodMonths }) => ({ letterId: id, periodEnd, periodMonths })),
    rows: [
      { key: 'revenue', values: figures.map(({ revenue }) => revenue) },
      { key: 'gross_profit', values: figures.map(({ grossProfit }) => grossProfit) },
      { key: 'operating_profit', values: figures.map(({ operatingProfit }) => operatingProfit) },
      { key: 'net_profit', values: figures.map(({ netProfit }) => netProfit) },
    ],
  }
}

/** The caller has saved one run of each of the first three companies, a day apart. */
export function valuationRuns(scene: Scene, of?: Listing) {
  return shares
    .slice(0, 3)
    .map((share, index) => {
      const { last } = catalogRow(share, scene)
      const value = Math.round(share.price * (1.1 + 0.1 * index))
      const gap = (price: number) => twoDigits((value / price - 1) * 100)
      const savedMs = Date.UTC(2026, 0, 10 + index)
      const priceAtSave = closeOn(share, scene.seed, dayOf(savedMs))
      return {
        id: 700 + index,
        instrumentId: share.id,
        symbol: share.symbol,
        slug: share.slug,
        name: 'dividend discount',
        unit: share.unit,
        value,
        priceAtSave,
        priceNow: last,
        savedAt: new Date(savedMs).toISOString().replace('.000Z', 'Z'),
        gapAtSave: gap(priceAtSave),
        gapNow: gap(last),
      }
    })
    .filter(({ instrumentId }) => of === undefined || instrumentId === of.id)
}

/** Three holders of each company; the largest is a holding company whose own holder is shown, too. */
export function ownershipOf(instrument: Listing, { seed, nowMs }: Scene) {
  const { id } = instrument
  const isShare = instrument.group === 'equity'
  const asOf = dateOf(dayOf(nowMs) - 7)
  const parts = isShare ? holdingsOf(instrument, seed) : []
  const registered = parts.reduce((sum, each) => sum + each, 0)
  const onePercent = shareCountOf(instrument, seed) / 100
  const parent = shares.find((share) => share.id !== id && share.id === 101 + ((id + 5) % 10))
  const holders = parts.map((percent, index) => ({
    entityId: id * 10 + index,
    name: index === 0 ? (parent?.persian ?? 'هلدینگ') : `سهامدار ${index + 1}`,
    kind: 'company',
    percent,
    shareCount: percent * onePercent,
    asOf,
    listedSymbol: index === 0 ? (parent?.symbol ?? null) : null,
    listedSlug: index === 0 ? (parent?.slug ?? null) : null,
  }))
  const strategic = parts.filter((percent) => percent >= 5).reduce((sum, each) => sum + each, 0)
  const tree = holders.map(({ entityId, name, percent, listedSymbol, listedSlug }, index) => ({
    entityId,
    name,
    percent,
    effectivePercent: percent,
    listedSymbol,
    listedSlug,
    end: index === 0 ? null : 'unlisted',
    children:
      index === 0
        ? [
            {
              entityId: 9_000,
              name: 'صندوق بازنشستگی',
              percent: 50,
              effectivePercent: percent / 2,
              end: 'state',
              listedSymbol: null,
              listedSlug: null,
              children: [],
            },
          ]
        : [],
  }))
  return {
    summary: {
      asOf,
      holders,
      registeredPercent: registered,
      strategicPercent: strategic,
      board: isShare
        ? [
            {
              entityId: id * 10 + 5,
              name: 'مدیرعامل',
              role: 'ceo',
              isExecutive: true,
              representative: null,
              termStart: '2025-07-01',
              termEndedAt: null,
              sourceUrl: null,
            },
          ]
        : [],
    },
    freeFloatPercent: isShare ? 100 - registered : null,
    floatGapPoints: isShare ? 0 : null,
    history: holders.slice(0, 1).map(({ entityId, name, percent }) => ({
      entityId,
      name,
      asOf,
      percent,
      previousPercent: percent - 1,
      deltaPoints: 1,
      isEntry: false,
      isExit: false,
    })),
    tree,
    chains: tree.length,
    treeTruncated: false,
    lookThrough: tree.slice(0, 1).map(({ percent }) => ({
      entityId: 9_000,
      name: 'صندوق بازنشستگی',
      kind: 'fund',
      effectivePercent: percent / 2,
      paths: 1,
      truncated: false,
      listedSymbol: null,
      listedSlug: null,
    })),
    interlocks: [],
    conflicts: [],
    profitImpact: [],
  }
}

/** Whether `text` is a date that exists, alone or with a time. */
export function isDate(text: string): boolean {
  const [date = ''] = /^\d{4}-\d\d-\d\d(?=T|$)/.exec(text) ?? []
  if (date === '' || Number.isNaN(Date.parse(text))) return false
  // Date.parse takes 30 February for 2 March.
  return dateKey(Date.parse(`${date}T00:00:00Z`)) === date
}

/** Whether a letter was published on or after the date. */
export function isSince(letter: Letter, since: string): boolean {
  return Date.parse(letter.publishedAt) >= Math.floor(Date.parse(since) / dayMs) * dayMs
}
