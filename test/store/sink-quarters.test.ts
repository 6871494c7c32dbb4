import { expect, test } from 'vitest'
import { sinkQuartersKey } from '../../src/store/operator-keys.ts'
import { createSinkQuarters } from '../../src/store/sink/sink-quarters.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const server = useRedis()
const nowMs = Date.parse('2026-11-21T09:07:00Z')
const quarterMs = 15 * 60_000

test('quarters of an hour keep the longest queue and the mean of all sends, of every process, for a day', async () => {
  const [prefix, redis] = [freshPrefix(), server.client()]
  const one = createSinkQuarters(redis, prefix)
  const other = createSinkQuarters(server.client(), prefix)
  await one.add('hook', { queued: 7, sends: 0, sendMs: 0 }, nowMs - 2 * quarterMs)
  await one.add('hook', { queued: 12, sends: 3, sendMs: 60.4 }, nowMs)
  await other.add('hook', { queued: 340, sends: 1, sendMs: 1_940 }, nowMs)
  await one.add('hook', { queued: 0, sends: 0, sendMs: 0 }, nowMs + 1_000)
  const read = await other.read('hook', nowMs + 2_000)
  expect([read.length, read.at(-4), ...read.slice(-3)]).toEqual([
    ...[96, undefined, { queued: 7, sendMs: undefined }, undefined, { queued: 340, sendMs: 500 }],
  ])
  expect(await redis.pttl(sinkQuartersKey(prefix, 'hook'))).toBeGreaterThan(95 * quarterMs)
  expect((await one.read('desk', nowMs)).every((each) => each === undefined)).toBe(true)

  // The same time of the next day.
  const nextDayMs = nowMs + 96 * quarterMs
  expect((await one.read('hook', nextDayMs)).every((each) => each === undefined)).toBe(true)
  await one.add('hook', { queued: 1, sends: 1, sendMs: 5 }, nextDayMs)
  expect((await one.read('hook', nextDayMs)).at(-1)).toEqual({ queued: 1, sendMs: 5 })
  expect(await redis.hlen(sinkQuartersKey(prefix, 'hook'))).toBe(2)
})
