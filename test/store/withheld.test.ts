import { describe, expect, it } from 'vitest'
import { sourceKeys } from '../../src/store/keys.ts'
import { createWithheldStore, type WithheldRecord } from '../../src/store/walk/withheld.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const server = useRedis()

function stored(retention = { ageMs: 3_600_000, count: 1_000 }) {
  const [redis, prefix] = [server.client(), freshPrefix()]
  return {
    redis,
    keys: sourceKeys(prefix, 'main'),
    store: createWithheldStore({ redis, prefix, source: 'main', retention }),
  }
}

function record(id: number): WithheldRecord {
  const held = [{ route: 'night', sinks: ['desk'], reason: 'muted' as const, untilMs: 7 }]
  return { v: 1, seenAtMs: 5, row: { id, headline: 'فولاد' }, held }
}

describe('what was held back', () => {
  it('is found by the id of the alert, with its row', async () => {
    const { store } = stored()
    await store.keep([record(1), record(2)])
    expect(await store.of(2)).toEqual(record(2))
    expect(await store.of(3)).toBeUndefined()
    expect(await store.ofAll([3, 1])).toEqual([undefined, record(1)])
  })

  it('is replaced when the alert is decided again', async () => {
    const { store } = stored()
    await store.keep([record(1)])
    const again = { ...record(1), held: [{ route: null, sinks: [], reason: 'unrouted' as const }] }
    await store.keep([again])
    expect(await store.of(1)).toEqual(again)
  })

  it('is kept up to a number, the newest', async () => {
    const { store, redis, keys } = stored({ ageMs: 3_600_000, count: 3 })
    for (let id = 1; id <= 8; id += 1) {
      await store.keep([record(id)])
      // What comes in the same millisecond has no order.
      const at = await redis.time()
      while ((await redis.time()).join() === at.join());
    }
    expect(await redis.hlen(keys.held)).toBe(3)
    expect(await redis.zcard(keys.heldTimes)).toBe(3)
    expect(await store.of(8)).toBeDefined()
    expect(await store.of(5)).toBeUndefined()
  })

  it('is kept for an age', async () => {
    const { store, redis, keys } = stored()
    await store.keep([record(1), record(2)])
    await redis.zadd(keys.heldTimes, 1, '1')
    await store.keep([record(3)])
    expect([await store.of(1), await store.of(2), await store.of(3)]).toEqual([
      undefined,
      record(2),
      record(3),
    ])
  })

  it('that a later version wrote says nothing here', async () => {
    const { store, redis, keys } = stored()
    await redis.hset(keys.held, '1', JSON.stringify({ ...record(1), v: 2 }))
    expect(await store.of(1)).toBeUndefined()
  })
})
