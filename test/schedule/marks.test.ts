import { describe, expect, it, vi } from 'vitest'
import { describePreview } from '../../src/cli/plan/picture.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { planMarks } from '../../src/schedule/marks/pattern.ts'
import {
  countFiring,
  emptyPhase,
  findMarkPeriod,
  judgeMarks,
  type Phase,
  whyMarksAreLeft,
} from '../../src/schedule/marks/phase.ts'
import { limitsFor, respond } from '../../src/schedule/pace/solve.ts'
import { previewPlan } from '../../src/schedule/preview.ts'
import type { Schedule } from '../../src/schedule/schedule.ts'
import { evenLags, simulate, summarizeLags } from '../../src/schedule/simulate.ts'
import { benchOptions } from '../bench/compare.ts'
import { createRandom } from '../bench/random.ts'
import { benchStartMs, createTrace } from '../bench/traces.ts'
import { computing } from '../support/computing.ts'

vi.setConfig(computing)

const dayMs = 86_400_000
const options = benchOptions(2_000)

/** Firings of a day, `perDay` at random, moved by `place` to where the engine fires. */
function firings(
  days: number,
  perDay: number,
  place: (at: number, random: () => number) => number,
): number[] {
  const random = createRandom(7)
  const times: number[] = []
  for (let day = 0; day < days; day++)
    for (let k = 0; k < perDay; k++)
      times.push(Math.floor(place(benchStartMs + (day + random.next()) * dayMs, random.next)))
  return times.sort((a, b) => a - b)
}

const onMinute = (at: number, random: () => number) => Math.floor(at / 60_000) * 60_000 + 3_000 * random()
const anywhere = (at: number) => at

function phaseOf(times: readonly number[]): Phase {
  const phase = emptyPhase()
  for (const at of times) countFiring(phase, at, at)
  return phase
}

/** Units of the days but the last. */
function unitsADay(polls: readonly number[]): number[] {
  const days = new Map<number, number>()
  for (const at of polls) {
    const day = Math.floor((at - benchStartMs) / dayMs)
    days.set(day, (days.get(day) ?? 0) + 1)
  }
  return [...days.values()].slice(0, -1)
}

describe('firings', () => {
  it('at any second are no pattern, however many there are', () => {
    expect(planMarks(phaseOf(firings(20, 2_000, anywhere)), limitsFor(options, 2_000), false)).toBeUndefined()
  })

  it('in the first seconds of the minute are one after a few dozen, and one poll is best just after them', () => {
    const plan = planMarks(phaseOf(firings(1, 80, onMinute)), limitsFor(options, 2_000), false)
    const best = ((plan?.startMs ?? 0) + (plan?.offsetsMs[0]?.[0] ?? 0)) % 60_000
    expect(best).toBeGreaterThanOrEqual(2_500)
    expect(best).toBeLessThanOrEqual(3_250)
    expect(plan?.waitSeconds).toBeLessThan(4)
  })

  it('that stop to fall on the minute end the pattern within a few alerts', () => {
    const phase = phaseOf(firings(2, 200, onMinute))
    for (const at of firings(1, 30, anywhere)) countFiring(phase, at + 2 * dayMs, at + 2 * dayMs)
    expect(planMarks(phase, limitsFor(options, 2_000), true)).toBeUndefined()
  })

  it('of each five minutes leave the other minutes without polls of their own', () => {
    const times = firings(3, 100, (at, random) => Math.floor(at / 300_000) * 300_000 + 2_000 * random())
    const plan = planMarks(phaseOf(times), limitsFor(options, 2_000), false)
    expect(Math.max(...(plan?.minuteWeights ?? []))).toBeGreaterThan(4.5)
    expect(plan?.minuteWeights.filter((weight) => weight < 0.1)).toHaveLength(4)
  })

  it('of one and the same second count once: a batch proves nothing', () => {
    const at = benchStartMs + 60_000
    const phase = emptyPhase()
    for (let k = 0; k < 500; k++) countFiring(phase, at, at)
    expect(phase.total).toBe(1)
    expect(planMarks(phase, limitsFor(options, 2_000), false)).toBeUndefined()
  })
})

describe('the response to a wish', () => {
  it('never falls as the wish grows, and spends what little is wished for', () => {
    const plan = planMarks(phaseOf(firings(2, 200, onMinute)), limitsFor(options, 2_000), false)
    if (!plan) throw new Error('no pattern')
    let before = 0
    for (let octave = -12; octave < 6; octave += 0.25) {
      const polls = respond(plan.responseTo(0), 2 ** octave)
      expect(polls).toBeGreaterThanOrEqual(before)
      before = polls
    }
    expect(respond(plan.responseTo(0), 1 / 60)).toBeCloseTo(1 / 60, 2)
  })
})

describe('marks that are closer together than polls', () => {
  const everyFive = (at: number, random: () => number) => Math.floor(at / 5_000) * 5_000 + 300 * random()

  it('are found, and one poll is best just after any of them', () => {
    const markPeriod = findMarkPeriod(phaseOf(firings(3, 200, everyFive)), false)
    expect(markPeriod).toMatchObject({ periodMs: 5_000, offsetMs: 500 })
  })

  it('are neither those of the minute nor firings at any second', () => {
    expect(findMarkPeriod(phaseOf(firings(3, 200, onMinute)), false)).toBeUndefined()
    expect(findMarkPeriod(phaseOf(firings(20, 200, anywhere)), false)).toBeUndefined()
  })

  it('have polls just after them', () => {
    const times = firings(3, 200, everyFive)
    const schedule = createSchedule(options, undefined)
    const { polls } = simulate(times, schedule, options)
    expect(schedule.describe(0).firing).toMatch(/^every 5 s/)
    const later = polls.slice(-1_500)
    expect(later.filter((at) => at % 5_000 >= 250 && at % 5_000 <= 500).length).toBeGreaterThan(1_400)
  })
})

describe('the schedule', () => {
  it('locks on marks by itself: an alert waits a tenth of what it would for even polls', () => {
    const times = firings(8, 200, onMinute)
    const schedule = createSchedule(options, undefined)
    const lag = summarizeLags(simulate(times, schedule, options).lagsMs)
    expect(lag.mean).toBeLessThan(0.2 * summarizeLags(evenLags(times, options)).mean)
    expect(schedule.describe(times.at(-1) ?? 0).firing).toMatch(/^each minute/)
  })

  it('leaves marks while rows come late, and follows them again once a few come in time', () => {
    const schedule = createSchedule(options, undefined)
    const minuteMs = 60_000
    let atMs = benchStartMs + 5_000
    const poll = (minutes: number, firedAgoMs: number) => {
      for (let k = 0; k < minutes; k++, atMs += minuteMs)
        schedule.observe({ atMs, ok: true, firedAtMs: [atMs - firedAgoMs], pages: 1, pagesLeft: 'none' })
      return schedule.describe(atMs).onMarks
    }
    expect([poll(400, 3_000), poll(60, 3 * minuteMs), poll(20, 3_000)]).toEqual([true, false, true])
  })

  it('comes back to marks that one odd batch took it from, as soon as they are proven again', () => {
    const schedule = createSchedule(options, undefined)
    let atMs = benchStartMs + 5_000
    const poll = (minutes: number, firedAgoMs: readonly number[]) => {
      for (let k = 0; k < minutes; k++, atMs += 60_000) {
        const firedAtMs = firedAgoMs.map((agoMs) => atMs - agoMs)
        schedule.observe({ atMs, ok: true, firedAtMs, pages: 1, pagesLeft: 'none' })
      }
      return schedule.describe(atMs).onMarks
    }
    const oddMs = Array.from({ length: 30 }, (_, index) => 20_000 + 600 * index)
    expect([poll(400, [3_000]), poll(1, oddMs), poll(10, [3_000])]).toEqual([true, false, true])
  })

  it('leaves out minutes of five as soon as the marks in these are proven again, and as before after a restart', () => {
    const few = benchOptions(350)
    const schedule = createSchedule(few, undefined)
    let atMs = benchStartMs + 5_000 - 300_000
    const poll = (marks: number, firedAgoMs: readonly number[]) => {
      for (let k = 0; k < marks; k++) {
        atMs += 300_000
        const firedAtMs = firedAgoMs.map((agoMs) => atMs - agoMs)
        schedule.observe({ atMs, ok: true, firedAtMs, pages: 1, pagesLeft: 'none' })
      }
      const budget = { unitsPerDay: 350, unitsLeft: 200, day: budgetDay(atMs, few) }
      const restarted = createSchedule(few, schedule.snapshot())
      return [schedule, restarted].map((each) => Math.round((each.next(atMs, budget).atMs - atMs) / 60_000))
    }
    const oddMs = Array.from({ length: 30 }, (_, index) => 70_000 + 600 * index)
    expect(poll(400, [3_000])).toEqual([5, 5])
    poll(1, oddMs)
    expect([poll(7, [3_000]), poll(13, [3_000])]).toEqual([
      [4, 4],
      [5, 5],
    ])
  })

  it('goes to where marks have moved before half as many firings again are known, also after a restart', () => {
    let atMs = benchStartMs + 15_000
    const poll = (schedules: readonly Schedule[], minutes: number, firedAgoMs: number) => {
      for (let k = 0; k < minutes; k++, atMs += 60_000) {
        const firedAtMs = [atMs - firedAgoMs + (k % 4) * 1_000]
        for (const each of schedules) each.observe({ atMs, ok: true, firedAtMs, pages: 1, pagesLeft: 'none' })
      }
      return schedules.map((each) => /second \d+/.exec(each.describe(atMs).firing ?? '')?.[0])
    }
    const schedule = createSchedule(options, undefined)
    expect(poll([schedule], 800, 14_000)).toEqual(['second 5'])
    poll([schedule], 30, 4_000)
    const restarted = createSchedule(options, schedule.snapshot())
    expect(poll([schedule, restarted], 330, 4_000)).toEqual(['second 15', 'second 15'])
  })

  it('stays on marks where one batch in four comes late, however many alerts it has', () => {
    const schedule = createSchedule(options, undefined)
    let atMs = benchStartMs + 5_000
    const poll = (alerts: number, firedAgoMs: number) => {
      const firedAtMs = new Array<number>(alerts).fill(atMs - firedAgoMs)
      schedule.observe({ atMs, ok: true, firedAtMs, pages: 1, pagesLeft: 'none' })
      atMs += 60_000
      return schedule.describe(atMs).onMarks
    }
    for (let minute = 0; minute < 400; minute++) poll(1, 3_000)
    const seen = Array.from({ length: 40 }, (_, minute) => poll(20, minute % 4 === 0 ? 183_000 : 3_000))
    expect(seen).not.toContain(false)
  })

  it.each([5, 100])('stays on marks that a single alert waits for, for what batches of %i save', (size) => {
    const schedule = createSchedule(options, undefined)
    schedule.learnHistory(firings(4, 100, onMinute))
    const poll = (atMs: number, alerts: number, firedAtMs: number) => {
      const fired = new Array<number>(alerts).fill(firedAtMs)
      schedule.observe({ atMs, ok: true, firedAtMs: fired, pages: 1, pagesLeft: 'none' })
      const day = budgetDay(atMs, options)
      schedule.next(atMs, { day, unitsPerDay: 2_000, unitsLeft: ((day.endMs - atMs) / dayMs) * 2_000 })
      return schedule.describe(atMs).onMarks
    }
    const seen = Array.from({ length: 60 }, (_, round) => {
      const markMs = benchStartMs + 4 * dayMs + round * 600_000
      poll(markMs + 3_000, size, markMs + 1_000)
      const isOn = poll(markMs + 150_000, 1, markMs + 20_000 + (round % 30) * 1_000)
      poll(markMs + 303_000, size, markMs + 301_000)
      return isOn
    })
    expect(seen).not.toContain(false)
  })

  it('counts each alert alike where marks are judged by their waits, and lets no batch decide alone', () => {
    const judged = (polls: readonly (readonly number[])[]) => {
      const phase = { ...emptyPhase(), timelyGain: 16 }
      for (const saved of polls) judgeMarks(phase, saved)
      return phase
    }
    expect(judged([[-0.9, -0.9, -0.9]]).waitGain).toBeCloseTo(judged([[-0.9], [-0.9], [-0.9]]).waitGain)
    const late = new Array<readonly number[]>(5).fill(new Array<number>(500).fill(-0.5))
    const left = (polls: typeof late) =>
      whyMarksAreLeft({ phase: judged(polls), guard: { won: 1 } }, false, 500)
    expect([left(late), left([...late, ...late])]).toEqual([undefined, 'nothing_saved'])
  })

  it.each([
    ['that the longest gap has polls between', 60, 2_000, 20],
    ['though alerts come in every minute', 5, 500, 60],
  ])('comes back to marks %s (%i minutes, %i units)', (_, minutes, units, others) => {
    const periodMs = minutes * 60_000
    const toMark = (at: number, random: () => number) =>
      Math.floor(at / periodMs) * periodMs + 4_000 * random()
    const some = benchOptions(units)
    const schedule = createSchedule(some, undefined)
    const left = schedule.snapshot() as { phase: { waitGain: number } }
    left.phase.waitGain = 0
    const times = [...firings(14, 100, toMark), ...firings(14, others, anywhere)].sort((a, b) => a - b)
    const again = createSchedule(some, left)
    simulate(times, again, some)
    expect(again.describe(0).onMarks).toBe(true)
  })

  it('stays on the marks that an earlier version stored, which did not count late rows', () => {
    const schedule = createSchedule(options, undefined)
    schedule.learnHistory(firings(2, 200, onMinute))
    const stored = schedule.snapshot() as {
      phase: Record<string, unknown>
      lockedOn: Record<string, unknown>
    }
    delete stored.phase.timelyGain
    delete stored.lockedOn.timelyGain
    expect(createSchedule(options, stored).describe(0).onMarks).toBe(true)
  })

  const toMinute = (at: number) => Math.floor(at / 60_000) * 60_000
  const toFive = (at: number) => Math.floor(at / 5_000) * 5_000
  it.each([
    ['on the minute', 'market', 400, toMinute, toMinute, true, /each minute|a poll a minute/],
    ['every five seconds', 'market', 2_000, toFive, toFive, true, /every 5 s/],
    ['on the minute, at few units', 'market', 48, toMinute, toMinute, false, /too few a day/],
    [
      'at any time, dated by the minute',
      'flat',
      2_000,
      (at: number) => at,
      toMinute,
      false,
      /no better than/,
    ],
    [
      'on the minute, shown every ten minutes',
      'market',
      2_000,
      (at: number) => Math.ceil(at / 600_000) * 600_000 + 2_000,
      toMinute,
      false,
      /most rows come later/,
    ],
  ] as const)(
    'is drawn and described on the marks that it goes on, and on no others: alerts %s (%s, %d units)',
    (_, scenario, units, shownAt, datedAt, isOnMarks, words) => {
      const some = benchOptions(units)
      const schedule = createSchedule(some, undefined)
      const [observe, next] = [schedule.observe.bind(schedule), schedule.next.bind(schedule)]
      // No two at the same instant, so that each finds its date.
      const dates = new Map(
        createTrace(scenario, 11, 17).times.map((at, index) => [
          Math.floor(shownAt(at)) + index / 10_000,
          datedAt(at),
        ]),
      )
      const shown = [...dates.keys()].sort((a, b) => a - b)
      const lateFromMs = (shown[0] ?? 0) + 12 * dayMs
      const reasons: string[] = []
      schedule.observe = (poll) =>
        observe({ ...poll, firedAtMs: poll.firedAtMs.map((at) => dates.get(at) ?? at) })
      schedule.next = (nowMs, budget) => {
        const decision = next(nowMs, budget)
        if (nowMs > lateFromMs) reasons.push(decision.reason)
        return decision
      }
      const { lagsMs, polls } = simulate(shown, schedule, some)
      const onMarks = reasons.filter((reason) => reason === 'mark').length > 0.5 * reasons.length
      const lags = lagsMs.filter((_lag, at) => (shown[at] ?? 0) > lateFromMs)
      const preview = previewPlan(some, schedule.snapshot(), polls.at(-1) ?? 0, 24)
      const view = schedule.describe(0)
      const { mean } = summarizeLags(lags)
      const isDrawn = preview.marks !== undefined || preview.markPeriod !== undefined
      expect([onMarks, view.onMarks, isDrawn]).toEqual([isOnMarks, isOnMarks, isOnMarks])
      expect(preview.lagSeconds / mean).toBeGreaterThan(0.85)
      expect(preview.lagSeconds / mean).toBeLessThan(1.2)
      for (const text of [view.firing, describePreview('main', some, preview)]) {
        expect(text).toMatch(words)
        if (isOnMarks) expect(text).not.toMatch(/too few|do not go by/)
      }
    },
  )

  it.each([
    [300, 12],
    [600, 6],
  ])(
    'each five minutes leave no units over at the end of a day, and are drawn so: %d, %d days',
    (unitsPerDay, days) => {
      const times = createTrace('market', days, 42).times.map(
        (at, index) => Math.floor(at / 300_000) * 300_000 + ((index * 7_919) % 2_500),
      )
      times.sort((a, b) => a - b)
      const few = benchOptions(unitsPerDay)
      const schedule = createSchedule(few, undefined)
      const result = simulate(times, schedule, few)
      expect(Math.min(...unitsADay(result.polls))).toBeGreaterThanOrEqual(unitsPerDay - 1)
      expect(Math.max(...unitsADay(result.polls))).toBeLessThanOrEqual(unitsPerDay)
      const hardly = 0.05 * summarizeLags(evenLags(times, few)).mean
      expect(summarizeLags(result.lagsMs).mean).toBeLessThan(hardly)
      expect(previewPlan(few, schedule.snapshot(), times.at(-1) ?? 0, 24).lagSeconds).toBeLessThan(hardly)
    },
  )

  it.each([
    { minutes: 5, atAnyTime: 1 / 6, unitsPerDay: 750, measures: ['mean', 'p50', 'p99'] },
    { minutes: 5, atAnyTime: 0.4, unitsPerDay: 500, measures: ['mean', 'p50', 'p99'] },
    { minutes: 15, atAnyTime: 0, unitsPerDay: 240, measures: ['p50', 'p95'] },
  ] as const)(
    'each $minutes minutes, and a part of $atAnyTime at any time, are drawn with the waits of both: $unitsPerDay units',
    ({ minutes, atAnyTime, unitsPerDay, measures }) => {
      const some = benchOptions(unitsPerDay)
      const markMs = minutes * 60_000
      const times = firings(9, 240, (at, random) =>
        random() < atAnyTime ? at : Math.floor(at / markMs) * markMs + 8_000 * random(),
      )
      const schedule = createSchedule(some, undefined)
      const { lagsMs, polls } = simulate(times, schedule, some)
      const real = summarizeLags(lagsMs.filter((_, at) => (times[at] ?? 0) > benchStartMs + 5 * dayMs))
      const { lag } = previewPlan(some, schedule.snapshot(), polls.at(-1) ?? 0, 24)
      for (const measure of measures) {
        expect(lag[measure] / real[measure], measure).toBeGreaterThan(0.7)
        expect(lag[measure] / real[measure], measure).toBeLessThan(1.4)
      }
    },
  )

  it('each five minutes leave units for the last of a day, beside the polls that the longest gap asks for between them', () => {
    const times = firings(3, 400, (at, random) => Math.floor(at / 300_000) * 300_000 + 20_000 * random())
    const { lagsMs } = simulate(times, createSchedule(benchOptions(1_200), undefined), benchOptions(1_200))
    const waitsLater = lagsMs.filter((_, at) => (times[at] ?? 0) > benchStartMs + dayMs)
    expect(Math.max(...waitsLater)).toBeLessThan(12_000)
  })

  it('that the longest gap makes polls visit one and all are drawn with the units that there are, as they are polled', () => {
    const some = benchOptions(1_000)
    const schedule = createSchedule(some, undefined)
    schedule.learnHistory(firings(5, 60, onMinute))
    // The guard keeps what is won for another such batch.
    const batchMs = benchStartMs + 5 * dayMs + 5 * 3_600_000 + 1_000
    simulate(
      Array.from({ length: 200 }, (_, index) => batchMs + index),
      schedule,
      some,
    )
    const { startMs } = budgetDay(benchStartMs + 6 * dayMs, some)
    const { hours } = previewPlan(some, schedule.snapshot(), startMs, 24)
    const polls = hours.map((hour) => hour.polls)
    expect(polls.reduce((sum, each) => sum + each, 0)).toBeCloseTo(1_000, -1)
    expect(polls.slice(0, 9).map(Math.round)).toEqual(new Array(9).fill(60))
    expect(polls.slice(11, 22).map(Math.round)).toEqual(new Array(11).fill(30))
    // No unit is left for marks where the config asks for gaps that all units do not buy.
    const thin = { ...some, maxIntervalMs: 30_000 }
    const drawn = previewPlan(thin, schedule.snapshot(), startMs, 24)
    expect(drawn.hours.reduce((sum, hour) => sum + hour.polls, 0)).toBeCloseTo(1_000, -1)
    expect(drawn.lagSeconds).toBeCloseTo(43.2, 0)
  })

  it('polls later after the mark where rows become readable late', () => {
    const lateMs = 6_000
    const times = firings(3, 300, onMinute)
    const schedule = createSchedule(options, undefined)
    schedule.learnHistory(times)
    let nowMs = benchStartMs + 3 * dayMs
    const polls: number[] = []
    const coming = firings(1, 1_200, onMinute).map((at) => at + 3 * dayMs)
    for (let seen = 0, left = 2_000; nowMs < benchStartMs + 3.5 * dayMs; left--) {
      const day = budgetDay(nowMs, options)
      nowMs = Math.ceil(
        Math.max(nowMs, schedule.next(nowMs, { unitsPerDay: 2_000, unitsLeft: left, day }).atMs),
      )
      const from = seen
      while ((coming[seen] ?? nowMs) + lateMs <= nowMs) seen++
      schedule.observe({
        atMs: nowMs,
        ok: true,
        firedAtMs: coming.slice(from, seen),
        pages: 1,
        pagesLeft: 'none',
      })
      polls.push(nowMs)
    }
    const early = polls.slice(-300).filter((at) => at % 60_000 < lateMs)
    expect(early.length).toBeLessThan(60)
  })
})

it('marks are planned anew on the very day on which the API turns out to grant fewer units', () => {
  const times = firings(8, 200, (at) => Math.floor(at / 300_000) * 300_000 + 2_000)
  const cut = benchStartMs + 7 * dayMs
  const schedule = createSchedule(options, undefined)
  simulate(
    times.filter((at) => at < cut),
    schedule,
    options,
  )
  const next = schedule.next.bind(schedule)
  schedule.next = (nowMs, budget) => next(nowMs, { ...budget, unitsPerDay: 300 })
  const { lagsMs } = simulate(
    times.filter((at) => at >= cut),
    schedule,
    { ...options, unitsPerDay: 300 },
  )
  expect(summarizeLags(lagsMs).mean).toBeLessThan(5)
})
