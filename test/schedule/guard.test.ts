import { describe, expect, it } from 'vitest'
import { describePreview } from '../../src/cli/plan/picture.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { keptScale, spansOf } from '../../src/schedule/pace/decide.ts'
import type { Paces } from '../../src/schedule/pace/family.ts'
import {
  beginGuardedDay,
  emptyGuard,
  evenPollAfter,
  floorOf,
  type Guard,
  keptShare,
  noteSpent,
  noteUnits,
  noteWaits,
} from '../../src/schedule/pace/guard.ts'
import { solveScale } from '../../src/schedule/pace/solve.ts'
import { previewPlan } from '../../src/schedule/preview.ts'
import { evenLags, simulate, summarizeLags } from '../../src/schedule/simulate.ts'
import { benchOptions } from '../bench/compare.ts'
import { createRandom } from '../bench/random.ts'
import { benchStartMs, createTrace } from '../bench/traces.ts'

const hourMs = 3_600_000
const day = { key: '2026-11-22', startMs: 0, endMs: 24 * hourMs }
/** A poll an hour would be even, at half past each. */
const units = 24

/** After so many alerts that each waited so many hours for a poll at `atHour`. */
function accountOf(alerts: number, hours: number, atHour = 12.5): Guard {
  const guard = emptyGuard()
  const fired = Array.from({ length: alerts }, () => (atHour - hours) * hourMs)
  noteWaits(guard, day, units, {
    ...{ fromMs: 0, atMs: atHour * hourMs, firedAtMs: fired, readableMs: fired },
  })
  return guard
}

describe('even polls', () => {
  it('lie half a gap after the reset, and every gap from there', () => {
    expect([0, 0.5, 0.51, 23.6].map((hour) => evenPollAfter(day, hourMs, hour * hourMs) / hourMs)).toEqual([
      0.5, 0.5, 1.5, 24.5,
    ])
  })
})

describe('the account', () => {
  it('counts what alerts waited more than for even polls, in mean lags of these', () => {
    const [before, behind, level] = [emptyGuard().won, accountOf(10, 1.25).won, accountOf(10, 0.75).won]
    // Fired at a quarter past eleven: an even poll would have come a quarter of an hour later, this one came after 75 minutes.
    expect(behind - before).toBeCloseTo(10 * (0.03 - 2), 9)
    expect(level - before).toBeCloseTo(10 * 0.03, 9)
  })

  it('counts from when a row could be read, and for p99 from when it could have been at the earliest', () => {
    const guard = emptyGuard()
    const before = guard.won
    // Even polls would have found it at half past twelve, too.
    const late = { firedAtMs: [2 * hourMs] }
    noteWaits(guard, day, units, {
      ...{ ...late, fromMs: 11.5 * hourMs, atMs: 12.5 * hourMs, readableMs: [12 * hourMs] },
    })
    expect(guard.won - before).toBeCloseTo(0.03, 9)
    expect(guard.long).toBe(0)
    // In a gap of three intervals it may have waited for all of them.
    noteWaits(guard, day, units, {
      ...{ ...late, fromMs: 12.5 * hourMs, atMs: 15.5 * hourMs, readableMs: [14 * hourMs] },
    })
    expect(guard.won - before).toBeCloseTo(2 * 0.03 - 2, 9)
    expect(guard.long).toBe(1)
  })

  it('fades from day to day', () => {
    const guard = accountOf(100, 0.75)
    const won = guard.won
    beginGuardedDay(guard, { ...day, startMs: day.endMs, endMs: 2 * day.endMs })
    expect(guard.won).toBeLessThan(won)
  })
})

describe('what was won on many alerts', () => {
  /** Of so many of the second half of these days; the first week has 5,000 a day in a session. */
  function afterLivelyWeek(seed: number): number {
    const options = benchOptions(200)
    const random = createRandom(seed)
    const days = Array.from({ length: 42 }, (_, nth) => {
      const at = (hour: number) => benchStartMs + (24 * nth + hour) * hourMs
      const session = Array.from({ length: nth < 7 ? 5_000 : 20 }, () => at(9 + 3.5 * random.next()))
      const heapAt = at(8 * random.next())
      const heap = nth < 7 ? [] : Array.from({ length: 50 }, () => heapAt + 1_000 * random.next())
      return [...session, ...heap].sort((a, b) => a - b)
    })
    const times = days.flat()
    const lags = simulate(times, createSchedule(options, undefined), options).lagsMs
    const ofLast = (each: Float64Array) => summarizeLags(each.subarray(-14 * 70)).mean
    return ofLast(lags) / ofLast(evenLags(times, options))
  }

  it('is not lost for weeks on the few that come once the rules have changed', () => {
    const ratios = [1, 2, 3, 4].map(afterLivelyWeek)
    expect(ratios.reduce((sum, each) => sum + each, 0) / ratios.length).toBeLessThan(1.2)
  }, 60_000)

  it('is kept up to five mean lags for each alert of the liveliest of seven days', () => {
    const guard = { ...emptyGuard(), won: 1e6, dayStartMs: 0, ofDays: [40] }
    const after = Array.from({ length: 9 }, (_, nth) => {
      beginGuardedDay(guard, { ...day, startMs: (nth + 1) * day.endMs, endMs: (nth + 2) * day.endMs })
      const { won } = guard
      guard.won = 1e6
      return won
    })
    // Then no more than a new plan begins with.
    expect(after).toEqual([...Array(7).fill(200), 10, 10])
  })
})

describe('units that go elsewhere', () => {
  /** Alerts of these hours of each day; how long those of the days after the first five waited in the mean. */
  function waited(unitsElsewhere: number, fromHour: number, untilHour: number): number {
    const options = benchOptions(500)
    const schedule = createSchedule(options, undefined)
    const random = createRandom(5)
    const times = Array.from({ length: 10 }, (_, index) =>
      Array.from(
        { length: 100 },
        () => benchStartMs + (24 * index + fromHour + (untilHour - fromHour) * random.next()) * hourMs,
      ),
    ).flatMap((each) => each.toSorted((a, b) => a - b))
    let [date, spent] = ['', 0]
    const { lagsMs } = simulate(
      times,
      {
        ...schedule,
        next: (nowMs, budget) => {
          if (budget.day.key !== date) [date, spent] = [budget.day.key, 0]
          return schedule.next(nowMs, { ...budget, unitsLeft: budget.unitsLeft - spent })
        },
        observe: (poll) => {
          schedule.observe(poll)
          if (poll.firedAtMs.length > 0) spent = Math.min(unitsElsewhere, spent + 1)
        },
      },
      options,
    )
    return summarizeLags(lagsMs.subarray(500)).mean
  }

  it('are missing to even polls, too: a plan that never had them is not kept at the even pace for losing to them', () => {
    expect(waited(25, 18, 23.9)).toBeLessThan(1.2 * waited(0, 18, 23.9))
  }, 60_000)

  it('are missing to the rest of the day as well, and not to the hours of the alerts alone', () => {
    expect(waited(25, 0, 3)).toBeLessThan(1.1 * waited(0, 0, 3))
  }, 60_000)

  it('are missing to even polls up to the reset, also where these have next to none left, and alerts wait for the next day', () => {
    expect(waited(30, 21, 23.9)).toBeLessThan(2 * waited(0, 21, 23.9))
  }, 60_000)

  it('leave even polls at no known instants: a gap that is a tenth longer costs a tenth, whenever its alerts fired', () => {
    const lost = (gapHours: number, firedHours: number, changes: Partial<Guard> = { evenShare: 0.8 }) => {
      const guard = { ...emptyGuard(), dayStartMs: day.startMs, ...changes }
      const before = guard.won
      const fired = [(12 + firedHours) * hourMs]
      noteWaits(guard, day, units, {
        ...{ fromMs: 12 * hourMs, atMs: (12 + gapHours) * hourMs, firedAtMs: fired, readableMs: fired },
      })
      return before + 0.03 - guard.won
    }
    // Even polls come every 75 minutes.
    for (const firedHours of [0.1, 0.7, 1.1]) {
      expect(lost(1.1 * 1.25, firedHours)).toBeCloseTo(0.1, 9)
      expect(lost(0.9 * 1.25, firedHours)).toBeCloseTo(-0.1, 9)
    }
    // Other gaps are no even ones.
    expect(lost(1.3 * 1.25, 0.1)).not.toBeCloseTo(0.3, 1)
    // The plan's own pages of rules leave ten units to it, and eleven polls to a clock: it loses nothing at the clock's pace. With eleven it could
    // keep to the clock, and where the day began with something won, or something is won again, it need not be even.
    const inDebt = { beganInDebt: true, won: -1 }
    expect(lost(1.1, 0.7, { ...inDebt, unitsLeft: 10 })).toBeCloseTo(0, 9)
    expect(lost(0.9, 0.7, { ...inDebt, unitsLeft: 10 })).toBeCloseTo(-0.1, 9)
    const others = [{ unitsLeft: 11 }, { unitsLeft: 10, beganInDebt: false }, { unitsLeft: 10, won: 0.1 }]
    for (const changes of others) expect(lost(1.1, 0.7, { ...inDebt, ...changes })).toBeCloseTo(-0.8, 9)
  })

  it('are none where sources of one account have spent as much each, one in the morning and one in the evening', () => {
    const guard = emptyGuard()
    const leftAt = (hour: number, unitsLeft: number) =>
      noteUnits(guard, { day, unitsPerDay: 200, unitsLeft }, hour * hourMs)
    leftAt(0, 200)
    // Of what one spends, half is missing to the part of each.
    noteSpent(guard, 100)
    leftAt(12, 150)
    leftAt(12, 100)
    expect([guard.slower, guard.evenShare]).toEqual([0, 1])
    leftAt(12, 50)
    expect([guard.slower, guard.evenShare]).toEqual([0.5, 0.5])
  })

  it('may have been fewer than the part of the account that this source has spent, which a restart keeps', () => {
    const options = benchOptions(200)
    const schedule = createSchedule(options, undefined)
    const ofAccount = budgetDay(benchStartMs, options)
    const poll = (atMs: number, unitsLeft: number) => {
      schedule.observe({ atMs, ok: true, firedAtMs: [], pages: 10, pagesLeft: 'none' })
      schedule.next(atMs, { unitsPerDay: 200, unitsLeft, day: ofAccount })
    }
    poll(ofAccount.startMs, 195)
    poll(ofAccount.startMs + hourMs, 190)
    const saved = JSON.parse(JSON.stringify(schedule.snapshot())) as { guard: Guard }
    expect(saved.guard.slower).toBeLessThan(0)
    const restored = createSchedule(options, saved)
    expect([restored.describe(ofAccount.startMs).memory, restored.snapshot()]).toEqual(['restored', saved])
  })
})

describe('the slowest pace', () => {
  it('is even where nothing was won, and the configured one where much was', () => {
    expect(floorOf({ ...emptyGuard(), won: -1 }, 0.2)).toBe(1)
    expect(floorOf({ ...emptyGuard(), won: 5_000, seen: 10_000, heap: 5 }, 0.2)).toBe(0.2)
  })

  it('is one at which the largest heap of late costs no more than was won', () => {
    const guard = { ...emptyGuard(), won: 50, seen: 100_000, heap: 100 }
    expect(guard.heap * (1 / floorOf(guard, 0.2) - 1)).toBeCloseTo(guard.won, 9)
  })

  it('leaves no gap above two even intervals while too many alerts waited that long', () => {
    expect(floorOf({ ...emptyGuard(), won: 5_000, seen: 1_000, long: 6 }, 0.2)).toBe(0.5)
  })
})

it('units for nearly all even polls of the rest are kept until something was won, and never fewer than for half', () => {
  expect(keptShare(emptyGuard())).toBeGreaterThan(0.9)
  expect(keptShare({ ...emptyGuard(), won: 1e9 })).toBeGreaterThan(0.5)
})

it('units are kept at the end of every span of a day', () => {
  // Two hours that ask for nearly all polls of the day.
  const seconds = [3_600, 3_600, 79_200]
  const demands = [20, 20, 1]
  const budget = { unitsPerDay: 240, unitsLeft: 240, day: { ...day, key: '' } }
  const moment = { guard: emptyGuard(), budget, paces: { outlook: { fromMs: 0 } } as Paces }
  const limits = { floor: 0, ceiling: 1 }
  const scale = keptScale(moment, spansOf(seconds, demands, limits), 240)
  const left = (by: number) => 240 - 2 * by * 3_600 * 20
  const kept = keptShare(emptyGuard()) * 240 * (22 / 24)
  expect(left(scale)).toBeGreaterThanOrEqual(kept - 1)
  expect(left(scale)).toBeLessThan(kept + 1)
  expect(left(solveScale(seconds, demands, 240, limits))).toBeLessThan(0.8 * kept)
})

it('a day keeps as many units for what nobody expects as the drawn plan says', () => {
  const options = benchOptions(500)
  const schedule = createSchedule(options, undefined)
  const { times, startMs } = createTrace('market', 7, 22)
  const { polls } = simulate(times, schedule, options)
  const text = describePreview('main', options, previewPlan(options, schedule.snapshot(), startMs, 24))
  const [, named] = /at least about (\d+) % of what evenly spaced polls of the rest/.exec(text) ?? []
  const { startMs: fromMs, endMs } = budgetDay(startMs + 20.5 * 24 * hourMs, options)
  const ofDay = polls.filter((at) => at >= fromMs && at < endMs)
  const kept = ofDay
    .filter((at) => at < endMs - 2 * hourMs)
    .map(
      (at, index) =>
        (options.unitsPerDay - index - 1) / ((options.unitsPerDay * (endMs - at)) / (24 * hourMs)),
    )
  expect(Math.min(...kept)).toBeCloseTo(Number(named) / 100, 1)
})

it('the drawn hours are those that a usual day then has, the quiet ones too', () => {
  const options = benchOptions(500)
  const schedule = createSchedule(options, undefined)
  const { times, startMs } = createTrace('market', 7, 23)
  const { startMs: fromMs } = budgetDay(startMs + 22.5 * 24 * hourMs, options)
  simulate(
    times.filter((at) => at < fromMs),
    schedule,
    options,
  )
  const { hours } = previewPlan(options, schedule.snapshot(), fromMs, 24)
  const { polls } = simulate(
    times.filter((at) => at >= fromMs),
    schedule,
    options,
  )
  const made = hours.map(
    (hour) => polls.filter((at) => Math.floor((at - hour.startMs) / hourMs) === 0).length,
  )
  const differing = hours.reduce((sum, hour, at) => sum + Math.abs(hour.polls - (made[at] ?? 0)), 0)
  expect(polls).toHaveLength(500)
  expect(differing / 2 / 500).toBeLessThan(0.04)
  const ofNight = (counts: readonly number[]) => counts.slice(0, 6).reduce((sum, each) => sum + each, 0)
  expect(ofNight(hours.map((hour) => hour.polls)) / ofNight(made)).toBeCloseTo(1, 1)
})
