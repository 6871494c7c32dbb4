import { expect, it } from 'vitest'
import { createSchedule } from '../../src/schedule/create.ts'
import { forecastBudgetDay } from '../../src/schedule/forecast/outlook.ts'
import { emptyProfile } from '../../src/schedule/forecast/profile.ts'
import { fewDay, restOfFew } from '../../src/schedule/pace/few.ts'
import { keptShareMin } from '../../src/schedule/pace/guard.ts'
import { previewPlan } from '../../src/schedule/preview.ts'
import type { Decision } from '../../src/schedule/schedule.ts'
import { evenLags, simulate, summarizeLags } from '../../src/schedule/simulate.ts'
import { benchOptions } from '../bench/compare.ts'
import { benchStartMs } from '../bench/traces.ts'

const hourMs = 3_600_000
const day = { key: '2026-11-22', startMs: 0, endMs: 24 * hourMs }
const forecast = forecastBudgetDay(emptyProfile(), day, benchOptions(24))

it('instants of a day are as many as there are units, none further from the next than the longest gap', () => {
  const instants = fewDay(forecast, 24, 3 * hourMs).chosen
  const gaps = instants.map((at, index) => (instants[index + 1] ?? (instants[0] ?? 0) + day.endMs) - at)
  expect(instants).toHaveLength(24)
  expect(Math.min(...gaps)).toBeGreaterThan(0)
  expect(Math.max(...gaps)).toBeLessThanOrEqual(3 * hourMs)
})

it('a day that turns out otherwise can go on from any instant: most of the even polls of its rest are left', () => {
  const busy = { ...forecast, rates: forecast.rates.map((_, step) => (step < 36 ? 1 : 1e-4)) }
  const instants = fewDay(busy, 24, 5 * hourMs).chosen
  for (const [index, at] of instants.entries()) {
    const evenOfRest = (day.endMs - at) / hourMs
    expect(instants.length - index).toBeGreaterThan(keptShareMin * evenOfRest - 1)
  }
  // As far as that allows, they go into the three hours in which alerts are expected.
  expect(instants.filter((at) => at <= 3.5 * hourMs).length).toBeGreaterThan(5)
})

it('what came on one of the last days would find no long gap, unless there are too few polls', () => {
  const evening = {
    ...forecast,
    rates: forecast.rates.map((_, step) => (step >= 216 && step < 258 ? 1 : 1e-4)),
  }
  const morning = new Float64Array(288).fill(10, 60, 90)
  const waitAt = (atMs: number, instants: readonly number[]) =>
    (instants.find((each) => each >= atMs) ?? 0) - atMs
  const [polls, longestMs] = [10, 7 * hourMs]
  expect(waitAt(7 * hourMs, fewDay(evening, polls, longestMs).chosen)).toBeGreaterThan(5 * hourMs)
  const remembered = { ...evening, lately: [morning] }
  const few = fewDay(remembered, polls, longestMs)
  const instants = few.chosen
  const waits = Array.from({ length: 30 }, (_, step) => waitAt((5 + (step + 0.5) / 12) * hourMs, instants))
  expect(Math.max(...waits)).toBeLessThanOrEqual(4.8 * hourMs)
  expect(instants.filter((at) => at > 18 * hourMs && at <= 21.5 * hourMs).length).toBeGreaterThan(5)
  const rest = restOfFew(few, 1, 4 * hourMs)
  expect(rest).toHaveLength(1)
})

it.each([
  ['an hour before the end of the day, with more units than there is time for', 50, 23],
  ['long after the longest gap', 10, -20],
  ['after a silence, with fewer units than usual', 6, -5.6],
  ['just before the end of the day', 3, 23.99],
])('what is left of the units goes after the last poll: %s', (_, polls, lastHour) => {
  const lastAtMs = lastHour * hourMs
  const rest = restOfFew(fewDay(forecast, 24, 3 * hourMs), polls, lastAtMs)
  const from = Math.max(lastAtMs, day.startMs)
  expect(rest.length).toBeLessThanOrEqual(polls)
  for (const [index, at] of rest.entries()) {
    expect(at).toBeGreaterThan(rest[index - 1] ?? from)
    expect(at).toBeLessThanOrEqual(day.endMs)
  }
})

it('chosen instants that are left while alerts come are left after the next poll that finds none', () => {
  const few = (even: number) => ({ polls: 24, chosen: 0, even, paced: even, isChosen: false })
  const [hardly, surely, not] = [few(1e-9), few(1e3), few(0)]
  const session = [[], [7.2, 7.3, 7.4]]
  expect(nextAfter(hardly, session)).toEqual(nextAfter(surely, session))
  expect(nextAfter(hardly, session)).not.toEqual(nextAfter(not, session))
  expect(nextAfter(hardly, [...session, []])).toEqual(nextAfter(not, [...session, []]))
})

it('what an earlier version knew of few polls goes on until alerts have come, though it did not store how many they were', () => {
  const earlier = { chosen: 1, even: 1e9, paced: 1e9, isChosen: true }
  expect(nextAfter(earlier, [[6.9]])).toEqual(nextAfter({ ...earlier, polls: 24 }, [[6.9]]))
})

/** What is decided after polls at seven o'clock and each hour from there, which found these alerts. */
function nextAfter(score: object, polls: readonly (readonly number[])[]) {
  const options = benchOptions(24)
  const saved = createSchedule(options, undefined).snapshot() as object
  const schedule = createSchedule(options, { ...saved, few: score })
  let decision: Decision | undefined
  for (const [at, fired] of polls.entries()) {
    const atMs = (7 + at) * hourMs
    const firedAtMs = fired.map((hour) => hour * hourMs)
    schedule.observe({ atMs, ok: true, firedAtMs, pages: 1, pagesLeft: 'none' })
    decision = schedule.next(atMs, { day, unitsPerDay: 24, unitsLeft: 17 - at })
  }
  return decision
}

it.each([
  ['of ten minutes gets several polls, not one just after it', { units: 48, hour: 7, minutes: 10 }, 0.2],
  [
    'just after the reset, when the guard keeps most units, has its chosen instants',
    { units: 48, hour: 0, minutes: 20 },
    0.45,
  ],
])('a session %s', (_, { units, hour, minutes }, most) => {
  const { options, times, lagsMs } = polled(units, hour, minutes)
  const laterOf = (lags: Float64Array) => summarizeLags(lags.subarray(7 * 40)).mean
  expect(laterOf(lagsMs)).toBeLessThan(most * laterOf(evenLags(times, options)))
})

it.each([
  [5, 0],
  [24, 0],
  [24, 23],
])('%i polls and what alerts of the hour from %i:00 wait for them are drawn as they come', (units, hour) => {
  const { options, lagsMs, polls, schedule } = polled(units, hour, 60)
  const fromMs = benchStartMs + 11 * day.endMs
  const { hours, lag } = previewPlan(options, schedule.snapshot(), fromMs, 24)
  const { mean, p95 } = summarizeLags(lagsMs.subarray(7 * 40))
  expect(lag.mean / mean).toBeCloseTo(1, 0.8)
  expect(lag.p95 / p95).toBeCloseTo(1, 0.8)
  const drawn = hours.map(({ startMs, polls: some }) => {
    const ofHour = polls.filter((at) => at >= startMs && at < startMs + hourMs)
    return Math.abs(some - ofHour.length)
  })
  expect(drawn.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(0.2 * 2 * units)
})

it('few polls are drawn by what is expected where the days behind had another number of them', () => {
  const [{ schedule }, { options, lagsMs }] = [polled(24, 7, 15), polled(3, 7, 15)]
  const { lag } = previewPlan(options, schedule.snapshot(), benchStartMs + 11 * day.endMs, 24)
  expect(lag.mean / summarizeLags(lagsMs.subarray(7 * 40)).mean).toBeCloseTo(1, 0.5)
})

it('ten times more units than before are soon spent as if they had been so many all the time', () => {
  const [before, { lagsMs: usualMs }] = [polled(5, 23, 60), polled(50, 23, 60)]
  const { lagsMs } = polled(50, 23, 60, before.schedule.snapshot())
  const meanOf = (lags: Float64Array) => summarizeLags(lags.subarray(7 * 40)).mean
  expect(meanOf(lagsMs)).toBeLessThan(1.3 * meanOf(usualMs))
})

/** Forty alerts a day in one session, twelve days; after what was learned in twelve others. */
function polled(units: number, hour: number, minutes: number, saved?: unknown) {
  const options = benchOptions(units)
  const startMs = benchStartMs + (saved ? 12 : 0) * day.endMs
  const times = Array.from({ length: 12 * 40 }, (_, at) => {
    const place = ((at % 40) + ((at * 7_919) % 15_000) / 15_000) / 40
    return startMs + Math.floor(at / 40) * day.endMs + hour * hourMs + Math.floor(place * minutes * 60_000)
  })
  const schedule = createSchedule(options, saved)
  return { options, times, schedule, ...simulate(times, schedule, options) }
}
