import { expect, test } from 'vitest'
import { createSourceDay } from '../../src/app/source/day.ts'
import { scheduleOptionsOf, usualSource } from '../../src/app/source/schedule-options.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import type { RedisClient } from '../../src/store/connection/redis.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { createWalkState, type WalkChange } from '../../src/store/walk/walk-state.ts'
import { clockAt } from '../support/clock.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()
const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** A stored walk, into which pages of a feed are written. */
async function walkOf(options: { redis: RedisClient; prefix: string; source: string }) {
  const state = createWalkState({ ...options, seenWindowMs: 30 * dayMs })
  await state.open({ id: 'a', scope: { kind: 'all' } })
  const commit = async (page: Pick<WalkChange, 'mark' | 'shown' | 'passedOver' | 'nowMs'>) => {
    const { id, version } = await state.look([])
    const rest = { joins: [], finished: [], quarantine: [], readable: [], explains: true, unrouted: 0 }
    await state.commit({ id, version }, { ...rest, ...page, rowsBecome: 'covered' })
  }
  return {
    marks: (mark: readonly string[], nowMs: number, passedOver = 0) =>
      commit({ mark, nowMs, passedOver, shown: [] }),
    shows: (shown: readonly string[], nowMs: number) => commit({ shown, nowMs, passedOver: 0, mark: [] }),
  }
}

test('a budget day has by hours what was spent and seen, without what was history, and what is planned', async () => {
  const spender = { prefix: freshPrefix(), source: 'main', account: 'desk' }
  const config = usualSource(2_000)
  const plan = scheduleOptionsOf(config)
  const { startMs, endMs } = budgetDay(Date.UTC(2026, 10, 21, 12), plan)
  let nowMs = startMs + 2.6 * hourMs
  const clock = clockAt(() => nowMs)
  const commands = redis.client()
  const ledger = createLedger({
    ...{ ...spender, redis: commands, clock, unitsPerDay: 2_000, requestsPerMinute: 240 },
    budgetDay: (atMs) => budgetDay(atMs, plan),
  })
  await ledger.reserve({ cost: 3, purpose: 'poll' })
  nowMs += 0.5 * hourMs
  await ledger.reserve({ cost: 1, purpose: 'context' })
  const walk = await walkOf({ redis: commands, ...spender })
  // Polling began in the third hour, with five rows that were history, and one that was not; an hour later more history was read.
  await walk.marks(['1', '2', '3', '4', '5', '6'], startMs + 2.1 * hourMs, 5)
  await walk.marks(['7', '8', '9'], startMs + 3.1 * hourMs, 1)

  const read = createSourceDay({
    redis: commands,
    spender,
    config,
    learned: { load: async () => undefined },
    unitsPerDay: async () => 2_000,
    sharers: () => 2,
    apiDay: async () => undefined,
    clock,
  })
  const day = await read()
  const startedAt = (hour: number) => new Date(startMs + hour * hourMs).toISOString()
  expect(day).toMatchObject({
    ...{ source: 'main', sharers: 2 },
    startedAt: startedAt(0),
    resetsAt: new Date(endMs).toISOString(),
  })
  expect(day.hours.map((hour) => hour.startedAt)).toEqual(
    Array.from({ length: 24 }, (_, hour) => startedAt(hour)),
  )
  expect(day.hours.slice(0, 5).map(({ units, alerts }) => [units, alerts])).toEqual([
    [0, 0],
    [0, 0],
    [3, 1],
    [1, 2],
    [0, 0],
  ])
  const planned = day.hours.reduce((sum, hour) => sum + hour.planned, 0)
  // Each hour is rounded to a tenth.
  expect(Math.abs(planned - 2_000)).toBeLessThan(24 * 0.05 + 0.01)
})

test('an alert counts in the hour in which it was first seen, however long the feed shows it', async () => {
  const spender = { prefix: freshPrefix(), source: 'main' }
  const commands = redis.client()
  const walk = await walkOf({ redis: commands, ...spender })
  const config = usualSource(2_000)
  const plan = scheduleOptionsOf(config)
  const { startMs } = budgetDay(Date.now() + 5 * dayMs, plan)
  let nowMs = startMs + 10 * hourMs
  const clock = clockAt(() => nowMs)
  const tools = {
    ...{ redis: commands, config, clock, learned: { load: async () => undefined } },
    unitsPerDay: async () => 2_000,
    sharers: () => 1,
    apiDay: async () => undefined,
  }
  const alertsOfDay = async () => {
    const { hours } = await createSourceDay({ ...tools, spender })()
    return hours.flatMap(({ alerts }, hour) => (alerts > 0 ? [[hour, alerts]] : []))
  }
  await walk.marks(['1', '2', '3'], nowMs)
  expect(await alertsOfDay()).toEqual([[10, 3]])
  for (const days of [1, 2]) {
    nowMs = startMs + (days * 24 + 12) * hourMs
    await walk.shows(['1', '2', '3'], nowMs)
    expect(await alertsOfDay()).toEqual([])
  }
  await walk.marks(['4'], nowMs)
  expect(await alertsOfDay()).toEqual([[12, 1]])
  // What no day shows any more is not kept.
  expect(await commands.hlen(sourceKeys(spender.prefix, spender.source).seenByHalfHour)).toBe(2)
  nowMs += 10 * dayMs
  await walk.marks(['5'], nowMs)
  expect(await commands.hlen(sourceKeys(spender.prefix, spender.source).seenByHalfHour)).toBe(1)
})

test('a budget day that begins within an hour has all that was spent in its hours, and no plan of the next day', async () => {
  const usual = usualSource(2_000)
  const config = { ...usual, budget: { ...usual.budget, resetsAt: '00:15' } }
  const plan = scheduleOptionsOf(config)
  const day = budgetDay(Date.UTC(2026, 10, 21, 12), plan)
  const spender = { prefix: freshPrefix(), source: 'main', account: undefined }
  let nowMs = day.startMs
  const clock = clockAt(() => nowMs)
  const commands = redis.client()
  const limits = { unitsPerDay: 2_000, requestsPerMinute: 240, budgetDay: () => day }
  const ledger = createLedger({ ...spender, ...limits, redis: commands, clock })
  for (const atMs of [day.startMs + 600_000, day.startMs + 3_000_000, day.endMs - 300_000]) {
    nowMs = atMs
    await ledger.reserve({ cost: 1, purpose: 'poll' })
  }
  const learned = { load: async () => undefined }
  const { hours } = await createSourceDay({
    ...{ redis: commands, spender, config, learned, clock },
    unitsPerDay: async () => 2_000,
    sharers: () => 1,
    apiDay: async () => undefined,
  })()
  expect(hours.map(({ units }) => units)).toEqual([1, 1, ...Array(22).fill(0), 1])
  const planned = hours.reduce((sum, hour) => sum + hour.planned, 0)
  expect(Math.abs(planned - 2_000)).toBeLessThan(20)
})

test('where the API begins its day at another time than the config says, the hours are those of its day', async () => {
  const spender = { prefix: freshPrefix(), source: 'main' }
  const config = usualSource(2_000)
  const plan = scheduleOptionsOf(config)
  const { startMs } = budgetDay(Date.UTC(2026, 10, 21, 12), plan)
  let nowMs = startMs + 5.6 * hourMs
  const clock = clockAt(() => nowMs)
  const commands = redis.client()
  const ledger = createLedger({
    ...{ ...spender, redis: commands, clock, unitsPerDay: 2_000, requestsPerMinute: 240 },
    budgetDay: (atMs) => budgetDay(atMs, plan),
  })
  const resetMs = startMs + 6 * hourMs
  // A wait that is told in seconds ends a little beside the hour.
  await ledger.countApiDay({ atMs: resetMs - 1_300, used: 0 })
  const read = createSourceDay({
    ...{ redis: commands, spender, config, clock, learned: { load: async () => undefined } },
    unitsPerDay: async () => 2_000,
    sharers: () => 1,
    apiDay: async () => (await ledger.apiDay())?.day,
  })
  await ledger.reserve({ cost: 3, purpose: 'poll' })
  expect((await read()).resetsAt).toBe(new Date(resetMs).toISOString())
  nowMs = resetMs + 0.4 * hourMs
  await ledger.reserve({ cost: 2, purpose: 'poll' })
  nowMs = resetMs + 20 * hourMs
  await ledger.reserve({ cost: 1, purpose: 'poll' })
  const day = await read()
  expect([day.startedAt, day.resetsAt]).toEqual(
    [resetMs, resetMs + dayMs].map((atMs) => new Date(atMs).toISOString()),
  )
  expect(day.hours.flatMap(({ units }, hour) => (units > 0 ? [[hour, units]] : []))).toEqual([
    [0, 2],
    [20, 1],
  ])
  const planned = day.hours.reduce((sum, hour) => sum + hour.planned, 0)
  expect(Math.abs(planned - 2_000)).toBeLessThan(20)
})

test('a day of fewer units than those of the config is planned as where the config has so few', async () => {
  const spender = { prefix: freshPrefix(), source: 'main' }
  const clock = clockAt(() => Date.UTC(2026, 10, 21, 12))
  const plannedOf = async (units: number) => {
    const { hours } = await createSourceDay({
      ...{ redis: redis.client(), spender, clock, config: usualSource(units) },
      learned: { load: async () => undefined },
      unitsPerDay: async () => 80,
      sharers: () => 1,
      apiDay: async () => undefined,
    })()
    return hours.map(({ planned }) => planned)
  }
  expect(await plannedOf(2_000)).toEqual(await plannedOf(80))
})

test('what the next day spends in the hour in which the day ends is not planned for it', async () => {
  const { budget, poll } = usualSource(60)
  const { hours } = await createSourceDay({
    ...{ redis: redis.client(), spender: { prefix: freshPrefix(), source: 'main' } },
    config: { budget: { ...budget, resetsAt: '03:30' }, poll: { ...poll, every: 10_000 } },
    clock: clockAt(() => Date.UTC(2026, 10, 21, 12)),
    learned: { load: async () => undefined },
    unitsPerDay: async () => 60,
    sharers: () => 1,
    apiDay: async () => undefined,
  })()
  expect([hours.length, hours[0]?.planned, hours.at(-1)?.planned]).toEqual([25, 60, 0])
})
