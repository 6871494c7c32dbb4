import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import type { Display } from '../../../src/alert/text/display.ts'
import { chartFigure } from '../../../src/sinks/chart/figure.ts'
import { chartSvg } from '../../../src/sinks/chart/svg.ts'
import { alertOf, englishDisplay, persianDisplay } from '../samples.ts'

/** What a chart shows: the figures, and the text that is drawn. */
const days = ['2026-11-14', '2026-11-15', '2026-11-16', '2026-11-17', '2026-11-18', '2026-11-21']
const closes = [4_870, 4_905, 4_990, 5_040, 5_120, 5_230]
const points = closes.map((close, index) => ({ date: days[index], close, halted: false }))

function figureOf(chart: unknown, alert: Record<string, unknown> = {}, display: Display = persianDisplay) {
  const context = { parts: { chart: { data: chart, at: '' } }, skipped: [], names: {} }
  return chartFigure({ alert: alertOf(alert), context }, display)
}

describe('a chart', () => {
  it.each([
    ['persian', persianDisplay, {}],
    ['english', englishDisplay, {}],
    ['hostile', englishDisplay, { symbol: '</text><image href="file:///etc/passwd"/>\u0000\ufffe\ud800&"' }],
  ] as const)('in %s is the one that was looked at', async (name, display, alert) => {
    const record = { unit: 'rial', points: points.with(2, { date: days[2], close: 4_905, halted: true }) }
    const figure = figureOf(record, { payload: ['level=5200', 'unit=rial'], ...alert }, display)
    if (figure === undefined) throw new Error('no figure')
    const svg = chartSvg(figure, 'light')
    expect(svg).not.toMatch(/<(image|script|a)\b/)
    await expect(`${figure.alt}\n\n${svg.replaceAll('><', '>\n<')}\n`).toMatchFileSnapshot(
      `../golden/chart-${name}.txt`,
    )
  })

  it('is described so that a symbol of the other language does not take the number behind it to its other side', () => {
    const altOf = (symbol: string, display: Display) => figureOf({ points }, { symbol }, display)?.alt
    expect(altOf('فولاد', englishDisplay)).toBe('Price chart of فولاد\u200e: 6 sessions, 4,870–5,230')
    expect(altOf('XAU_USD', persianDisplay)).toBe('نمودار قیمت XAU_USD\u200f: ۶ جلسه، ۴٬۸۷۰–۵٬۲۳۰')
    expect(altOf('XAU_USD', englishDisplay)).toBe('Price chart of XAU_USD: 6 sessions, 4,870–5,230')
  })

  it('has a gap where nothing was traded or no price is known', () => {
    const record = { points: [...points, { date: '2026-11-22', close: null }, ...points] }
    expect(figureOf(record)?.sessions.map(({ close }) => close)).toEqual([...closes, undefined, ...closes])
  })

  it('marks the session of the alert: of its day, or the last one before', () => {
    const markOf = (firedAt: string) => figureOf({ points }, { firedAt })?.alertAt
    expect(markOf('2026-11-21T05:30:05Z')).toBe(5)
    // Still the 18th in UTC, and the 19th in Tehran: the exchange was closed.
    expect(markOf('2026-11-18T21:00:00Z')).toBe(4)
    expect(markOf('2026-11-01T05:30:05Z')).toBeUndefined()
    expect(markOf('2027-02-01T05:30:05Z')).toBeUndefined()
    expect(markOf('yesterday')).toBeUndefined()
    expect(figureOf({ points: points.toReversed() })?.alertAt).toBeUndefined()
    expect(figureOf({ points: closes.map((close) => ({ close })) })).toMatchObject({ days: [] })
  })

  it.each(['America/Los_Angeles', 'UTC', 'Asia/Tokyo'])(
    'marks the session of the alert by the day in Tehran, where the exchange is, also for readers in %s',
    (timeZone) => {
      const display = { ...englishDisplay, timeZone }
      const markOf = (firedAt: string) => figureOf({ points }, { firedAt }, display)?.alertAt
      expect(markOf('2026-11-21T05:30:05Z')).toBe(5)
      expect(markOf('2026-11-20T20:30:05Z')).toBe(5)
      expect(markOf('2026-11-17T20:29:55Z')).toBe(3)
      // Midnight in Tehran.
      const instants = points.map(({ date, close }) => ({ date: `${date}T00:00:00+03:30`, close }))
      expect(figureOf({ points: instants }, {}, display)?.sessions.map(({ day }) => day)).toEqual(days)
    },
  )

  it('marks the level of the payload where it is of the same unit, and near', () => {
    const levelOf = (payload: unknown, unit: string | null = 'rial') =>
      figureOf({ unit, points }, { payload })?.level?.at
    expect(levelOf(['last=5230', 'level=5200'])).toBe(5_200)
    expect(levelOf(['threshold: 5200', 'unit=rial'])).toBe(5_200)
    expect(levelOf(['level=520', 'unit=toman'])).toBeUndefined()
    expect(levelOf(['level=52000'])).toBeUndefined()
    expect(levelOf(['level=5200', 'unit=toman'])).toBeUndefined()
    expect(levelOf(['level=5,200', 'level=NaN', 7, null])).toBeUndefined()
    expect(levelOf('level=5200')).toBeUndefined()
    // Of an alert about a reading, it may be a level of that reading, which only looks like a price.
    const ofReading = (...more: string[]) =>
      figureOf({ unit: 'rial', points }, { kind: 'indicator', payload: ['level=5200', ...more] })?.level?.at
    expect(ofReading()).toBeUndefined()
    expect(ofReading('last=71.3')).toBeUndefined()
    for (const more of ['unit=rial', 'last=5230']) expect(ofReading(more)).toBe(5_200)
  })

  it('of too few sessions, of none, or of figures beyond all prices is none', () => {
    for (const closesOf of [[1, 2, 3, 4], [], [1, 2, 3, 4, 1e300], ['1', '2', '3', '4', '5']])
      expect(figureOf({ points: closesOf.map((close) => ({ close })) })).toBeUndefined()
    expect(figureOf(undefined)).toBeUndefined()
  })
})

test('a chart of any figures has its lines on the picture, and no NaN in it', () => {
  const close = fc.oneof(fc.double({ min: -1e15, max: 1e15, noNaN: true }), fc.constant(null), fc.constant(0))
  fc.assert(
    fc.property(fc.array(close, { maxLength: 70 }), fc.boolean(), (all, flat) => {
      const shown = flat ? all.map(() => all[0]) : all
      const figure = figureOf({ unit: 'rial', points: shown.map((each) => ({ close: each })) })
      if (figure === undefined) return
      const svg = chartSvg(figure, 'both')
      expect(svg).not.toMatch(/NaN|Infinity|undefined/)
      for (const [, y] of svg.matchAll(/ c?y[12]?="([^"]+)"/g)) {
        expect(Number(y)).toBeGreaterThanOrEqual(0)
        expect(Number(y)).toBeLessThanOrEqual(220)
      }
      expect(svg.length).toBeLessThan(100_000)
      expect(figure.prices.length).toBeLessThanOrEqual(6)
    }),
    { numRuns: 200 },
  )
})
