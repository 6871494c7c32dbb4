import { beforeEach, describe, expect, it } from 'vitest'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import type { PollReport, Schedule } from '../../src/schedule/schedule.ts'
import { benchOptions } from '../bench/compare.ts'

const options = benchOptions(2_000)
/** Half past one at night in Tehran: nothing is expected. */
const nightMs = Date.parse('2026-11-21T22:00:00Z')
const minuteMs = 60_000

const budget = (unitsLeft: number) => ({ unitsPerDay: 2_000, unitsLeft, day: budgetDay(nightMs, options) })
const quiet = (atMs: number): PollReport => ({ atMs, ok: true, firedAtMs: [], pages: 1, pagesLeft: 'none' })

let schedule: Schedule
beforeEach(() => {
  schedule = createSchedule(options, undefined)
})

describe('a decision', () => {
  it('before anything was polled is to poll now', () => {
    expect(schedule.next(nightMs, budget(2_000))).toEqual({ atMs: nightMs, reason: 'first' })
  })

  it('without units is to wait for the reset', () => {
    schedule.observe(quiet(nightMs))
    expect(schedule.next(nightMs, budget(0))).toEqual({ atMs: budget(0).day.endMs, reason: 'budget_spent' })
  })

  it('on a new day for which an operator expects alerts does not wait for the first poll of a clock', () => {
    const { startMs } = budget(0).day
    schedule.observe(quiet(startMs - 20_000))
    schedule.setHot(startMs + 30 * minuteMs)
    expect(schedule.next(startMs, budget(2_000)).atMs).toBeLessThan(startMs + 10_000)
  })

  it('is the same however often and however late it is asked for', () => {
    schedule.observe(quiet(nightMs))
    const first = schedule.next(nightMs, budget(1_800))
    expect(schedule.next(nightMs + 5_000, budget(1_800))).toEqual(first)
  })

  it('after a failed call is to try again in 2 s, three times; then the plan goes on', () => {
    for (const failures of [1, 2, 3]) {
      const atMs = nightMs + failures * 2_000
      schedule.observe({ ...quiet(atMs), ok: false })
      expect(schedule.next(atMs, budget(1_800))).toEqual({ atMs: atMs + 2_000, reason: 'retry' })
    }
    schedule.observe({ ...quiet(nightMs + 8_000), ok: false })
    const { atMs, reason } = schedule.next(nightMs + 8_000, budget(1_800))
    expect(reason).not.toBe('retry')
    expect(atMs).toBeGreaterThan(nightMs + 12_000)
  })

  it('while more pages wait is to read on after the shortest interval, also after a restart', () => {
    schedule.observe({ ...quiet(nightMs), firedAtMs: [nightMs - 1_000], pages: 5, pagesLeft: 'ready' })
    const next = { atMs: nightMs + 2_000, reason: 'catch_up' }
    expect(schedule.next(nightMs, budget(1_800))).toEqual(next)
    expect(createSchedule(options, schedule.snapshot()).next(nightMs, budget(80))).toEqual(next)
  })

  it('just after alerts in a quiet hour is to look again soon, and less so as they grow old', () => {
    schedule.observe(quiet(nightMs))
    const calm = schedule.next(nightMs, budget(1_980)).atMs - nightMs
    const fired = [1, 2, 3, 4, 5, 6].map((second) => nightMs + minuteMs - second * 1_000)
    schedule.observe({ ...quiet(nightMs + minuteMs), firedAtMs: fired })
    const burst = schedule.next(nightMs + minuteMs, budget(1_980))
    expect(burst.reason).toBe('burst')
    expect(burst.atMs - nightMs - minuteMs).toBeLessThan(0.55 * calm)
    schedule.observe(quiet(nightMs + 90 * minuteMs))
    const later = schedule.next(nightMs + 90 * minuteMs, budget(1_900))
    expect(later.atMs - nightMs - 90 * minuteMs).toBeGreaterThan(burst.atMs - nightMs - minuteMs)
  })

  it('leaves no longer gap than the longest interval, and with units for the floor alone goes evenly', () => {
    schedule.observe(quiet(nightMs))
    const { atMs } = schedule.next(nightMs, budget(10))
    const left = budget(10).day.endMs - nightMs
    expect(atMs - nightMs).toBeGreaterThan(left / 12)
    expect(atMs - nightMs).toBeLessThanOrEqual(left / 10)
  })

  it('with two units a day goes evenly where the config names a longest interval', () => {
    const named = { ...benchOptions(2), maxIntervalMs: 60 * minuteMs }
    const two = createSchedule(named, undefined)
    const morning = Date.parse('2026-11-22T02:00:00Z')
    two.learnHistory([1, 2, 3, 4, 5].map((days) => morning - days * 86_400_000))
    const day = budgetDay(morning, named)
    two.observe(quiet(morning))
    const { atMs } = two.next(morning, { unitsPerDay: 2, unitsLeft: 1, day })
    expect(atMs).toBeLessThan(day.endMs - 60 * minuteMs)
  })
})

describe('an outage', () => {
  it('that hid hours of alerts does not read as a storm, nor as silence', () => {
    for (let at = nightMs; at < nightMs + 30 * minuteMs; at += minuteMs) {
      schedule.next(at, budget(1_500))
      schedule.observe(quiet(at))
    }
    const before = schedule.next(nightMs + 30 * minuteMs, budget(1_500))
    const backMs = nightMs + 12 * 60 * minuteMs
    const hidden = Array.from({ length: 90 }, (_, k) => nightMs + (60 + k * 5) * minuteMs)
    schedule.observe({ ...quiet(backMs), firedAtMs: hidden })
    const day = budgetDay(backMs, options)
    const after = schedule.next(backMs, { unitsPerDay: 2_000, unitsLeft: 1_000, day })
    expect(before.reason).not.toBe('burst')
    expect(after.reason).not.toBe('burst')
    expect(after.atMs - backMs).toBeLessThan(3 * minuteMs)
  })

  it('of fifty minutes, less than the hour from which nothing is learned of the time, costs the plan none of what it won', () => {
    const wonOf = () => (schedule.snapshot() as { guard: { won: number } }).guard.won
    const alerts = (count: number, atMs: number) => Array.from({ length: count }, () => atMs - 10_000)
    for (let at = nightMs; at < nightMs + 30 * minuteMs; at += minuteMs) {
      schedule.next(at, budget(1_500))
      schedule.observe({ ...quiet(at), firedAtMs: alerts(1, at) })
    }
    const before = wonOf()
    const backMs = nightMs + 80 * minuteMs
    schedule.next(backMs, budget(1_500))
    schedule.observe({ ...quiet(backMs), firedAtMs: alerts(40, nightMs + 40 * minuteMs) })
    expect(wonOf()).toBe(before)
    // A gap of the plan itself is counted.
    schedule.next(backMs, budget(1_500))
    schedule.observe({ ...quiet(backMs + 2 * minuteMs), firedAtMs: alerts(1, backMs + minuteMs) })
    expect(wonOf()).not.toBe(before)
  })
})

describe('a fixed pace', () => {
  const fixed = { ...options, everyMs: 30_000 }

  it('is kept whatever is found', () => {
    schedule = createSchedule(fixed, undefined)
    schedule.observe({ ...quiet(nightMs), firedAtMs: [nightMs - 500, nightMs - 400] })
    expect(schedule.next(nightMs, budget(1_500))).toEqual({ atMs: nightMs + 30_000, reason: 'fixed' })
    const { endMs } = budget(0).day
    schedule.observe(quiet(endMs - 10_000))
    expect(schedule.next(endMs, budget(0))).toEqual({ atMs: endMs + 20_000, reason: 'budget_spent' })
  })

  it('survives a restart, and tries failed calls again', () => {
    schedule = createSchedule(fixed, undefined)
    schedule.observe({ ...quiet(nightMs), ok: false })
    const other = createSchedule(fixed, JSON.parse(JSON.stringify(schedule.snapshot())))
    expect(other.next(nightMs, budget(1_500))).toEqual({ atMs: nightMs + 2_000, reason: 'retry' })
    expect(other.describe(nightMs).memory).toBe('restored')
  })
})
