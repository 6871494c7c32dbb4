import { beforeAll, describe, expect, it, vi } from 'vitest'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { previewPlan } from '../../src/schedule/preview.ts'
import type { Schedule, ScheduleOptions } from '../../src/schedule/schedule.ts'
import { evenLags, simulate } from '../../src/schedule/simulate.ts'
import { benchOptions } from '../bench/compare.ts'
import { createRandom } from '../bench/random.ts'
import { computing } from '../support/computing.ts'

vi.setConfig(computing)

/** Clocks and calendars that are not as usual, at forty units a day. */

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const { activeHours: _, ...options } = benchOptions(40)
const startMs = budgetDay(Date.parse('2026-03-02T12:00:00Z'), options).startMs

/** Sixty alerts a day for three hours from an hour of the day on, on days of which the first is `fromDay`. */
function session(fromDay: number, days: number, hour: number, seed = 1): number[] {
  const random = createRandom(seed)
  return Array.from({ length: days * 60 }, (_, at) => {
    const day = fromDay + Math.floor(at / 60)
    return Math.floor(startMs + day * dayMs + (hour + 3 * random.next()) * hourMs)
  }).sort((a, b) => a - b)
}

/** The mean lag of a history as a part of that of even polls, from an instant on. */
function ratioFrom(fromMs: number, times: readonly number[], lagsMs: Float64Array): number {
  const first = times.findIndex((at) => at >= fromMs)
  const sum = (values: Float64Array) => values.slice(first).reduce((all, value) => all + value, 0)
  return sum(lagsMs) / sum(evenLags(times, options))
}

describe('a clock that was ahead for one poll', () => {
  const moved = session(10, 9, 18)
  let known: unknown
  let right = 0
  const simulatedFrom = (schedule: Schedule) =>
    ratioFrom(startMs + 15 * dayMs, moved, simulate(moved, schedule, options).lagsMs)

  beforeAll(() => {
    const schedule = createSchedule(options, undefined)
    simulate(session(0, 10, 9), schedule, options)
    known = schedule.snapshot()
    right = simulatedFrom(schedule)
    expect(right).toBeLessThan(0.75)
  })

  it.each([1, 200])('by %d days does not stop the learning', (daysAhead) => {
    const schedule = createSchedule(options, structuredClone(known))
    const atMs = startMs + (10 + daysAhead) * dayMs
    schedule.next(atMs, { unitsPerDay: 40, unitsLeft: 39, day: budgetDay(atMs, options) })
    schedule.observe({ atMs, ok: true, firedAtMs: [], pages: 1, pagesLeft: 'none' })
    expect(simulatedFrom(schedule)).toBeLessThan(0.1 + right)
  })
})

describe('history that is taught', () => {
  it.each([
    ['ten days', 10, 1],
    ['a month, every other day silent', 30, 2],
  ])('(%s) gives the level that polling gives', (_, days, every) => {
    const times = session(0, days, 9).filter((at) => Math.floor((at - startMs) / dayMs) % every === 0)
    const nowMs = startMs + days * dayMs
    const watched = createSchedule(options, undefined)
    simulate(times, watched, options)
    const taught = createSchedule(options, undefined)
    const day = budgetDay(nowMs, options)
    taught.next(nowMs, { unitsPerDay: 40, unitsLeft: 40, day })
    taught.observe({ atMs: nowMs, ok: true, firedAtMs: [], pages: 1, pagesLeft: 'none' })
    taught.learnHistory(times)
    const [one, other] = [taught, watched].map(
      (each) => previewPlan(options, each.snapshot(), nowMs, 7 * 24).alertsPerDay,
    )
    expect((one ?? 0) / (other ?? 0)).toBeGreaterThan(0.9)
    expect((one ?? 0) / (other ?? 0)).toBeLessThan(1.1)
  })
})

describe('days of 23 and of 25 hours', () => {
  it.each([
    ['23', '2026-03-29', 23],
    ['25', '2026-10-25', 25],
  ])(
    'the %s hours of %s get all units of a day, and the hours of the session stay its hours',
    (_, date, hours) => {
      const berlin: ScheduleOptions = { ...options, timeZone: 'Europe/Berlin' }
      const change = budgetDay(Date.parse(`${date}T12:00:00Z`), berlin)
      expect((change.endMs - change.startMs) / hourMs).toBe(hours)
      // From nine to twelve on the wall clock, ten days before and three after.
      const random = createRandom(5)
      const times: number[] = []
      for (let day = -10; day < 3; day++) {
        const { endMs } = budgetDay(change.startMs + day * dayMs + 12 * hourMs, berlin)
        for (let k = 0; k < 60; k++) times.push(Math.floor(endMs - (12 + 3 * random.next()) * hourMs))
      }
      times.sort((a, b) => a - b)
      const { polls, unitsPerDayMax } = simulate(times, createSchedule(berlin, undefined), berlin)
      expect(unitsPerDayMax).toBe(40)
      const perDay = Map.groupBy(polls, (poll) => budgetDay(poll, berlin).key)
      expect(perDay.get(change.key)?.length).toBeGreaterThanOrEqual(39)
      const gaps = polls.slice(1).map((poll, index) => poll - (polls[index] ?? 0))
      expect(Math.max(...gaps)).toBeLessThanOrEqual(5.1 * (dayMs / 40))
      // On the day of the change and the next one, half of the polls or nearly go to the three hours of the session.
      for (const atMs of [change.startMs, change.endMs]) {
        const { key, endMs } = budgetDay(atMs + hourMs, berlin)
        const within = perDay
          .get(key)
          ?.filter((poll) => poll >= endMs - 15 * hourMs && poll < endMs - 12 * hourMs)
        expect(within?.length).toBeGreaterThan(12)
      }
    },
  )
})

describe('silence', () => {
  const taught = createSchedule(options, undefined)
  simulate(session(0, 14, 9), taught, options)

  it.each([
    ['on one day, such as a holiday out of turn,', 1],
    ['of six weeks', 42],
  ])('%s does not undo what was learned', (_, silentDays) => {
    const schedule = createSchedule(options, structuredClone(taught.snapshot()))
    const back = 14 + silentDays
    // The silent days are polled: the simulation begins with the first of them, and an alert that starts it counts for nothing.
    const times = [startMs + 14 * dayMs, ...session(back, 1, 9, 3)]
    const { lagsMs } = simulate(times, schedule, options)
    expect(ratioFrom(startMs + back * dayMs, times, lagsMs)).toBeLessThan(0.75)
  })
})
