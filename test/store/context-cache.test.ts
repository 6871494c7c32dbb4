import { expect, it } from 'vitest'
import { createContextCache } from '../../src/store/context-cache.ts'
import { contextBurstKey } from '../../src/store/context-keys.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()

function cacheOf(accountHash = 'account', prefix = freshPrefix()) {
  const limits = { entriesMax: 3, bytesMax: 390 }
  return createContextCache({ redis: redis.client(), prefix, source: 'main', accountHash, limits })
}

it('keeps the newest within its bounds of entries and of bytes, and what is stored again once', async () => {
  const cache = cacheOf()
  for (const [index, field] of ['a', 'b', 'b', 'c', 'd'].entries())
    await cache.store([{ field, value: { index } }], Date.now() + index)
  expect((await cache.read(['a', 'b', 'c', 'd'])).map((each) => each?.value)).toEqual([
    undefined,
    { index: 2 },
    { index: 3 },
    { index: 4 },
  ])
  await cache.store([{ field: 'large', value: 'x'.repeat(350) }], Date.now() + 9)
  expect((await cache.read(['b', 'c', 'd', 'large'])).map((each) => each !== undefined)).toEqual([
    ...[false, false, false, true],
  ])
  await cache.store([{ field: 'beyond', value: 'x'.repeat(500) }], Date.now() + 10)
  expect(await cache.read(['beyond', 'large'])).toEqual([undefined, undefined])
  await cache.store([{ field: 'e', value: null }], Date.now() + 11)
  expect(await cache.read(['e'])).toMatchObject([{ value: null }])
})

it('removes what is older than a day, and shows nothing to another account', async () => {
  const prefix = freshPrefix()
  const cache = cacheOf('one', prefix)
  await cache.store([{ field: 'old', value: 1 }], Date.now() - 90_000_000)
  await cache.store([{ field: 'new', value: 2 }], Date.now())
  expect(await cache.read(['old', 'new'])).toMatchObject([undefined, { value: 2 }])
  expect(await cacheOf('two', prefix).read(['new'])).toEqual([undefined])
})

it('lets one process buy at a time, and a burst use so many units in its minutes', async () => {
  const cache = cacheOf()
  const token = await cache.lock('price', 60_000)
  expect(await cache.lock('price', 60_000)).toBeUndefined()
  await cache.unlock('price', 'of another')
  expect(await cache.lock('price', 60_000)).toBeUndefined()
  await cache.unlock('price', token ?? '')
  expect(await cache.lock('price', 60_000)).toBeDefined()
  const limit = { unitsMax: 5, forMs: 60_000 }
  expect([await cache.take(4, limit), await cache.take(2, limit), await cache.take(1, limit)]).toEqual([
    true,
    false,
    true,
  ])
  await cache.giveBack(3)
  expect(await cache.take(3, limit)).toBe(true)
})

it('counts the minutes of a burst from the first unit that is used, not from one that was given back', async () => {
  const prefix = freshPrefix()
  const cache = cacheOf('account', prefix)
  await cache.take(4, { unitsMax: 5, forMs: 60_000 })
  await cache.giveBack(4)
  expect(await cache.take(1, { unitsMax: 5, forMs: 600_000 })).toBe(true)
  expect(await redis.client().pttl(contextBurstKey(prefix, 'main', undefined))).toBeGreaterThan(60_000)
})
