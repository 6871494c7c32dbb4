import { expect, test } from 'vitest'
import { scheduleOptionsOf, usualSource } from '../../src/app/schedule-options.ts'
import { createSourceDay } from '../../src/app/source-day.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { createLedger } from '../../src/store/ledger.ts'
import { clockAt } from '../support/clock.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()

test('a budget day has by hours what was spent and seen, without what was history, and what is planned', async () => {
  const spender = { prefix: freshPrefix(), source: 'main', account: 'desk' }
  const plan = scheduleOptionsOf(usualSource(2_000))
  const { startMs, endMs } = budgetDay(Date.UTC(2026, 10, 21, 12), plan)
  const hourMs = 3_600_000
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
  const { seen, meta } = sourceKeys(spender.prefix, spender.source)
  // Polling began in the third hour, with five rows that were history, and one that was not.
  const rows = [2.1, 2.1, 2.1, 2.1, 2.1, 2.5, 3.1, 3.2].map((hour) => startMs + hour * hourMs)
  await commands.zadd(seen, ...rows.flatMap((atMs, at) => [atMs, String(at)]))
  await commands.hset(meta, { createdMs: startMs + 2.1 * hourMs, passedOver: 5 })

  const read = createSourceDay({
    redis: commands,
    spender,
    plan,
    learned: { load: async () => undefined },
    clock,
  })
  const day = await read()
  const startedAt = (hour: number) => new Date(startMs + hour * hourMs).toISOString()
  expect(day).toMatchObject({
    source: 'main',
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

test('a budget day that begins within an hour has all that was spent in its hours, and no plan of the next day', async () => {
  const usual = usualSource(2_000)
  const plan = scheduleOptionsOf({ ...usual, budget: { ...usual.budget, resetsAt: '00:15' } })
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
  const { hours } = await createSourceDay({ redis: commands, spender, plan, learned, clock })()
  expect(hours.map(({ units }) => units)).toEqual([1, 1, ...Array(22).fill(0), 1])
  const planned = hours.reduce((sum, hour) => sum + hour.planned, 0)
  expect(Math.abs(planned - 2_000)).toBeLessThan(20)
})
