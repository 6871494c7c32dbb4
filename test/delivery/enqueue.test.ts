import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { parseRow } from '../../src/alert/alert.ts'
import { storedJob } from '../../src/alert/job.ts'
import { parseJson } from '../../src/alert/json/json-number.ts'
import { createQueues } from '../../src/delivery/queue/queues.ts'
import { pageBytesMax } from '../../src/feed/caller.ts'
import { sinkNamesKey, targetTagsName } from '../../src/store/keys.ts'
import { useRedis } from '../support/redis.ts'
import { beforeStoring, deliveryJob, jobs, limitedUser, rig, testSink, until } from './rig.ts'

/** How alerts come into the queues. */

const server = useRedis()

it('jobs go to their sinks in batches of a hundred, in their order', async () => {
  const { queues } = rig(server, ['hook', 'desk'])
  const sizes: number[] = []
  const hook = queues.queue('hook')
  beforeStoring(hook, (size) => sizes.push(size))
  await queues.enqueue([...jobs('desk', 1, 3), ...jobs('hook', 1, 250)])
  expect(sizes).toEqual([100, 100, 50])
  const waiting = await hook.getWaiting(0, -1)
  expect(waiting.map(({ data }) => data.row['id'])).toEqual(
    jobs('hook', 1, 250).map(({ alert }) => alert.row['id']),
  )
  expect(await queues.queue('desk').getWaitingCount()).toBe(3)
})

it('the name of their sink and the tag of their recipient are stored before them: whoever dies in between leaves no nameless queue', async () => {
  const { prefix, queues, redis } = rig(server, ['mail'])
  const mail = queues.queue('mail')
  const before: string[][] = []
  beforeStoring(mail, async () => {
    before.push(await redis.smembers(sinkNamesKey(prefix)), await redis.smembers(mail.toKey(targetTagsName)))
  })
  await queues.enqueue([deliveryJob('mail', 1, { target: 'desk@example.com' })])
  expect(before).toEqual([['mail'], [expect.any(String)]])
})

it('sinks do not wait for one another', async () => {
  const sinks = ['first', 'second', 'third']
  const { queues } = rig(server, sinks)
  const begun: string[] = []
  const all = Promise.withResolvers<void>()
  for (const sink of sinks)
    beforeStoring(queues.queue(sink), () => {
      begun.push(sink)
      if (begun.length === sinks.length) all.resolve()
      return all.promise
    })
  await queues.enqueue(sinks.flatMap((sink) => jobs(sink, 1, 3)))
  for (const sink of sinks) expect(await queues.queue(sink).getWaitingCount()).toBe(3)
})

it('a sink that refuses its jobs leaves nothing of the others under way', async () => {
  const { queues } = rig(server, ['hook', 'desk'])
  const [hook, desk] = [queues.queue('hook'), queues.queue('desk')]
  const refused = Promise.withResolvers<void>()
  beforeStoring(hook, () => {
    refused.resolve()
    throw new Error('OOM command not allowed')
  })
  beforeStoring(desk, () => refused.promise)
  const store = vi.spyOn(desk.getBackend(), 'addJobs')
  await expect(queues.enqueue([...jobs('hook', 1, 1), ...jobs('desk', 1, 1)])).rejects.toThrow('OOM')
  expect(store.mock.settledResults).toMatchObject([{ type: 'fulfilled' }])
})

it('jobs that take long in all are stored, where each batch is stored in time', async () => {
  const { queues } = rig(server, ['hook'])
  const hook = queues.queue('hook')
  beforeStoring(hook, () => sleep(400))
  await queues.enqueue(jobs('hook', 1, 250))
  expect(await hook.getWaitingCount()).toBe(250)
})

it.each(['xadd', 'hmget', 'lpush'])(
  'jobs that were stored by half, where Redis refused %s in the middle, are stored whole by the next attempt',
  async (command) => {
    const { prefix, sender } = rig(server, ['hook'])
    const { redis, may } = await limitedUser(server, 'commands')
    await may(`-${command}`)
    const queues = createQueues({ redis, prefix, sinks: ['hook'] })
    await expect(queues.enqueue(jobs('hook', 1, 3))).rejects.toThrow()
    await may('+@all')
    await queues.enqueue(jobs('hook', 1, 3))
    await queues.enqueue(jobs('hook', 1, 3))
    expect(await queues.queue('hook').getWaitingCount()).toBe(3)
    const hook = testSink('hook')
    sender([hook])
    await until('sent', () => hook.sends.length === 3)
    await until('recorded', async () => (await queues.queue('hook').getCompletedCount()) === 3)
    await queues.enqueue(jobs('hook', 1, 3))
    expect(await queues.queue('hook').getWaitingCount()).toBe(0)
  },
)

/** An eighth of what Redis takes as one value. */
const jobBytesMax = 64 * 1024 * 1024

it.each(['1e20', '1e9', '1e400', '-0', '1.0', '1'])(
  'a row that fills its page with %s has room in its queue',
  (each) => {
    const text = `{"id":1,"payload":[${Array(10_000).fill(each).join(',')}]}`
    const parsed = parseRow('main', parseJson(text))
    if (!parsed.ok) throw new Error(parsed.reason)
    const { data } = storedJob({ sink: 'hook', alert: parsed.alert, seenAtMs: Date.now() })
    // Places of numbers have up to seven digits in a whole page, and four here.
    const bytes = Buffer.byteLength(JSON.stringify(data)) + 10_000 * 3
    expect((bytes / text.length) * pageBytesMax).toBeLessThan(jobBytesMax)
  },
)

it('a job is stored with few bytes beside its alert', async () => {
  const { queues } = rig(server, ['hook'])
  await queues.enqueue(jobs('hook', 7_000_001, 7_000_001))
  const { data, ...rest } = await queues.redis.hgetall(queues.queue('hook').toKey('main.7000001'))
  expect(data).toContain('"id":7000001')
  expect(Object.entries(rest).flat().join('').length).toBeLessThan(60)
})
