import { beforeAll, describe, expect, it, vi } from 'vitest'
import { announcedText, describePreview } from '../../src/cli/plan/picture.ts'
import { evaluationsBetween, type RuleTimes, readRules } from '../../src/schedule/announced/evidence.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { previewPlan } from '../../src/schedule/preview.ts'
import type { Schedule } from '../../src/schedule/schedule.ts'
import { datedOtherwise, simulateAnnounced } from '../bench/announced.ts'
import { benchOptions } from '../bench/compare.ts'
import { computing } from '../support/computing.ts'

vi.setConfig(computing)

const long = process.env['LONG'] === '1'
const minuteMs = 60_000
const dayMs = 86_400_000
const noonMs = Date.parse('2026-11-21T12:00:00Z')

interface Learned {
  readonly explained: number
  readonly other: number
  readonly lateShare: number
}

function learnedBy(schedule: Schedule): Learned {
  return (schedule.snapshot() as { announced: Learned }).announced
}

describe('announced evaluations', () => {
  let schedule: Schedule
  beforeAll(() => {
    schedule = simulateAnnounced({ how: 'true', seed: 11, days: 1, unitsPerDay: 1_000 }).schedule
  })

  it('that are true are followed from the second day on: a mean of 0.15 of even polls, p99 of 0.3', () => {
    const { mean, p99, followed, unitsPerDayMax, gapMsMax } = simulateAnnounced({
      ...{ how: 'true', seed: 303, days: long ? 14 : 2, unitsPerDay: 2_000 },
    })
    expect(followed[0]).toBe(true)
    expect(mean).toBeLessThanOrEqual(0.15)
    expect(p99).toBeLessThanOrEqual(0.3)
    expect(unitsPerDayMax).toBeLessThanOrEqual(2_000)
    // Nobody waits for longer than five even intervals.
    expect(gapMsMax).toBeLessThanOrEqual((5 * dayMs) / 2_000 + 1_000)
  })

  it.each(Object.entries(datedOtherwise))(
    'that are true are followed where rows are %s: a mean of 0.2 of even polls',
    (_, datedMs) => {
      const { mean, p99, followed } = simulateAnnounced({
        ...{ how: 'true', seed: 303, days: 3, unitsPerDay: 2_000, datedMs },
      })
      expect(followed.at(-1)).toBe(true)
      expect(mean).toBeLessThanOrEqual(0.2)
      expect(p99).toBeLessThanOrEqual(0.5)
    },
  )

  it.each(Object.entries(datedOtherwise))(
    'that are wrong are not followed where rows are %s, and do no harm',
    (_, datedMs) => {
      const history = { seed: 303, days: long ? 8 : 3, unitsPerDay: 2_000, datedMs }
      const { mean, followed, schedule } = simulateAnnounced({ ...history, how: 'wrong' })
      expect(followed.at(-1)).toBe(false)
      const { explained, other } = learnedBy(schedule)
      expect(explained / (explained + other)).toBeLessThan(0.1)
      // The means of one seed scatter by a few hundredths.
      expect(mean).toBeLessThanOrEqual(1.05)
    },
  )

  it('learn nothing of rows that may have come at any time of an outage; what is known of late rows survives a restart', () => {
    const datedMs = (at: number) => at - 90_000
    const late = simulateAnnounced({ how: 'true', seed: 15, days: 1, unitsPerDay: 1_000, datedMs }).schedule
    const saved = late.snapshot() as { recent: { atMs: number } }
    const before = learnedBy(late)
    expect(before.lateShare).toBeGreaterThan(0.1)
    const restored = createSchedule(benchOptions(1_000), JSON.parse(JSON.stringify(saved)))
    expect(learnedBy(restored)).toEqual(before)
    const restMs = saved.recent.atMs
    const budget = { unitsPerDay: 1_000, unitsLeft: 500, day: budgetDay(restMs, benchOptions(1_000)) }
    restored.next(restMs, budget)
    const outageMs = 2 * 3_600_000
    restored.observe({
      ...{ atMs: restMs + outageMs, ok: true, pages: 1, pagesLeft: 'none' },
      firedAtMs: Array.from({ length: 40 }, () => restMs - minuteMs),
      ruleIds: Array.from({ length: 40 }, (_, index) => [String(index + 10)]),
    })
    expect(learnedBy(restored)).toMatchObject({ explained: before.explained, other: before.other })
  })

  it.each(['wrong', 'noisy', 'null'] as const)(
    'that are %s are read seldom and not followed',
    (how) => {
      const { readings, followed } = simulateAnnounced({ how, seed: 12, days: 2, unitsPerDay: 400 })
      expect(followed).not.toContain(true)
      expect(readings).toBeLessThanOrEqual(4)
      // The means of one seed scatter by more than a page of rules costs: the long form compares those of twelve.
      const seeds = long ? Array.from({ length: 12 }, (_, index) => 300 + index) : []
      const excess = seeds.map((seed) => {
        const history = { seed, days: 8, unitsPerDay: 2_000 }
        return (
          simulateAnnounced({ ...history, how }).mean - simulateAnnounced({ ...history, how: 'unread' }).mean
        )
      })
      expect(excess.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(0.01 * seeds.length)
    },
    600_000,
  )

  it('of a few alerts are not followed where polls near marks of half a minute do better for all', () => {
    const history = { seed: 303, days: 3, unitsPerDay: 2_000, others: { perDay: 4_000, markSeconds: 30 } }
    const { mean, followed } = simulateAnnounced({ ...history, how: 'true' })
    expect(followed.at(-1)).toBe(false)
    expect(mean).toBeLessThanOrEqual(simulateAnnounced({ ...history, how: 'unread' }).mean + 0.01)
  })

  it('of every minute, which say nothing of when alerts come, leave polls where they are: no hour is paid for twice', () => {
    const { mean, p99, days } = simulateAnnounced({
      ...{
        how: 'true',
        seed: 301,
        days: long ? 12 : 6,
        unitsPerDay: 2_000,
        atAnyTime: { perDay: 690, everySeconds: 60 },
      },
    })
    expect(mean).toBeLessThanOrEqual(1.02)
    // While polls follow such announcements, one alert in a hundred waits 1.3 times as long as for a clock.
    expect(p99).toBeLessThanOrEqual(1.05)
    expect(days.slice(2).map((each) => each.toFixed(2))).toEqual(days.slice(2).map(() => '1.00'))
  })

  it('of more instants than there are units get polls for all of the day, not for its first half', () => {
    const history = { seed: 1, days: 2, everyMinute: { perDay: 720, others: 400 } }
    const [unread, read] = (['unread', 'true'] as const).map(
      (how) => simulateAnnounced({ ...history, how, unitsPerDay: 800 }).mean,
    )
    expect(read).toBeLessThanOrEqual((unread ?? 0) + 0.02)
    // All 288 rules of five minutes cost as much as 288 polls, beside which there are those of other rules.
    expect(simulateAnnounced({ how: 'true', seed: 1, days: 2, unitsPerDay: 300 }).mean).toBeLessThan(0.34)
  })

  it('that no alert follows are never followed: what the plan has spent would be missing to polls that follow them', () => {
    const everyMinute = { perDay: 0, others: 690 }
    const atAnyTime = { perDay: 690, everySeconds: 300 }
    const seen = [
      { seed: 1, unitsPerDay: 1_000, everyMinute },
      { seed: 2, unitsPerDay: 1_000, everyMinute },
      { seed: 3, unitsPerDay: 600, atAnyTime },
      { seed: 3, unitsPerDay: 400, atAnyTime },
    ].map((history) => simulateAnnounced({ ...history, how: 'true', days: 2 }))
    expect(seen.flatMap(({ followed }) => followed)).not.toContain(true)
  })

  it('that move are found again within the day', () => {
    const { days } = simulateAnnounced({ how: 'true', seed: 13, days: 3, unitsPerDay: 1_000, movesOnDay: 1 })
    expect(days[1]).toBeLessThan(0.25)
    expect(days[2]).toBeLessThan(0.15)
  })

  it.each([1, 2])(
    'are not followed where half of the alerts come just beyond the minute that is looked at (seed %d)',
    (seed) => {
      const history = { seed, days: 4, unitsPerDay: 2_000, delaySeconds: [58, 62] } as const
      const { mean, followed } = simulateAnnounced({ ...history, how: 'true' })
      expect(followed).not.toContain(true)
      expect(mean).toBeLessThanOrEqual(simulateAnnounced({ ...history, how: 'unread' }).mean + 0.02)
    },
  )

  it.each([1, 2])('are followed where a third of the alerts come much later (seed %d)', (seed) => {
    const delaySeconds = (part: number) => 1 - 60 * Math.log(1 - part)
    const { mean, followed } = simulateAnnounced({
      ...{ how: 'true', seed, days: 5, unitsPerDay: 600, delaySeconds },
    })
    expect(followed[1]).toBe(true)
    expect(followed.slice(1).filter((isFollowed) => !isFollowed).length).toBeLessThanOrEqual(1)
    expect(mean).toBeLessThanOrEqual(0.85)
  })

  it('that were true and become wrong are dropped', () => {
    const { followed } = simulateAnnounced({
      how: 'true',
      seed: 14,
      days: 3,
      unitsPerDay: 500,
      wrongFromDay: 2,
    })
    expect([followed[1], followed.at(-1)]).toEqual([true, false])
  })

  it('that are followed give an operator who expects alerts no later poll', () => {
    const saved = schedule.snapshot() as { recent: { atMs: number } }
    const nowMs = saved.recent.atMs
    const day = budgetDay(nowMs, benchOptions(1_000))
    const later = [20, 40, 80, 160, 320].filter((unitsLeft) => {
      const [plain, hot] = [0, nowMs + 3_600_000].map((untilMs) => {
        const restored = createSchedule(benchOptions(1_000), JSON.parse(JSON.stringify(saved)))
        restored.setHot(untilMs)
        return restored.next(nowMs, { unitsPerDay: 1_000, unitsLeft, day }).atMs
      })
      return (hot ?? 0) > (plain ?? 0)
    })
    expect(later).toEqual([])
  })

  it('are in the preview, which spends the units of a day, with the rules that polls follow', () => {
    const preview = previewPlan(benchOptions(1_000), schedule.snapshot(), noonMs, 24)
    const polls = preview.hours.reduce((sum, hour) => sum + hour.polls, 0)
    expect(Math.abs(polls - 1_000)).toBeLessThan(25)
    expect(preview.lagSeconds / preview.evenLagSeconds).toBeLessThan(0.3)
    const text = describePreview('main', benchOptions(1_000), preview)
    expect(text).toMatch(
      /Polls follow the evaluations that the API announces of 40 rules \(\d+ rule \d+,.* and 35 more\)\./,
    )
    expect(text).not.toContain('No pattern was found')
    // Of an hour in which the day begins, half an hour is drawn.
    const halfPast = { ...benchOptions(1_000), resetsAt: '00:30' }
    const { startMs } = budgetDay(noonMs + dayMs, halfPast)
    const [first, second] = previewPlan(halfPast, schedule.snapshot(), startMs, 25).hours
    expect((first?.polls ?? 0) / (second?.polls ?? 0)).toBeCloseTo(0.5, 1)
  })

  it('are followed on the day after one whose units were spent hours before its end, and with whatever is granted', () => {
    const saved = schedule.snapshot() as { recent: { atMs: number } }
    const options = benchOptions(1_000)
    const nowMs = saved.recent.atMs
    const day = budgetDay(nowMs, options)
    const lateMs = day.endMs + 4 * 3_600_000
    const late = budgetDay(lateMs, options)
    for (const unitsPerDay of [1_000, 200, 10]) {
      const restored = createSchedule(options, JSON.parse(JSON.stringify(saved)))
      const first = restored.next(nowMs, { unitsPerDay, unitsLeft: 0, day })
      expect(first.reason).toBe('budget_spent')
      expect(first.atMs).toBeGreaterThanOrEqual(day.endMs)
      expect(first.atMs).toBeLessThan(day.endMs + dayMs)
      // After hours without a process, too.
      const next = restored.next(lateMs, { unitsPerDay, unitsLeft: unitsPerDay, day: late })
      expect(next.atMs).toBeLessThan(late.endMs)
    }
  })

  it('are kept when the API shows an empty list of rules once, and given up when it does again', () => {
    const saved = schedule.snapshot() as { recent: { atMs: number } }
    const restored = createSchedule(benchOptions(1_000), JSON.parse(JSON.stringify(saved)))
    const shown = [1, 2].map((reading) => {
      const atMs = saved.recent.atMs + reading * dayMs
      restored.learnRules({ atMs, pages: 1, rules: [] })
      return restored.describe(atMs).announced?.ruleCount
    })
    expect(shown).toEqual([40, undefined])
  })

  it('are followed after a restart as before it; what a version without them stored is read', () => {
    const saved = schedule.snapshot() as { recent: { atMs: number } }
    const options = benchOptions(1_000)
    const nowMs = saved.recent.atMs
    const budget = { unitsPerDay: 1_000, unitsLeft: 500, day: budgetDay(nowMs, options) }
    const restored = createSchedule(options, JSON.parse(JSON.stringify(saved)))
    expect(restored.next(nowMs, budget)).toEqual(schedule.next(nowMs, budget))
    expect(restored.describe(nowMs).announced).toMatchObject({ follows: true, ruleCount: 40 })
    expect(restored.describe(nowMs).announced).toEqual(schedule.describe(nowMs).announced)
    const { announced: _, ...before } = saved as Record<string, unknown>
    expect(createSchedule(options, before).describe(nowMs)).toMatchObject({
      ...{ memory: 'restored', announced: null },
    })
  })

  it('are planned anew where the clock is set back to an hour that was over', () => {
    const options = benchOptions(1_000)
    const day = budgetDay(learnedAtMs(schedule) + dayMs / 2, options)
    const budget = { unitsPerDay: 1_000, unitsLeft: 60, day }
    const poll = { ok: true, firedAtMs: [], pages: 1, pagesLeft: 'none' } as const
    const setBack = createSchedule(options, schedule.snapshot())
    const lastHourMs = day.endMs - 60 * minuteMs
    for (const atMs of [lastHourMs + 5 * minuteMs, lastHourMs - 25 * minuteMs]) {
      setBack.observe({ ...poll, atMs })
      const restarted = createSchedule(options, setBack.snapshot())
      expect(setBack.next(atMs, budget)).toEqual(restarted.next(atMs, budget))
      expect(learnedAtMs(setBack)).toBe(atMs)
    }
  })
})

function learnedAtMs(schedule: Schedule): number {
  return (schedule.snapshot() as { recent: { atMs: number } }).recent.atMs
}

describe('a reading of the rules', () => {
  const rule = (nextMs: number | null, lastMs: number | null) => ({ id: '7', name: null, nextMs, lastMs })
  const read = (known: readonly RuleTimes[], nextMs: number | null, lastMs: number | null) =>
    readRules(known, [rule(nextMs, lastMs)], 0.1)
  const between = (times: RuleTimes | undefined, fromMs: number, toMs: number) => {
    if (!times) return []
    const { startMs, stepMs, count } = evaluationsBetween(times, fromMs, toMs)
    return Array.from({ length: count }, (_, each) => (startMs + each * stepMs - noonMs) / minuteMs)
  }

  it('is taken to go on as it begins', () => {
    const [times] = read([], noonMs + 5 * minuteMs, noonMs).rules
    expect(between(times, noonMs - dayMs, noonMs + 20 * minuteMs)).toEqual([0, 5, 10, 15, 20])
  })

  it('takes in the newest 500 that announce an evaluation, however many newer ones announce none', () => {
    const reading = Array.from({ length: 1_200 }, (_, at) => ({
      ...{ id: String(at), name: null, lastMs: null },
      nextMs: at < 600 ? null : noonMs,
    }))
    const ids = readRules([], reading, 0.1).rules.map(({ id }) => id)
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([500, '600', '1099'])
  })

  it.each([
    [499, 'of 499 rules;'],
    [500, 'of the newest 500 rules;'],
  ])('of %d is described as such: as many as are taken in may not be all', (ruleCount, words) => {
    expect(announcedText({ follows: false, ruleCount, rules: [] })).toContain(words)
  })

  it('counts rules that were evaluated when the reading before had announced it', () => {
    const first = read([], noonMs + 5 * minuteMs, noonMs)
    expect(first.confirmed).toBe(0)
    expect(read(first.rules, noonMs + 65 * minuteMs, noonMs + 60 * minuteMs).confirmed).toBe(1)
    const second = read(first.rules, noonMs + 66 * minuteMs, noonMs + 60 * minuteMs)
    expect(second.confirmed).toBe(0)
    expect(between(second.rules[0], noonMs + 40 * minuteMs, noonMs + 72 * minuteMs)).toEqual([60, 66, 72])
  })

  it('may show a pause, such as a night: nothing is expected until its end', () => {
    const first = read([], noonMs + 5 * minuteMs, noonMs)
    const second = read(first.rules, noonMs + 600 * minuteMs, noonMs + 60 * minuteMs)
    expect(second.confirmed).toBe(1)
    const [times] = second.rules
    expect(between(times, noonMs, noonMs + 610 * minuteMs)).toEqual([600, 605, 610])
    expect(between(times, noonMs - dayMs, noonMs + 300 * minuteMs)).toEqual([])
  })

  it('shows a single evaluation where the last one is not known, and nothing of a rule without a next one', () => {
    expect(between(read([], noonMs, null).rules[0], noonMs - dayMs, noonMs + dayMs)).toEqual([0])
    expect(read([], null, noonMs).rules).toEqual([])
  })
})
