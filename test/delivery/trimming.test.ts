import { expect, it, onTestFinished, vi } from 'vitest'
import { useRedis } from '../support/redis.ts'
import { jobs, rig, testSink, until } from './rig.ts'

const server = useRedis()

it('records that are too many are looked for once a minute, not by every alert that comes alone', async () => {
  const { queues, sender } = rig(server, ['hook'])
  sender([testSink('hook')])
  const [queue, client, nowMs] = [queues.queue('hook'), server.client(), performance.now.bind(performance)]
  const looks = async () =>
    Number(/zremrangebyrank:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0)
  let aheadMs = 0
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs() + aheadMs)
  onTestFinished(() => void vi.restoreAllMocks())
  const looksOf = async (from: number, to: number) => {
    const before = await looks()
    for (let id = from; id <= to; id += 1) {
      aheadMs += 2_000
      await queues.enqueue(jobs('hook', id, id))
      await until('it is sent', async () => (await queue.getCompletedCount()) === id)
    }
    return (await looks()) - before
  }
  expect(await looksOf(1, 10)).toBe(1)
  aheadMs += 60_000
  expect(await looksOf(11, 20)).toBe(1)
})

it('records are kept for as long as the present config says, not that of the day on which they were stored', async () => {
  const dayMs = 86_400_000
  const { queues, sender } = rig(server, ['hook'])
  const redis = server.client()
  let retention = { ageMs: 2 * dayMs, count: 10_000 }
  sender([testSink('hook')], { more: { retention: () => retention } })
  const queue = queues.queue('hook')
  const old = ['main.801', 'main.802']
  await redis.zadd(
    queue.toKey('completed'),
    Date.now() - 3 * dayMs,
    'main.801',
    Date.now() - 1.5 * dayMs,
    'main.802',
  )
  for (const id of old) await redis.hset(queue.toKey(id), 'name', 'alert')
  const leftAfter = async (id: number) => {
    await queues.enqueue(jobs('hook', id, id))
    await until(
      'it is sent',
      async () => (await redis.zscore(queue.toKey('completed'), `main.${id}`)) !== null,
    )
    const left = await Promise.all(old.map((each) => redis.exists(queue.toKey(each))))
    return old.filter((_id, index) => left[index] === 1)
  }
  expect(await leftAfter(1)).toEqual(['main.802'])
  const nowMs = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs() + 60_000)
  onTestFinished(() => void vi.restoreAllMocks())
  retention = { ageMs: dayMs, count: 10_000 }
  expect(await leftAfter(2)).toEqual([])
})

it('where the config lowers how many are kept, no acknowledgement holds Redis for longer than the thousand oldest take', async () => {
  const { queues, sender } = rig(server, ['hook'])
  const redis = server.client()
  const queue = queues.queue('hook')
  const old = Array.from({ length: 12_500 }, (_, at) => [Date.now() - 1_000_000 + at, `main.${at + 1_001}`])
  await redis.zadd(queue.toKey('completed'), ...old.flat())
  const [nowMs, setup] = [performance.now.bind(performance), { retention: () => ({ ageMs: 1, count: 100 }) }]
  sender([testSink('hook')], { more: setup })
  let aheadMs = 0
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs() + aheadMs)
  onTestFinished(() => void vi.restoreAllMocks())
  const keptAfter = async (id: number) => {
    await queues.enqueue(jobs('hook', id, id))
    await until(
      'it is sent',
      async () => (await redis.zscore(queue.toKey('completed'), `main.${id}`)) !== null,
    )
    aheadMs += 60_000
    return queue.getCompletedCount()
  }
  // With the alert itself, which is one more each time.
  expect([await keptAfter(1), await keptAfter(2), await keptAfter(3), await keptAfter(4)]).toEqual([
    ...[11_501, 10_502, 10_000, 10_000],
  ])
  expect(await redis.zscore(queue.toKey('completed'), 'main.1001')).toBeNull()
  expect(await redis.zscore(queue.toKey('completed'), 'main.13500')).not.toBeNull()
})
