import { expect, it, vi } from 'vitest'
import { createSchedule } from '../../src/schedule/create.ts'
import { evenLags, simulate, summarizeLags } from '../../src/schedule/simulate.ts'
import { benchOptions } from '../bench/compare.ts'
import { compareKind } from '../bench/compare-kind.ts'
import { hostileKinds } from '../bench/hostile.ts'
import { strangeKinds } from '../bench/strange.ts'
import { benchStartMs, createTrace } from '../bench/traces.ts'
import { tunedKinds } from '../bench/unfriendly.ts'
import { computing } from '../support/computing.ts'

vi.setConfig(computing)

/** What the plan promises on histories that it can lose on; the whole table is `npm run bench:polling`. */

it.each([
  ['thirty alerts within a second, once an hour', 1.1],
  ['a two-hour window that drifts half an hour a day', 0.6],
  ['a two-hour window at a random hour', 1.05],
  ['one giant day', 1.05],
  ['twenty thousand alerts within two hours, just after a session', 1.05],
  ['a session, and a batch of a hundred each night', 1.1],
  ['marks of five minutes that drift 1.7 s a day', 1.05],
])('%s: a mean of at most %d of even polls, p99 of two, no wait beyond five intervals', (name, mean) => {
  const kind = tunedKinds[name] ?? strangeKinds[name]
  if (!kind) throw new Error(`no kind ${name}`)
  const result = compareKind(kind, 500, [4_242], 28)
  expect(result.mean).toBeLessThanOrEqual(mean)
  expect(result.p99).toBeLessThanOrEqual(2)
  expect(result.longest).toBeLessThanOrEqual(5.1)
})

it('a smaller budget that the API grants is planned as if the config had said so', () => {
  const times = tunedKinds['a market of screens']?.(7, 21) ?? []
  const [knew, learned] = [400, 2_000].map((configured) => {
    const options = benchOptions(configured)
    const schedule = createSchedule(options, undefined)
    const next = schedule.next.bind(schedule)
    // The simulation spends 400 units; the schedule was made for what the config says.
    schedule.next = (nowMs, budget) => next(nowMs, { ...budget, unitsPerDay: 400 })
    return summarizeLags(simulate(times, schedule, { ...options, unitsPerDay: 400 }).lagsMs).mean
  })
  expect(learned).toBeLessThan(1.1 * (knew ?? 0))
})

const hourMs = 3_600_000
const tehranDayOf = (at: number) =>
  Math.floor((at + 3.5 * hourMs) / (24 * hourMs)) * 24 * hourMs - 3.5 * hourMs

it.each([
  ['each a minute and a half before its row was shown', 400, 'market', 0.6, (at: number) => at - 90_000],
  [
    'one in twenty an hour before',
    400,
    'market',
    0.6,
    (at: number, index: number) => (index % 20 === 0 ? at - hourMs : at),
  ],
  ['each six hours before', 400, 'market', 0.6, (at: number) => at - 6 * hourMs],
  ['each as if in another zone, at ten units', 10, 'market', 0.75, (at: number) => at - 3.5 * hourMs],
  ['by the day alone', 400, 'market', 0.65, tehranDayOf],
  ['by the hour alone', 400, 'market', 0.65, (at: number) => Math.floor(at / hourMs) * hourMs],
  ['in whole minutes', 2_000, 'flat', 1.05, (at: number) => Math.floor(at / 60_000) * 60_000],
] as const)(
  'alerts that are dated %s (%d units, %s): %d of even polls at most',
  (_, units, scenario, limit, dateOf) => {
    const options = benchOptions(units)
    const schedule = createSchedule(options, undefined)
    const observe = schedule.observe.bind(schedule)
    const shown = createTrace(scenario, 11, scenario === 'flat' ? 6 : 21).times
    const dates = new Map(shown.map((at, index) => [at, dateOf(at, index)]))
    schedule.observe = (poll) =>
      observe({ ...poll, firedAtMs: poll.firedAtMs.map((at) => dates.get(at) ?? at) })
    const ours = summarizeLags(simulate(shown, schedule, options).lagsMs)
    expect(ours.mean).toBeLessThanOrEqual(limit * summarizeLags(evenLags(shown, options)).mean)
  },
)

it.each([
  [
    'by the minute and shown every ten minutes',
    400,
    0.75,
    60_000,
    (at: number) => Math.ceil(at / 600_000) * 600_000 + 2_000,
  ],
  [
    'by every fifth minute and shown within two minutes of it',
    2_000,
    0.85,
    300_000,
    (at: number, index: number) => Math.floor(at / 300_000) * 300_000 + ((index * 7_919) % 120_000),
  ],
] as const)(
  'alerts that are dated %s (%d units): %d of even polls at most',
  (_, units, limit, periodMs, showAt) => {
    const options = benchOptions(units)
    const schedule = createSchedule(options, undefined)
    const observe = schedule.observe.bind(schedule)
    // No two at the same instant, so that each finds its date.
    const dates = new Map(
      createTrace('market', 11, 14).times.map((at, index) => [
        Math.floor(showAt(at, index)) + index / 10_000,
        Math.floor(at / periodMs) * periodMs,
      ]),
    )
    const shown = [...dates.keys()].sort((a, b) => a - b)
    schedule.observe = (poll) =>
      observe({ ...poll, firedAtMs: poll.firedAtMs.map((at) => dates.get(at) ?? at) })
    const ours = summarizeLags(simulate(shown, schedule, options).lagsMs)
    expect(ours.mean).toBeLessThanOrEqual(limit * summarizeLags(evenLags(shown, options)).mean)
  },
)

it('ten polls a day come where they help most', () => {
  const { mean, p99, longest } = compareKind(
    (seed, days) => createTrace('market', seed, days).times,
    10,
    [4_242],
    42,
  )
  expect(mean).toBeLessThanOrEqual(0.5)
  expect(p99).toBeLessThanOrEqual(2)
  expect(longest).toBeLessThanOrEqual(5)
})

it.each(['morning or evening, by chance', 'all of a day in its first hour or in its last, by chance'])(
  'ten polls a day leave no long gap where alerts came on one of the last days: %s',
  (name) => {
    const kind = strangeKinds[name] ?? hostileKinds[name]
    if (!kind) throw new Error(`no kind ${name}`)
    expect(compareKind(kind, 10, [101, 102], 42).p99).toBeLessThanOrEqual(2)
  },
)

it('two polls a day come where they help most', () => {
  const times: number[] = []
  for (let day = 0; day < 28; day++)
    for (let k = 0; k < 40; k++) times.push(benchStartMs + day * 86_400_000 + (9 + (k / 40) * 3) * 3_600_000)
  const options = benchOptions(2)
  const lag = summarizeLags(simulate(times, createSchedule(options, undefined), options).lagsMs)
  expect(lag.mean).toBeLessThan(0.6 * summarizeLags(evenLags(times, options)).mean)
})

it('what an earlier version stored is read: its profile stays', () => {
  const options = benchOptions(500)
  const schedule = createSchedule(options, undefined)
  schedule.learnHistory(tunedKinds['no pattern, fifty a day']?.(3, 10) ?? [])
  const {
    v: _,
    recent: __,
    family: ___,
    guard: ____,
    few: _____,
    ...kept
  } = schedule.snapshot() as Record<string, unknown>
  const restored = createSchedule(options, { ...kept, v: 1, scale: 1, demand: {}, intensity: {} })
  expect(restored.describe(0)).toMatchObject({
    memory: 'restored',
    learnedFrom: schedule.describe(0).learnedFrom,
  })
})
