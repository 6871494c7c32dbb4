import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, describe, expect, it } from 'vitest'
import type { BreakerChange } from '../../src/delivery/sender.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { type RedisServer, startRedis, useRedis } from '../support/redis.ts'
import {
  delivered,
  deliveryJob,
  hang,
  jobs,
  quickSettings,
  rig,
  type TestSink,
  testSink,
  unavailable,
  until,
} from './rig.ts'

/** A sink whose config changed: its new lane works while the one before still waits for its last sends. */

const server = useRedis()
const own: RedisServer[] = []
afterEach(async () => {
  for (const each of own.splice(0)) await each.dispose()
})

const only = (sink: TestSink, settings: Partial<typeof quickSettings> = {}) =>
  new Map([[sink.name, { sink, settings: { ...quickSettings, ...settings } }]])

/** A sink that answers when it is let. */
function gated(name: string) {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  return { sink: testSink(name, () => promise), answer: resolve }
}

describe('a sink that is swapped', () => {
  it('sends on by its new config at once, while the send of before is waited for and recorded', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const before = gated('hook')
    const after = testSink('hook')
    const running = sender([before.sink])
    await queues.enqueue(jobs('hook', 1, 1))
    await until('on its way', () => before.sink.sends.length === 1)
    let settled = false
    const swapped = running.swap(only(after)).then(() => {
      settled = true
    })
    await queues.enqueue(jobs('hook', 2, 3))
    await until('sent by the new config', () => after.sends.length === 2)
    expect(settled).toBe(false)
    before.answer(delivered)
    await swapped
    expect(await queues.queue('hook').getCompletedCount()).toBe(3)
    expect([before.sink.sends.length, after.sends.length]).toEqual([1, 2])
  })

  it('sends nothing again that the lane of before is sending, or has sent, while Redis was away for longer than a lock', async () => {
    const redis = await startRedis({ aof: 'always' })
    own.push(redis)
    const { queues, sender } = rig(redis, ['hook'])
    const before = gated('hook')
    const after = testSink('hook')
    const running = sender([before.sink], {
      settings: { timeoutMs: 20_000 },
      tuning: { lockMs: 500, stalledIntervalMs: 200 },
    })
    await queues.enqueue(jobs('hook', 1, 1))
    await until('on its way', () => before.sink.sends.length === 1)
    await redis.kill9()
    const swapped = running.swap(only(after))
    const startMs = performance.now()
    await until('the lock has run out', () => performance.now() - startMs > 1_000)
    await redis.start()
    // The new lane takes the job while the send of before still runs.
    await until('the job is taken again', async () => {
      const job = await queues
        .queue('hook')
        .getJob('main.1')
        .catch(() => undefined)
      return (job?.attemptsStarted ?? 0) > 1
    })
    before.answer(delivered)
    await swapped
    await until('recorded', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    expect([before.sink.sends.length, after.sends.length]).toEqual([1, 0])
  }, 30_000)

  it('does not break off what the lane of before is sending, when Redis comes back without its last second and the new lane has the jobs', async () => {
    const redis = await startRedis()
    own.push(redis)
    const { queues, sender, lines } = rig(redis, ['hook'])
    const queue = queues.queue('hook')
    await queues.enqueue(jobs('hook', 1, 3))
    await redis.client().save()
    const answer = Promise.withResolvers<Outcome>()
    const before = testSink('hook', (send) => Promise.race([hang(send), answer.promise]))
    const after = testSink('hook')
    const running = sender([before], {
      // All that it may take: none of them is handed out to this lane again.
      settings: { timeoutMs: 20_000, concurrency: 3 },
      tuning: { lockMs: 1_000, stalledIntervalMs: 200 },
    })
    await until('on their way', () => before.sends.length === 3)
    await redis.kill9()
    const swapped = running.swap(only(after))
    await redis.start()
    const taken = () => queue.getActiveCount().catch(() => 0)
    await until('the new lane has them', async () => (await taken()) === 3)
    const from = lines.length
    await until('the lane of before asks for their locks, or has given up', () => {
      const refused = lines.slice(from).filter(({ reason }) => /could not renew/.test(String(reason)))
      // Twice: what the first answer led to is over.
      return refused.length >= 6 || before.sends.every(({ signal }) => signal.aborted)
    })
    answer.resolve(delivered)
    await swapped
    await until('recorded', async () => (await queue.getCompletedCount()) === 3)
    expect([before.sends.length, after.sends.length]).toEqual([3, 0])
  }, 30_000)

  it('is gone from memory once its last send was over, however often the config changes', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const { queues, sender } = rig(server, ['hook'])
    const running = sender([testSink('hook')])
    const swapTo = async (id: number) => {
      const sink = testSink('hook')
      const batch = {
        plan: { kind: 'burst', max: 20, after: 1, windowMs: 60_000 } as const,
        split: <T>(parcels: readonly T[]) => [[...parcels]],
        send: async () => delivered,
      }
      await running.swap(only({ ...sink, batch }, { rateLimit: { max: 1_000, per: 1_000 } }))
      await queues.enqueue(jobs('hook', id, id))
      await until('sent by this config', () => sink.sends.length === 1)
      return new WeakRef(sink.sends)
    }
    const swapped: WeakRef<object>[] = []
    for (let id = 1; id <= 5; id++) swapped.push(await swapTo(id))
    await until('only the last one or two are left', () => {
      collect()
      return swapped.slice(0, 3).every((each) => each.deref() === undefined)
    })
  })

  it('goes on with an open breaker: a probe soon finds that the new config works, and everything goes', async () => {
    const { queues, sender, metrics } = rig(server, ['hook'])
    const news: BreakerChange['state'][] = []
    const retry = { attempts: 5, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000 }
    const broken = testSink('hook', () => unavailable)
    const running = sender([broken], {
      settings: { retry },
      tuning: { faultsToOpen: 3, probePauseMsMax: 100 },
      more: { onBreaker: ({ state }) => news.push(state) },
    })
    await queues.enqueue(jobs('hook', 1, 6))
    await until('open', () => running.states()[0]?.breaker === 'open')
    const { openSinceMs } = running.states()[0] ?? {}
    await until('all wait for their schedule', () => running.states()[0]?.sending === 0)
    const mended = testSink('hook')
    void running.swap(only(mended, { retry }))
    expect(running.states()).toMatchObject([{ breaker: 'open', openSinceMs }])
    await until('all are sent', async () => (await queues.queue('hook').getCompletedCount()) === 6)
    expect(new Set(mended.sends.map(({ id }) => id)).size).toBe(6)
    expect(news).toEqual(['open', 'closed'])
    expect((await metrics.circuitOpen.get()).values[0]?.value).toBe(0)
  })

  it('goes on with an open breaker also where every alert waits for its own schedule, in hours', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const retry = { attempts: 5, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000 }
    const running = sender([testSink('hook', () => unavailable)], {
      settings: { retry },
      tuning: { faultsToOpen: 3, probePauseMsMax: 2_000 },
    })
    await queues.enqueue(jobs('hook', 1, 3))
    const queue = queues.queue('hook')
    await until('all wait for their schedule', async () => (await queue.getDelayedCount()) === 3)
    expect(running.states()[0]?.breaker).toBe('open')
    void running.swap(only(testSink('hook'), { retry }))
    await until('all are sent', async () => (await queue.getCompletedCount()) === 3, 10_000)
  })

  it('is not held, nor told of as down, for what the sends of before still meet', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const news: BreakerChange['state'][] = []
    const before = gated('hook')
    const running = sender([before.sink], {
      tuning: { faultsToOpen: 2 },
      settings: { retry: { attempts: 5, initialDelayMs: 1_000, maxDelayMs: 60_000 } },
      more: { onBreaker: ({ state }) => news.push(state) },
    })
    await queues.enqueue(jobs('hook', 1, 4))
    await until('on their way', () => before.sink.sends.length === 4)
    const after = testSink('hook')
    const swapped = running.swap(only(after))
    before.answer(unavailable)
    await swapped
    const askedMs = performance.now()
    await queues.enqueue(jobs('hook', 5, 5))
    await until('sent', () => after.sends.some(({ id }) => id === 5))
    expect(performance.now() - askedMs).toBeLessThan(1_000)
    await until('all are sent', async () => (await queues.queue('hook').getCompletedCount()) === 5)
    expect(news).toEqual([])
  })

  it('keeps its new rate limit, however long the window of before would have lasted; a hold lasts', async () => {
    const { queues, sender, redis } = rig(server, ['hook'])
    const queue = queues.queue('hook')
    const before = testSink('hook')
    const running = sender([before], { settings: { rateLimit: { max: 2, per: 3_600_000 } } })
    await queues.enqueue(jobs('hook', 1, 10))
    await until('as many as it may', () => before.sends.length === 2)
    const after = testSink('hook')
    await running.swap(only(after, { rateLimit: { max: 4, per: 100 } }))
    await until('all are sent', () => after.sends.length === 8)
    await running.swap(only(testSink('hook'), { rateLimit: { max: 1_000, per: 60_000 } }))
    await queue.rateLimit(3_600_000)
    const held = testSink('hook')
    await running.swap(only(held, { rateLimit: { max: 4, per: 100 } }))
    await queues.enqueue(jobs('hook', 11, 11))
    await running.swap(new Map())
    expect(await redis.pttl(queue.toKey('limiter'))).toBeGreaterThan(3_000_000)
    expect(held.sends).toEqual([])
  })

  it.each([
    ['a single target instead of recipients', ['a', 'b'], [undefined], [undefined]],
    ['recipients instead of a single target', [undefined], ['a', 'b'], ['a', 'b']],
    ['another recipient', ['a', 'b'], ['b', 'c'], ['a', 'b']],
  ])('gets what waits for it once for each target when it has %s', async (_what, from, to, expected) => {
    const { queues, sender } = rig(server, ['desk'])
    const queue = queues.queue('desk')
    await queues.enqueue(from.map((target) => deliveryJob('desk', 1, target === undefined ? {} : { target })))
    const sink = testSink('desk', () => delivered, to)
    sender([sink])
    await until('all are sent', async () => (await queue.getCompletedCount()) === expected.length)
    expect(await queue.getJobCounts('wait', 'active', 'delayed')).toEqual({ wait: 0, active: 0, delayed: 0 })
    expect(sink.sends.map(({ target }) => target).sort()).toEqual(expected)
  })

  it('that comes back before its last send is over sends that once as well', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const before = gated('hook')
    const running = sender([before.sink])
    await queues.enqueue(jobs('hook', 1, 1))
    await until('on its way', () => before.sink.sends.length === 1)
    const gone = running.swap(new Map())
    expect(running.states()).toEqual([])
    await queues.enqueue(jobs('hook', 2, 2))
    const again = testSink('hook')
    const back = running.swap(only(again))
    await until('the next is sent', () => again.sends.length === 1)
    before.answer(delivered)
    await Promise.all([gone, back])
    await until('both are recorded', async () => (await queues.queue('hook').getCompletedCount()) === 2)
    expect(again.sends.map(({ id }) => id)).toEqual([2])
  })
})

describe('a stop', () => {
  it('waits for the last send of a sink that was swapped before, or has left the config, too', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const before = gated('hook')
    const running = sender([before.sink])
    await queues.enqueue(jobs('hook', 1, 1))
    await until('on its way', () => before.sink.sends.length === 1)
    const swapped = running.swap(new Map())
    const stopped = running.stop()
    before.answer(delivered)
    await Promise.all([swapped, stopped])
    expect(await queues.queue('hook').getCompletedCount()).toBe(1)
  })

  it('waits for no message that would have to wait for its turn, or follow another: those go back as they came', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    const messages: number[][] = []
    const sink = {
      ...testSink('ops', ({ id }) => {
        messages.push([id])
        return promise
      }),
      batch: {
        plan: { kind: 'burst', max: 20, after: 1, windowMs: 60_000 } as const,
        split: <T>(parcels: readonly T[]) => [[...parcels]],
        send: async () => promise,
      },
    }
    // One message in ten minutes: the first takes the turn, the second waits for its own.
    const running = sender([sink], { settings: { rateLimit: { max: 1, per: 600_000 } } })
    await queues.enqueue(jobs('ops', 1, 4))
    await until('the first is on its way', () => messages.length === 1)
    await until('all are in hand', async () => (await queues.queue('ops').getActiveCount()) === 4)
    const stopped = running.stop()
    resolve(delivered)
    const askedMs = performance.now()
    await stopped
    expect(performance.now() - askedMs).toBeLessThan(2_000)
    expect(messages).toEqual([[1]])
    expect(await queues.queue('ops').getJobCounts('wait', 'completed', 'delayed', 'active')).toEqual({
      ...{ wait: 3, completed: 1, delayed: 0, active: 0 },
    })
    expect((await queues.queue('ops').getJob('main.2'))?.attemptsMade).toBe(0)
  })
})
