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
