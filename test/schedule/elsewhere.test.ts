import { expect, it } from 'vitest'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { spendable } from '../../src/schedule/pace/decide.ts'
import { beginDay, emptyFamily, type Paces } from '../../src/schedule/pace/family.ts'
import { emptyGuard, type Guard, noteSpent, noteUnits, noteWaits } from '../../src/schedule/pace/guard.ts'
import { previewPlan } from '../../src/schedule/preview.ts'
import { simulate } from '../../src/schedule/simulate.ts'
import { benchOptions } from '../bench/compare.ts'
import { benchStartMs, createTrace } from '../bench/traces.ts'

/** What counts as units that went elsewhere, and for how long that counts. */

const hourMs = 3_600_000
const day = { key: '2026-11-22', startMs: 0, endMs: 24 * hourMs }
const options = benchOptions(500)

it('pages of rules are the own units of a plan', () => {
  const schedule = createSchedule(options, undefined)
  const ofBudget = budgetDay(benchStartMs, options)
  const plan = (hour: number, unitsLeft: number) =>
    schedule.next(ofBudget.startMs + hour * hourMs, { unitsPerDay: 500, unitsLeft, day: ofBudget })
  schedule.observe({ atMs: ofBudget.startMs, ok: true, firedAtMs: [], pages: 1, pagesLeft: 'none' })
  plan(0, 499)
  schedule.learnRules({ atMs: ofBudget.startMs, pages: 5, rules: [] })
  plan(1, 494)
  expect((schedule.snapshot() as { guard: Guard }).guard).toMatchObject({ slower: 0, evenShare: 1 })
})

it('a budget that turns out to be another is no unit that went elsewhere', () => {
  const guard = emptyGuard()
  noteUnits(guard, { day, unitsPerDay: 200, unitsLeft: 200 }, 0)
  noteSpent(guard, 10)
  noteUnits(guard, { day, unitsPerDay: 100, unitsLeft: 90 }, 2.4 * hourMs)
  expect(guard).toMatchObject({ slower: 0, evenShare: 1 })
})

it('what went elsewhere on one day does not slow the even polls that begin the next one', () => {
  const guard = emptyGuard()
  noteUnits(guard, { day, unitsPerDay: 24, unitsLeft: 24 }, 0)
  noteUnits(guard, { day, unitsPerDay: 24, unitsLeft: 1 }, 22 * hourMs)
  expect(guard.evenShare).toBeCloseTo(0.5, 9)
  const next = { key: '2026-11-23', startMs: day.endMs, endMs: 2 * day.endMs }
  const before = guard.won
  // The first even poll of a day comes half an hour after its reset: one then finds an alert of the evening as early as even polls do.
  const firedAtMs = [23.5 * hourMs]
  noteWaits(guard, next, 24, {
    ...{ fromMs: 22.5 * hourMs, atMs: 24.5 * hourMs, firedAtMs, readableMs: firedAtMs },
  })
  expect(guard.won - 0.97 * before).toBeCloseTo(0.03, 9)
})

it('the drawn plan is that of a day of which nothing went elsewhere', () => {
  const schedule = createSchedule(options, undefined)
  const { times, startMs } = createTrace('market', 7, 10)
  simulate(times, schedule, options)
  const saved = schedule.snapshot() as { guard: Guard }
  const drawn = (slower: number) =>
    previewPlan(options, { ...saved, guard: { ...saved.guard, slower } }, startMs + 10 * 24 * hourMs, 24)
      .hours
  expect(drawn(0.6)).toEqual(drawn(0))
})

it('each policy has what is left to spend, anew where the budget turns out to be another', () => {
  const family = emptyFamily()
  beginDay(family, { day, unitsPerDay: 200, unitsLeft: 200 }, 0)
  beginDay(family, { day, unitsPerDay: 200, unitsLeft: 90 }, 12 * hourMs)
  expect(family.unitsLeft).toEqual([200, 200, 200, 200])
  beginDay(family, { day, unitsPerDay: 100, unitsLeft: 40 }, 12 * hourMs)
  expect(family.unitsLeft).toEqual([40, 40, 40, 40])
  expect(family.evenPace * 12 * 3_600).toBeCloseTo(40, 9)
})

it('units for the further pages of a usual day are kept, fewer the less of the day is ahead', () => {
  const kept = (hour: number, unitsLeft = 100) => {
    const paces = { outlook: { fromMs: hour * hourMs } } as Paces
    const budget = { unitsPerDay: 200, unitsLeft, day }
    return unitsLeft + 0.5 - spendable({ budget, paces, extraPagesPerDay: 24, lastAtMs: hour * hourMs })
  }
  expect([0, 12, 23].map((hour) => kept(hour))).toEqual([24, 12, 1])
  // Never more than half of what is left.
  expect(kept(0, 10)).toBe(5)
})

it('a poll after one that could not read all pages says nothing of the plan, also where these go on failing', () => {
  const schedule = createSchedule(options, undefined)
  const ofBudget = budgetDay(benchStartMs, options)
  const at = (minutes: number) => ofBudget.startMs + 9 * hourMs + minutes * 60_000
  const pollAt = (minutes: number, firedAtMs: number[], pagesLeft: 'none' | 'failed') => {
    schedule.next(at(minutes), { unitsPerDay: 500, unitsLeft: 300, day: ofBudget })
    schedule.observe({ atMs: at(minutes), ok: true, firedAtMs, pages: 1, pagesLeft })
    return (schedule.snapshot() as { guard: Guard }).guard.won
  }
  const won = pollAt(0, [], 'failed')
  for (const minutes of [1, 2, 3, 4, 5]) expect(pollAt(minutes, [at(minutes - 0.8)], 'failed')).toBe(won)
  expect(pollAt(6, [at(5.2)], 'none')).toBe(won)
  expect(pollAt(7, [at(6.2)], 'none')).not.toBe(won)
})
