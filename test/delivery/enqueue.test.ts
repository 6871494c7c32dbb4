import { expect, it } from 'vitest'
import { useRedis } from '../support/redis.ts'
import { jobs, rig } from './support.ts'

/** How alerts come into the queues. */

const server = useRedis()

it('jobs go to their sinks in batches of a hundred, in their order', async () => {
  const { queues } = rig(server, ['hook', 'desk'])
  const sizes: number[] = []
  const hook = queues.queue('hook')
  const store = hook.addBulk.bind(hook)
  hook.addBulk = async (bulk) => {
    sizes.push(bulk.length)
    return store(bulk)
  }
  await queues.enqueue([...jobs('desk', 1, 3), ...jobs('hook', 1, 250)])
  expect(sizes).toEqual([100, 100, 50])
  const waiting = await hook.getWaiting(0, -1)
  expect(waiting.map(({ data }) => data.row['id'])).toEqual(
    jobs('hook', 1, 250).map(({ alert }) => alert.row['id']),
  )
  expect(await queues.queue('desk').getWaitingCount()).toBe(3)
})
