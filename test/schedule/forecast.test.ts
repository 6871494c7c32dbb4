import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { describePreview } from '../../src/cli/plan/picture.ts'
import { budgetDay, budgetFindings } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { binsPerDay, emptyProfile, foldDay, forecastDay } from '../../src/schedule/forecast/profile.ts'
import { smoothShape } from '../../src/schedule/forecast/shape.ts'
import { previewPlan } from '../../src/schedule/preview.ts'
import type { ScheduleOptions } from '../../src/schedule/schedule.ts'
import { simulate } from '../../src/schedule/simulate.ts'
import { benchOptions } from '../bench/compare.ts'
import { benchStartMs, createTrace } from '../bench/traces.ts'
import { computing } from '../support/computing.ts'

vi.setConfig(computing)

const flat = new Float64Array(binsPerDay).fill(1 / binsPerDay)
const { activeHours: _, ...options } = benchOptions(2_000)
const hourMs = 3_600_000

/** A day's counts with so many alerts in each bin of an hour. */
function dayWith(hour: number, perBin: number): Int32Array {
  return Int32Array.from({ length: binsPerDay }, (_, bin) =>
    Math.floor(bin / 12) === hour ? perBin * 1_000 : 0,
  )
}

const shareOf = (forecast: Float64Array, hour: number) =>
  forecast.slice(hour * 12, hour * 12 + 12).reduce((sum, rate) => sum + rate, 0) /
  forecast.reduce((sum, rate) => sum + rate, 0)

describe('a shape', () => {
  it('of any counts sums to 1 and leaves no bin without hope', () => {
    const counts = fc.array(fc.integer({ min: 0, max: 50 }), { minLength: binsPerDay, maxLength: binsPerDay })
    fc.assert(
      fc.property(counts, (values) => {
        const { shares } = smoothShape(Float64Array.from(values), flat)
        expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9)
        expect(Math.min(...shares)).toBeGreaterThan(0)
      }),
      { numRuns: 30 },
    )
  })

  it('of nothing is the prior', () => {
    const { shares } = smoothShape(new Float64Array(binsPerDay), flat)
    for (const share of shares) expect(share).toBeCloseTo(1 / binsPerDay, 12)
  })

  it('keeps a step sharp once enough alerts stand behind it', () => {
    const counts = Float64Array.from({ length: binsPerDay }, (_, bin) => (bin >= 108 && bin < 150 ? 20 : 0.1))
    const { shares } = smoothShape(counts, flat)
    expect((shares[108] ?? 0) / (shares[107] ?? 1)).toBeGreaterThan(20)
  })

  it('of a handful of alerts stays smooth', () => {
    const counts = new Float64Array(binsPerDay)
    for (const bin of [20, 90, 130, 200, 260]) counts[bin] = 1
    const { shares } = smoothShape(counts, flat)
    expect(Math.max(...shares) * binsPerDay).toBeLessThan(3)
  })
})

describe('the forecast', () => {
  it('lends days to weekdays that turn out alike, and not to those that differ', () => {
    const profile = emptyProfile()
    for (let week = 0; week < 3; week++)
      for (const [row, hour] of [6, 0, 1, 2, 3, 4, 5].map((each) => [each, each === 5 ? 20 : 9] as const))
        if (row !== 3) foldDay(profile, row, dayWith(hour, 5))
    expect(shareOf(forecastDay(profile, 3, options), 9)).toBeGreaterThan(0.7)
    expect(shareOf(forecastDay(profile, 5, options), 20)).toBeGreaterThan(0.7)
  })

  it('follows a session that moves within a few days', () => {
    const profile = emptyProfile()
    for (let day = 0; day < 40; day++) foldDay(profile, day % 5, dayWith(9, 5))
    for (let day = 0; day < 3; day++) foldDay(profile, day % 5, dayWith(11, 5))
    const forecast = forecastDay(profile, 3, options)
    expect(shareOf(forecast, 11)).toBeGreaterThan(shareOf(forecast, 9))
  })

  it('does not forget while the feed is silent', () => {
    const profile = emptyProfile()
    for (let day = 0; day < 10; day++) foldDay(profile, day % 5, dayWith(9, 5))
    const before = shareOf(forecastDay(profile, 1, options), 9)
    for (let day = 0; day < 40; day++) foldDay(profile, day % 7, new Int32Array(binsPerDay))
    expect(shareOf(forecastDay(profile, 1, options), 9)).toBeCloseTo(before, 6)
  })

  it('drops active hours of the config that turn out wrong', () => {
    const withHours = benchOptions(2_000)
    const profile = emptyProfile()
    expect(shareOf(forecastDay(profile, 6, withHours), 10)).toBeGreaterThan(0.1)
    for (let day = 0; day < 5; day++) foldDay(profile, 6, dayWith(19, 5))
    expect(shareOf(forecastDay(profile, 6, withHours), 10)).toBeLessThan(0.03)
  })
})

describe('history', () => {
  const trace = createTrace('market', 3, 15)
  const nowMs = benchStartMs + 14 * 24 * hourMs
  const past = trace.times.filter((at) => at < nowMs)

  it('that is taught at the start plans the first day as if it had been watched', () => {
    const taught = createSchedule(benchOptions(2_000), undefined)
    taught.learnHistory(past)
    const watched = createSchedule(benchOptions(2_000), undefined)
    simulate(past, watched, benchOptions(2_000))
    const [one, other, none] = [taught.snapshot(), watched.snapshot(), undefined].map((saved) =>
      previewPlan(benchOptions(2_000), saved, nowMs, 24),
    )
    const pollsAtNine = (preview: typeof one) => preview?.hours[9]?.polls ?? 0
    expect(pollsAtNine(one)).toBeGreaterThan(1.3 * pollsAtNine(none))
    expect(pollsAtNine(one) / pollsAtNine(other)).toBeGreaterThan(0.75)
    expect(pollsAtNine(one) / pollsAtNine(other)).toBeLessThan(1.33)
  })

  it('may come in any order', () => {
    const [one, other] = [past, past.toReversed()].map((times) => {
      const schedule = createSchedule(benchOptions(2_000), undefined)
      schedule.learnHistory(times)
      schedule.observe({ atMs: nowMs, ok: true, firedAtMs: [], pages: 1, pagesLeft: 'none' })
      return schedule.next(nowMs, { unitsPerDay: 2_000, unitsLeft: 1_999, day: budgetDay(nowMs, options) })
    })
    expect(one).toEqual(other)
  })
})

describe('the preview', () => {
  it('draws ten minutes of a day with the polls that come in them', () => {
    const schedule = createSchedule(benchOptions(500), undefined)
    const inTenMinutes = (at: number) =>
      benchStartMs + Math.floor(at / 40) * 24 * hourMs + (at % 40) * 15_000 + ((at * 7_919) % 15_000)
    schedule.learnHistory(Array.from({ length: 560 }, (_, at) => inTenMinutes(at) + 7 * hourMs))
    const { lagSeconds, evenLagSeconds } = previewPlan(
      benchOptions(500),
      schedule.snapshot(),
      benchStartMs + 14 * 24 * hourMs,
      7 * 24,
    )
    expect(lagSeconds / evenLagSeconds).toBeLessThan(0.06)
  })

  it('spends the units of a day, and knows no lag below the best one', () => {
    const preview = previewPlan(benchOptions(2_000), undefined, benchStartMs, 24)
    const { bestRatio = Infinity } = preview
    const polls = preview.hours.reduce((sum, hour) => sum + hour.polls, 0)
    expect(polls).toBeGreaterThan(1_990)
    expect(polls).toBeLessThan(2_001)
    expect(preview.lagSeconds / preview.evenLagSeconds).toBeGreaterThanOrEqual(bestRatio - 1e-9)
    // Even polls are always a part of the plan.
    expect(preview.lagSeconds / preview.evenLagSeconds).toBeLessThan(bestRatio + 0.1)
    expect(preview.lagSeconds).toBeLessThan(preview.evenLagSeconds)
  })
})

describe('findings', () => {
  const codes = (units: number, alertsPerDay: number, more = {}) =>
    budgetFindings({ ...options, ...more, unitsPerDay: units }, { alertsPerDay }).map(({ code }) => code)

  it('are none where all fits', () => {
    expect(codes(2_000, 200)).toEqual([])
    // A shorter minInterval spends no more units where the pace is fixed.
    expect(codes(50_000, 1, { minIntervalMs: 2_000, everyMs: 60_000 })).toEqual([])
  })

  it.each([
    ['a budget below the longest interval', 50, 1, {}, 'floor_unaffordable'],
    ['more pages than units', 150, 5_000, {}, 'pages_unaffordable'],
    ['a fixed pace beyond the units', 500, 1, { everyMs: 30_000 }, 'every_unaffordable'],
    [
      'units that the shortest interval cannot spend',
      50_000,
      1,
      { minIntervalMs: 2_000 },
      'units_unspendable',
    ],
  ])('name %s, with the arithmetic', (_, units, alerts, more, code) => {
    expect(codes(units, alerts, more)).toContain(code)
    const finding = budgetFindings({ ...options, ...more, unitsPerDay: units }, { alertsPerDay: alerts })[0]
    expect(finding?.text).toContain(String(units))
  })

  it('of few units promise no longer wait than that for even polls', () => {
    const thin = { ...options, unitsPerDay: 20, maxIntervalMs: 6 * hourMs }
    expect(budgetFindings(thin, { alertsPerDay: 1 }).map(({ text }) => text)).toEqual([
      '20 units a day are one poll in 1h 12m: alerts that nothing foretells wait half of that in the mean',
    ])
  })
})

describe('what further pages cost', () => {
  const texts = (units: number, alertsPerDay: number, maxIntervalMs: number) =>
    budgetFindings({ ...options, unitsPerDay: units, maxIntervalMs }, { alertsPerDay }).map(
      ({ text }) => text,
    )

  it('is not said to be hours where a few pages leave as many polls as before', () => {
    expect(texts(2_000, 51, 20_000)).toEqual([expect.stringMatching(/: gaps will be about 43\.2s$/)])
  })

  it.each([
    [2_000, 6_000, 44_000, /6000 alerts a day .* 2000 units: gaps will be about 47\.5s$/],
    [2_000, 6_000, 20_000, /6000 alerts a day .* 2000 units: gaps will be about 47\.5s$/],
    [100, 500, 900_000, /500 alerts a day .* 100 units: gaps will be about 16m 56s$/],
    [150, 5_000, 900_000, /5000 alerts a day .* 150 units: alerts may wait for hours$/],
  ])('is told by the gaps that are left: of %d units, %d alerts a day, a poll in %d ms', (...given) => {
    const [units, alerts, maxIntervalMs, text] = given
    expect(texts(units, alerts, maxIntervalMs).at(-1)).toMatch(text)
  })
})

describe('the plan that is drawn', () => {
  it('has no more polls than there are units, whatever gaps the config asks for', () => {
    const thin = { ...options, maxIntervalMs: 10_000 }
    const { hours, lagSeconds, slowestSeconds } = previewPlan(thin, undefined, benchStartMs, 24)
    const polls = hours.reduce((sum, hour) => sum + hour.polls, 0)
    expect(polls).toBeGreaterThan(1_990)
    expect(polls).toBeLessThan(2_010)
    expect([lagSeconds, slowestSeconds]).toEqual([expect.closeTo(21.6, 1), expect.closeTo(43.2, 1)])
  })

  it('is described as it is drawn where units stay unspent, and where a fixed pace spends them early', () => {
    const textOf = (some: ScheduleOptions) =>
      describePreview('main', some, previewPlan(some, undefined, benchStartMs, 24))
    expect(textOf({ ...options, minIntervalMs: 300_000 })).toMatch(
      /No gap is longer than 5m .* or shorter than 5m/,
    )
    expect(textOf(options)).toContain('no plan could reach less than')
    expect(textOf(benchOptions(24))).not.toContain('no plan could reach less than')
    expect(textOf({ ...options, everyMs: 60_000 })).toContain(
      'fixes the pace at 1m: alerts wait 30s on average',
    )
    expect(textOf({ ...options, everyMs: 1_000 })).toMatch(
      /fixes the pace at 1s: alerts wait 11h .* on average/,
    )
  })
})
