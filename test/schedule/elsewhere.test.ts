import { expect, it } from 'vitest'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
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
