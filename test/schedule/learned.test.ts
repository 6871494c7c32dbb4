import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { simulate } from '../../src/schedule/simulate.ts'
import { benchOptions } from '../bench/compare.ts'
import { createTrace } from '../bench/traces.ts'
import { computing } from '../support/computing.ts'

vi.setConfig(computing)

const dayMs = 86_400_000

/** A history of `days` with `perDay` alerts each, in heaps that a seed decides. */
function history(seed: number, days: number, perDay: number): number[] {
  const { startMs, times } = createTrace(seed % 2 ? 'bursty' : 'market', seed, days)
  const every = Math.max(1, Math.floor(times.length / (days * perDay)))
  const kept = times.filter((_, index) => index % every === 0)
  return kept.length > 0 ? kept : [startMs + dayMs / 2]
}

describe('the learned schedule, over any history, budget and pair of intervals', () => {
  const cases = fc.record({
    seed: fc.integer({ min: 1, max: 10_000 }),
    days: fc.integer({ min: 2, max: 6 }),
    perDay: fc.integer({ min: 1, max: 300 }),
    unitsPerDay: fc.integer({ min: 96, max: 1_500 }),
    minIntervalMs: fc.constantFrom(250, 1_000, 5_000),
    maxIntervalMs: fc.constantFrom(900_000, 1_800_000),
  })

  it('keeps both intervals, never exceeds the units of a day, and leaves none unspent', () => {
    fc.assert(
      fc.property(cases, ({ seed, days, perDay, ...limits }) => {
        const options = { ...benchOptions(limits.unitsPerDay), ...limits }
        const { polls, unitsPerDayMax } = simulate(
          history(seed, days, perDay),
          createSchedule(options, undefined),
          options,
        )
        expect(unitsPerDayMax).toBeLessThanOrEqual(limits.unitsPerDay)
        // One look at the shortest and the longest: an expectation for each of 18,000 gaps takes longer than the plan.
        const gapsMs = polls.slice(1).map((poll, index) => poll - (polls[index] ?? Number.NaN))
        expect(Math.min(...gapsMs)).toBeGreaterThanOrEqual(limits.minIntervalMs)
        expect(Math.max(...gapsMs)).toBeLessThanOrEqual(limits.maxIntervalMs * 1.02 + 5_000)
        const perDayUsed = Map.groupBy(polls, (poll) => budgetDay(poll, options).key)
        const whole = [...perDayUsed.values()].slice(0, -1).map(({ length }) => length)
        for (const used of whole)
          expect(used).toBeGreaterThanOrEqual(
            Math.min(limits.unitsPerDay * 0.995, limits.unitsPerDay - 1) - 1e-9,
          )
      }),
      { numRuns: 25 },
    )
  })

  it('decides after a restart as it would have without', () => {
    fc.assert(
      fc.property(cases, ({ seed, days, perDay, ...limits }) => {
        const options = { ...benchOptions(limits.unitsPerDay), ...limits }
        const times = history(seed, days, perDay)
        const one = createSchedule(options, undefined)
        simulate(times, one, options)
        const other = createSchedule(options, JSON.parse(JSON.stringify(one.snapshot())))
        const nowMs = (times.at(-1) ?? 0) + dayMs
        const budget = {
          unitsPerDay: limits.unitsPerDay,
          unitsLeft: Math.ceil(limits.unitsPerDay / 3),
          day: budgetDay(nowMs, options),
        }
        expect(other.next(nowMs, budget)).toEqual(one.next(nowMs, budget))
      }),
      { numRuns: 15 },
    )
  })
})

describe('what was saved', () => {
  const options = benchOptions(2_000)
  const nowMs = Date.parse('2026-11-21T06:00:00Z')
  const budget = { unitsPerDay: 2_000, unitsLeft: 1_500, day: budgetDay(nowMs, options) }

  it.each([['nonsense'], [{ v: 99 }], [{ v: 1, profile: 'x' }], [[1, 2, 3]]])(
    'as %j cannot be read: the schedule starts from the prior, and says so',
    (saved) => {
      const lost = createSchedule(options, saved)
      expect(lost.describe(nowMs).memory).toBe('lost')
      const fresh = createSchedule(options, undefined)
      expect(fresh.describe(nowMs).memory).toBe('fresh')
      expect(lost.next(nowMs, budget)).toEqual(fresh.next(nowMs, budget))
    },
  )
})

describe('an operator', () => {
  it('who expects alerts gets polls more often until then, and no longer', () => {
    const options = benchOptions(2_000)
    const nowMs = Date.parse('2026-11-21T18:00:00Z')
    const budget = { unitsPerDay: 2_000, unitsLeft: 800, day: budgetDay(nowMs, options) }
    const schedule = createSchedule(options, undefined)
    schedule.observe({ atMs: nowMs, ok: true, firedAtMs: [], pages: 1, pagesLeft: 'none' })
    const plain = schedule.next(nowMs, budget)
    schedule.setHot(nowMs + 3_600_000)
    const hot = schedule.next(nowMs, budget)
    expect(hot.atMs - nowMs).toBeLessThan((plain.atMs - nowMs) / 1.5)
    expect(hot.reason).toBe('hot')
    schedule.setHot(0)
    expect(schedule.next(nowMs, budget)).toEqual(plain)
  })

  it.each([
    ['more often', 'at chosen instants', { unitsPerDay: 24, unitsLeft: 23, at: '2026-11-21T21:00:00Z' }, 1.5],
    ['no later', 'at chosen instants', { unitsPerDay: 6, unitsLeft: 3, at: '2026-11-22T06:30:00Z' }, 1],
    ['no later', 'by the pace', { unitsPerDay: 6, unitsLeft: 3, at: '2026-11-22T06:30:00Z' }, 1],
  ])('who expects alerts gets polls %s where a handful is placed %s', (_, place, units, factor) => {
    const options = benchOptions(units.unitsPerDay)
    const nowMs = Date.parse(units.at)
    const budget = { ...units, day: budgetDay(nowMs, options) }
    const saved = createSchedule(options, undefined).snapshot() as object
    const few = {
      polls: units.unitsPerDay,
      chosen: place === 'at chosen instants' ? 1 : 9,
      even: 10,
      paced: 10,
    }
    const schedule = createSchedule(options, { ...saved, few: { ...few, isChosen: false } })
    schedule.observe({ atMs: nowMs, ok: true, firedAtMs: [], pages: 1, pagesLeft: 'none' })
    const plain = schedule.next(nowMs, budget)
    schedule.setHot(nowMs + 2 * 3_600_000)
    expect(schedule.next(nowMs, budget).atMs - nowMs).toBeLessThanOrEqual((plain.atMs - nowMs) / factor)
    schedule.setHot(0)
    expect(schedule.next(nowMs, budget)).toEqual(plain)
  })
})
