import { describe, expect, it } from 'vitest'
import { createJobFields, delayField } from '../../src/delivery/queue/job-fields.ts'
import { useRedis } from '../support/redis.ts'
import { jobs, rig } from './rig.ts'

const server = useRedis()
const record = { number: 2, atMs: 5, durationMs: 1, result: 'delivered' as const, status: 200, text: 'فولاد' }
const minuteMs = 60_000

async function setting() {
  const { queues, redis } = rig(server, ['hook'])
  await queues.enqueue(jobs('hook', 1, 1))
  const queue = queues.queue('hook')
  // As two replicas have them: nothing is kept but in Redis.
  const [here, there] = [createJobFields(redis, queue), createJobFields(server.client(), queue)]
  return { here, there, redis, queue, key: queue.toKey('main.1') }
}

describe('what is kept with a job', () => {
  it('is nothing for one that was never tried, or that an older version has stored', async () => {
    const { here } = await setting()
    expect(await here.read({ id: 'main.1' })).toEqual({ earlyMs: 0 })
    expect(await here.read({ id: 'main.404' })).toEqual({ earlyMs: 0 })
  })

  it('is when it is due, for every process', async () => {
    const { here, there } = await setting()
    await here.delay({ id: 'main.1' }, minuteMs)
    const { earlyMs } = await there.read({ id: 'main.1' })
    expect(earlyMs).toBeGreaterThan(minuteMs - 5_000)
    expect(earlyMs).toBeLessThanOrEqual(minuteMs)
    await there.delay({ id: 'main.1' }, 0)
    expect(await here.read({ id: 'main.1' })).toEqual({ earlyMs: 0 })
  })

  it('is its acknowledgement, for every process', async () => {
    const { here, there } = await setting()
    await here.acknowledge({ id: 'main.1' }, record)
    expect(await there.read({ id: 'main.1' })).toEqual({ earlyMs: 0, acknowledged: record })
  })

  it('says nothing of what an operator asks for again, nor of the delivery before that', async () => {
    const { here } = await setting()
    await here.delay({ id: 'main.1' }, minuteMs)
    await here.acknowledge({ id: 'main.1' }, record)
    expect(await here.read({ id: 'main.1', requestedAtMs: 7 })).toEqual({ earlyMs: 0 })
    await here.delay({ id: 'main.1', requestedAtMs: 7 }, minuteMs)
    expect((await here.read({ id: 'main.1' })).earlyMs).toBe(0)
    expect((await here.read({ id: 'main.1', requestedAtMs: 7 })).earlyMs).toBeGreaterThan(0)
  })

  it('goes with the job, and makes no job', async () => {
    const { here, redis, queue, key } = await setting()
    await here.delay({ id: 'main.1' }, minuteMs)
    await (await queue.getJob('main.1'))?.remove()
    await here.delay({ id: 'main.1' }, minuteMs)
    await here.acknowledge({ id: 'main.1' }, record)
    expect(await redis.exists(key)).toBe(0)
  })

  it('lets nobody wait longer than the pause when the clock of Redis is set back', async () => {
    const { here, redis, key } = await setting()
    const tomorrowMs = Date.now() + 86_400_000
    await redis.hset(key, delayField, ` ${tomorrowMs} ${minuteMs}`)
    expect((await here.read({ id: 'main.1' })).earlyMs).toBe(minuteMs)
    expect((await here.read({ id: 'main.1' })).earlyMs).toBeGreaterThan(minuteMs - 5_000)
    expect(await redis.hget(key, delayField)).not.toContain(String(tomorrowMs))
  })
})
