import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { QueueState } from '../../src/delivery/attempt/deliver.ts'
import { openQueue } from '../../src/delivery/queue/queues.ts'
import { createDeadLetters } from '../../src/delivery/records/dead-letters.ts'
import { readSinkQueue } from '../../src/delivery/records/sink-queue.ts'
import type { SinkSettings } from '../../src/delivery/settings.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import { useRedis } from '../support/redis.ts'
import { delivered, jobs, rejected, rig, testSink, unavailable, until } from './rig.ts'

const server = useRedis()

/** What the lane knew of its queue at each alert. */
async function statesOf(
  settings: Partial<SinkSettings>,
  /** Before each is sent. */
  asked: (states: readonly QueueState[]) => Promise<unknown> = () => new Promise((go) => setTimeout(go, 20)),
) {
  const { queues, sender } = rig(server, ['hook'])
  const states: QueueState[] = []
  const sink = testSink('hook')
  const send = async (from: number, to: number) => {
    await queues.enqueue(jobs('hook', from, to))
    await until('all are sent', () => sink.sends.length >= to)
    await until('and recorded', async () => (await queues.queue('hook').getActiveCount()) === 0)
    return states.splice(0)
  }
  await queues.enqueue(jobs('hook', 1, 1))
  sender([sink], {
    settings,
    more: {
      async findContext(_job, { queue }) {
        states.push(queue)
        await asked(states)
        return undefined
      },
    },
  })
  await until('the first is sent', () => sink.sends.length >= 1)
  states.splice(0)
  return send
}

/** Each first attempt fails; `seen`: when the queue was empty, as was known at it. */
function failing(settings: Partial<SinkSettings>) {
  const { redis, prefix, queues, sender } = rig(server, ['hook'])
  const [sink, seen] = [testSink('hook'), new Map<number, number>()]
  sink.answer = ({ number }) => (number === 1 ? { ...unavailable, sinkFault: false } : delivered)
  sender([sink], {
    settings: { concurrency: 1, ...settings },
    more: {
      async findContext({ alert }, { queue, isFirst }) {
        if (isFirst) seen.set(alert.id, queue.emptyMs)
        return undefined
      },
    },
  })
  return { redis, prefix, queues, seen, sink }
}

const emptyMs = (states: readonly QueueState[]) => new Set(states.map((state) => state.emptyMs))

describe('what the status knows of a queue', () => {
  it('is since when an alert has been tried in vain, and nothing of one that was not tried yet', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => ({ ...unavailable, sinkFault: false }))
    const queue = queues.queue('hook')
    const read = () => readSinkQueue('hook', queues, 0)
    const counts = async (delayed: number) => (await read()).counts.delayed === delayed
    await queue.add('later', {} as never, { delay: 60_000, jobId: 'not-tried' })
    expect(await read()).toMatchObject({ counts: { delayed: 1 } })
    expect(await read()).not.toHaveProperty('oldestTriedAtMs')
    expect(await read()).not.toHaveProperty('lastRetry')
    await queues.enqueue(jobs('hook', 1, 1))
    sender([sink], { settings: { retry: { attempts: 9, initialDelayMs: 90_000, maxDelayMs: 90_000 } } })
    await until('the first was tried', () => counts(2))
    await queues.enqueue(jobs('hook', 2, 2))
    await until('the second was tried', () => counts(3))
    const first = (await queue.getDelayed()).map(({ timestamp }) => timestamp).toSorted()[1]
    expect((await read()).oldestTriedAtMs).toBe(first)
    // What it said last is known to whoever reads the queue, also where another process sends.
    expect((await read()).lastRetry).toEqual({ atMs: expect.any(Number), text: 'server_error: 503 busy' })
  })

  it('is nothing of an alert that an operator sends again and that waits for its digest', async () => {
    const { queues, sender } = rig(server, ['desk'])
    const sink = testSink('desk', () => rejected)
    const counts = async () => (await readSinkQueue('desk', queues, 0)).counts
    await queues.enqueue(jobs('desk', 1, 1))
    const before = sender([sink])
    await until('it is given up on', async () => (await counts()).failed === 1)
    await before.stop()
    const letters = createDeadLetters({ queues, targets: new Map(), clock: systemClock })
    await letters.retry({ ids: ['main.1'] })
    const plan = { kind: 'digest' as const, max: 60, everyMs: 86_400_000, timeZone: 'Asia/Tehran' }
    const batch: Sink['batch'] = { plan, split: (parcels) => [[...parcels]], send: async () => delivered }
    sender([{ ...sink, batch }], { settings: { expireAfterMs: 2 * 86_400_000 } })
    await until('it waits', async () => (await counts()).delayed === 1)
    expect(sink.sends).toHaveLength(1)
    expect((await readSinkQueue('desk', queues, 0)).oldestTriedAtMs).toBe(undefined)
  })
})

describe('what a lane knows of its queue', () => {
  it.each([
    ['one after the other', { concurrency: 1 }],
    ['two at a time, which end together', { concurrency: 2 }],
  ])('is when it was last empty, with alerts %s', async (_how, settings) => {
    const send = await statesOf(settings)
    const [first, second] = [await send(2, 6), await send(7, 11)]
    expect([first.length, emptyMs(first).size]).toEqual([5, 1])
    expect([second.length, emptyMs(second).size]).toEqual([5, 1])
    expect([...emptyMs(second)][0]).toBeGreaterThan([...emptyMs(first)][0] ?? Number.NaN)
  })

  it('is not that it was empty where the last alert was fetched in the same millisecond', async () => {
    const send = await statesOf({ concurrency: 2 })
    await send(2, 2)
    const nowMs = Date.now()
    vi.spyOn(Date, 'now').mockReturnValue(nowMs)
    onTestFinished(() => void vi.restoreAllMocks())
    // Two sends end together; which of the two answers comes first is up to the connections.
    for (let from = 3; from < 53; from += 5) {
      const states = await send(from, from + 4)
      expect([states.length, emptyMs(states).size]).toEqual([5, 1])
    }
  })

  it('is not that it was empty where the limit of the rate was reached', async () => {
    const send = await statesOf({ concurrency: 1, rateLimit: { max: 2, per: 100 } })
    const states = await send(2, 6)
    expect([states.length, emptyMs(states).size]).toEqual([5, 1])
  })

  it('is not that it was empty where an attempt failed and the limit of the rate was reached', async () => {
    const { queues, seen } = failing({ rateLimit: { max: 1, per: 100 } })
    await queues.enqueue(jobs('hook', 1, 3))
    await until('all are tried', () => seen.size === 3)
    expect(new Set(seen.values()).size).toBe(1)
  })

  it('is when it was last empty, also where attempts failed that are made again much later', async () => {
    const { queues, seen } = failing({ retry: { attempts: 9, initialDelayMs: 60_000, maxDelayMs: 60_000 } })
    let id = 0
    await until('one came into a queue that was seen to be empty', async () => {
      id += 1
      await queues.enqueue(jobs('hook', id, id))
      await until('it is tried', () => seen.has(id))
      return (seen.get(id) ?? Number.NaN) > (seen.get(2) ?? Number.NaN)
    })
  })

  it.each([
    ['that are sent', 0],
    ['whose first attempts fail', 1],
  ])('is not that it was empty where an operator paused the sink, with alerts %s', async (_how, failures) => {
    const { redis, prefix, queues, seen, sink } = failing({
      retry: { attempts: 9, initialDelayMs: 60_000, maxDelayMs: 60_000 },
    })
    const queue = openQueue(redis, prefix, 'hook')
    sink.answer = async ({ number, id }) => {
      if (id < 4) await queue.pause()
      return number <= failures ? { ...unavailable, sinkFault: false } : delivered
    }
    await queues.enqueue(jobs('hook', 1, 6))
    for (const tried of [1, 2, 3]) {
      let looks = 0
      await until('one is tried', () => seen.size === tried)
      await until('it has ended', async () => (await queue.getActiveCount()) === 0)
      await until('what the lane asks of Redis is answered', () => {
        looks += 1
        return looks > 3
      })
      await queue.resume()
    }
    await until('all are tried', () => seen.size === 6)
    expect(new Set(seen.values()).size).toBe(1)
  })

  it('is whether another alert has to wait', async () => {
    let together = 1
    const send = await statesOf({ concurrency: 2 }, (states) =>
      until('all are asked', () => states.length === together),
    )
    expect((await send(2, 2)).map(({ isFull }) => isFull)).toEqual([false])
    together = 2
    // The first may be asked before the second is fetched, or after.
    expect((await send(3, 4)).at(-1)?.isFull).toBe(true)
  })
})
