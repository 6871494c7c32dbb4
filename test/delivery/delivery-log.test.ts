import type { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { firedAlertOf } from '../../src/alert/job.ts'
import { collectQueues } from '../../src/delivery/queue/gauges.ts'
import { sinkActivity } from '../../src/delivery/records/activity.ts'
import { createDeadLetters } from '../../src/delivery/records/dead-letters.ts'
import { createDeliveryLog } from '../../src/delivery/records/delivery-log.ts'
import { fillFiredAlerts } from '../../src/delivery/records/fill-fired-alerts.ts'
import { readLetterGroups } from '../../src/delivery/records/letter-groups.ts'
import { forgetGone, openReader } from '../../src/delivery/records/search.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { createFiredAlerts } from '../../src/store/fired-alerts.ts'
import { firedAlertsKey } from '../../src/store/operator-keys.ts'
import { startRedis, useRedis } from '../support/redis.ts'
import {
  delivered,
  deliveryJob,
  endWaiting,
  jobs,
  rejected,
  rig,
  type Send,
  testSink,
  unavailable,
  until,
} from './rig.ts'

const server = useRedis()

const targets = new Map([
  ['hook', [undefined]],
  ['desk', ['a@example.com', 'b@example.com']],
])

describe('the story of an alert', () => {
  it('tells every sink and target, every attempt with its answer, and what comes next', async () => {
    const { queues, sender } = rig(server, ['hook', 'desk'])
    const log = createDeliveryLog({ queues, targets })
    const hook = testSink('hook', ({ number }) => (number === 1 ? unavailable : delivered))
    const answer = ({ target }: Send) => (target === 'a@example.com' ? rejected : unavailable)
    const desk = testSink('desk', answer, targets.get('desk'))
    sender([hook])
    sender([desk], { settings: { retry: { attempts: 3, initialDelayMs: 600_000, maxDelayMs: 600_000 } } })
    const emails = ['a@example.com', 'b@example.com'].map((target) => deliveryJob('desk', 7, { target }))
    await queues.enqueue([deliveryJob('hook', 7), ...emails])
    const alert = { source: 'main', id: 7 }
    await until('all tried', async () => {
      const states = (await log.historiesOf(alert)).map(({ state }) => state)
      return states.join() === 'completed,failed,delayed'
    })
    const [sent, dead, later] = await log.historiesOf(alert)
    expect(sent).toMatchObject({
      sink: 'hook',
      alert: { source: 'main', id: 7, headline: 'alert 7' },
      delivered: { result: 'delivered', number: 2, status: 200 },
      history: [
        { number: 1, result: 'retry', reason: 'server_error', status: 503, text: 'busy' },
        { number: 2, result: 'delivered' },
      ],
    })
    expect(sent).not.toHaveProperty('failure')
    expect(dead).toMatchObject({ target: 'a@example.com', failure: 'rejected: 400 no' })
    expect(dead?.history).toMatchObject([{ result: 'dead', reason: 'rejected', status: 400 }])
    expect(later).toMatchObject({ target: 'b@example.com', attempts: 1 })
    const inMs = (later?.nextAttemptAtMs ?? 0) - Date.now()
    expect(inMs).toBeGreaterThan(400_000)
    expect(Math.abs((later?.history[0]?.nextAtMs ?? 0) - (later?.nextAttemptAtMs ?? 0))).toBeLessThan(1_000)
  })

  it('says why an attempt failed also where that counts as none: the sink asked to wait, or was only probed', async () => {
    const { queues, sender } = rig(server, ['hook', 'desk'])
    const log = createDeliveryLog({ queues, targets })
    const askedToWait: Outcome = {
      ...unavailable,
      reason: 'rate_limited',
      sinkFault: false,
      afterMs: 600_000,
    }
    const retry = { attempts: 9, initialDelayMs: 600_000, maxDelayMs: 600_000 }
    const desk = testSink('desk', () => unavailable, targets.get('desk'))
    sender([testSink('hook', () => askedToWait)], { settings: { retry } })
    sender([desk], { settings: { retry }, tuning: { faultsToOpen: 2, probePauseMsMax: 50 } })
    const emails = [7, 8].map((id) => deliveryJob('desk', id, { target: 'b@example.com' }))
    await queues.enqueue([deliveryJob('hook', 7), ...emails])
    const failureOf = async (sink: string) =>
      (await log.list({ limit: 9, sink })).map(({ failure }) => failure)
    await until('it is put off', async () => (await queues.queue('hook').getDelayedCount()) === 1)
    expect(await log.list({ limit: 1, sink: 'hook' })).toMatchObject([
      { state: 'delayed', attempts: 0, failure: 'rate_limited: 503 busy' },
    ])
    await until('a rest', async () => (await failureOf('desk')).every((failure) => failure !== undefined))
    desk.answer = () => ({ ...unavailable, answer: { status: 502, text: 'gone' } })
    await until('a probe', async () => (await failureOf('desk')).includes('server_error: 502 gone'))
  })

  it('is empty for an alert that no sink was given', async () => {
    const { queues } = rig(server, ['hook'])
    expect(await createDeliveryLog({ queues, targets }).historiesOf({ source: 'main', id: 1 })).toEqual([])
  })

  it('tells only the last attempts of very many', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', ({ number }) => (number <= 130 ? unavailable : delivered))
    sender([sink], { settings: { retry: { attempts: 200, initialDelayMs: 1, maxDelayMs: 1 } } })
    await queues.enqueue(jobs('hook', 1, 1))
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    const [part] = await createDeliveryLog({ queues, targets }).historiesOf({ source: 'main', id: 1 })
    expect(part?.history.map(({ number }) => number)).toEqual(Array.from({ length: 101 }, (_, i) => i + 31))
  })
})

describe('the list of deliveries', () => {
  it('gives the latest first, by sink and by state, up to the limit', async () => {
    const { queues, sender } = rig(server, ['hook', 'desk'])
    const log = createDeliveryLog({ queues, targets })
    sender([testSink('hook', ({ id }) => (id > 3 ? rejected : delivered))], { settings: { concurrency: 1 } })
    await queues.enqueue([...jobs('hook', 1, 5), ...jobs('desk', 1, 2)])
    await until('done', async () => (await queues.queue('hook').getFailedCount()) === 2)
    const all = await log.list({ limit: 100 })
    expect(all).toHaveLength(7)
    const times = all.map(({ changedAtMs }) => changedAtMs)
    expect(times).toEqual(times.toSorted((a, b) => b - a))
    const dead = await log.list({ limit: 100, state: 'failed' })
    expect(dead.map(({ jobId }) => jobId)).toEqual(['main.5', 'main.4'])
    expect(await log.list({ limit: 1, sink: 'desk' })).toMatchObject([{ sink: 'desk', state: 'waiting' }])
    expect(await log.list({ limit: 2, sink: 'hook', state: 'completed' })).toHaveLength(2)
  })

  it('removes from the fired alerts those whose records are gone', async () => {
    const { queues, prefix } = rig(server, ['hook', 'desk'])
    await queues.enqueue([...jobs('hook', 1, 40), ...jobs('desk', 39, 42)])
    const fired = createFiredAlerts({ redis: queues.redis, prefix })
    const everything = { fromMs: -Infinity, throughMs: Infinity }
    const names = async () => (await fired.before(everything, undefined, 100)).map(({ name }) => name)
    expect(await names()).toHaveLength(42)
    // As after an update from a version that kept no order.
    await queues.redis.del(firedAlertsKey(prefix))
    await fillFiredAlerts(fired, { queues, orphans: async () => [] }, AbortSignal.timeout(5_000))
    expect(await names()).toHaveLength(42)
    await queues.queue('hook').obliterate()
    const withheldOf = async (asked: readonly string[]) =>
      asked.map((name) => (name === 'main.7' ? ({} as never) : undefined))
    await forgetGone(fired, {
      queues,
      targets,
      orphans: async () => [],
      withheldOf,
      alertOf: () => undefined,
    })
    expect((await names()).sort()).toEqual(['main.39', 'main.40', 'main.41', 'main.42', 'main.7'])
  })

  it('removes them however many they are', async () => {
    const { queues, prefix } = rig(server, [])
    const fired = createFiredAlerts({ redis: server.client(), prefix })
    await fired.add(Array.from({ length: 20_500 }, (_, at) => ({ name: `main.${at}`, atMs: at })))
    const withheldOf = async (asked: readonly string[]) =>
      asked.map((name) => (name === 'main.7' ? ({} as never) : undefined))
    const options = { queues, targets: new Map(), orphans: async () => [], withheldOf }
    await forgetGone(fired, { ...options, alertOf: () => undefined })
    expect(await fired.some(1_000)).toEqual(['main.7'])
  })

  it('adds to the fired alerts also those behind many that cannot be read', async () => {
    const { queues, prefix } = rig(server, ['hook'])
    await queues.enqueue(jobs('hook', 1, 130))
    for (let id = 1; id <= 120; id += 1)
      await queues.redis.hset(queues.queue('hook').toKey(`main.${id}`), 'data', '{}')
    await queues.redis.del(firedAlertsKey(prefix))
    const fired = createFiredAlerts({ redis: queues.redis, prefix })
    await fillFiredAlerts(fired, { queues, orphans: async () => [] }, AbortSignal.timeout(5_000))
    expect(await fired.some(200)).toHaveLength(10)
  })

  it('reads a part of what changed last, or of an order, at a time', async () => {
    const { queues, redis } = rig(server, ['hook'])
    await queues.enqueue(jobs('hook', 1, 60))
    const queue = queues.queue('hook')
    const read = queue.getJob.bind(queue)
    let [running, most] = [0, 0]
    queue.getJob = async (id) => {
      running += 1
      most = Math.max(most, running)
      return read(id).finally(() => {
        running -= 1
      })
    }
    expect(await createDeliveryLog({ queues, targets }).list({ limit: 60 })).toHaveLength(60)
    await endWaiting({ queues, redis }, 'hook')
    const letters = createDeadLetters({ queues, targets, clock: systemClock })
    expect(await letters.retry({})).toMatchObject({ handled: 60 })
    expect(most).toBe(25)
  })

  it('reads a part of the alerts at a time, because each may be large, and all of them in their order', async () => {
    const { queues } = rig(server, ['hook'])
    const stored = jobs('hook', 1, 60)
    await queues.enqueue(stored)
    const queue = queues.anyQueue('hook')
    const read = queue.getJob.bind(queue)
    let reads = 0
    queue.getJob = (id) => {
      reads += 1
      return read(id)
    }
    const options = { queues, targets, orphans: async () => [], withheldOf: async () => [] }
    const reader = await openReader({ ...options, alertOf: () => undefined })
    const found: number[] = []
    for await (const part of reader.read(stored.map(firedAlertOf), {})) {
      found.push(...part.flatMap(({ jobs }) => jobs.map(({ alert }) => alert?.id ?? 0)))
      expect(reads).toBe(found.length)
      expect(part.length).toBeLessThanOrEqual(25)
    }
    expect(found).toEqual(stored.map(({ alert }) => alert.id))
  })

  it('tells how each queue stands', async () => {
    const { queues, sender } = rig(server, ['hook', 'desk'])
    const log = createDeliveryLog({ queues, targets })
    sender([testSink('hook'), testSink('desk')])
    await queues.queue('desk').pause()
    await queues.enqueue([...jobs('hook', 1, 2), ...jobs('desk', 1, 2)])
    await until('sent', async () => (await queues.queue('hook').getCompletedCount()) === 2)
    const [hook, desk] = await log.sinks()
    expect(hook).toMatchObject({ sink: 'hook', paused: false, counts: { completed: 2, waiting: 0 } })
    expect(hook?.lastDeliveredAtMs).toBeGreaterThan(Date.now() - 60_000)
    expect(desk).toMatchObject({ sink: 'desk', paused: true, counts: { completed: 0, waiting: 2 } })
  })

  it('costs Redis one command a sink, and the bars of its day another', async () => {
    const { queues, sender } = rig(server, ['hook', 'desk'])
    await queues.queue('desk').pause()
    const sending = sender([
      testSink('hook', ({ id }) => (id === 2 ? rejected : delivered)),
      testSink('desk'),
    ])
    await queues.enqueue([...jobs('hook', 1, 2), ...jobs('desk', 1, 1)])
    await until('sent', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    await until('dead', async () => (await queues.queue('hook').getFailedCount()) === 1)
    await sending.stop()
    const asked: string[] = []
    const redis = queues.redis as Redis
    const send = redis.sendCommand.bind(redis)
    redis.sendCommand = (...given) => {
      asked.push(given[0].name)
      return send(...given)
    }
    const [hook, desk] = await createDeliveryLog({ queues, targets }).sinks(Date.now() - 60_000)
    expect(hook).toMatchObject({
      ...{ deliveredSince: 1, endedOfLate: 2, counts: { completed: 1, failed: 1 } },
      lastDeadReason: 'rejected: 400 no',
    })
    expect(desk).toMatchObject({ paused: true, counts: { waiting: 1 }, endedOfLate: 0 })
    // The second asks how many ended since what waits was queued.
    expect(asked).toEqual(['eval', 'eval', 'eval'])
    const stored = { read: async () => [] }
    const [ofHook] = await sinkActivity(queues, stored, Date.now())
    expect(ofHook?.hours.at(-1)).toEqual({ delivered: 1, dead: 1 })
    expect(asked).toHaveLength(5)
    // Each in its hour, of a day.
    const hoursAt = async (laterMs: number) =>
      (await sinkActivity(queues, stored, Date.now() + laterMs))[0]?.hours.map(Object.values).map(String)
    const none = Array(24).fill('0,0')
    expect(await hoursAt(90 * 60_000)).toEqual(none.with(22, '1,1'))
    expect(await hoursAt(23.5 * 3_600_000)).toEqual(none.with(0, '1,1'))
    expect(await hoursAt(24.5 * 3_600_000)).toEqual(none)
  })

  it('tells how many ended since what waits was queued, not those before it', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const log = createDeliveryLog({ queues, targets })
    const held = Promise.withResolvers<void>()
    const sink = testSink('hook', async ({ id }) => {
      if (id === 3) await held.promise
      return delivered
    })
    sender([sink], { settings: { concurrency: 1 } })
    await queues.enqueue(jobs('hook', 1, 2))
    const ended = (count: number) => async () =>
      (await queues.queue('hook').getCompletedCount()) === count && (await log.sinks())[0]
    expect(await until('sent', ended(2))).toMatchObject({ endedOfLate: 2 })
    await queues.enqueue(jobs('hook', 3, 5))
    await until('sending', () => sink.sends.length === 3)
    expect((await log.sinks())[0]).toMatchObject({ counts: { waiting: 2 }, endedOfLate: 0 })
    held.resolve()
  })
})

it('dead letters are grouped by sink and reason: how many, the first, the last, and what the newest was answered', async () => {
  const { queues, sender } = rig(server, ['hook', 'desk'])
  const gone: Outcome = { kind: 'dead', reason: 'gone', sinkFault: false, answer: { text: 'no such hook' } }
  sender([testSink('hook', ({ id }) => (id === 3 ? gone : rejected)), testSink('desk', () => rejected)])
  await queues.enqueue([...jobs('hook', 1, 4), ...jobs('desk', 1, 1)])
  const ended = async () =>
    await Promise.all(['hook', 'desk'].map((sink) => queues.queue(sink).getFailedCount()))
  await until('dead', async () => (await ended()).join() === '4,1')
  const redis = queues.redis as Redis
  for (const [sink, id, atMs] of [
    ['hook', 1, 1_000],
    ['hook', 2, 3_000],
    ['hook', 3, 4_000],
    ['hook', 4, 2_000],
    ['desk', 1, 5_000],
  ] as const) {
    const queue = queues.queue(sink)
    await redis.zadd(queue.toKey('failed'), atMs, `main.${id}`)
    await redis.hset(queue.toKey(`main.${id}`), 'finishedOn', atMs)
  }
  await redis.hset(queues.queue('hook').toKey('main.2'), 'failedReason', 'rejected: 400 the newest')
  const { groups, looked, total } = await readLetterGroups(queues)
  expect([looked, total]).toEqual([5, 5])
  expect(groups.map(({ sink, reason, count }) => [sink, reason, count])).toEqual([
    ['hook', 'rejected', 3],
    ['hook', 'gone', 1],
    ['desk', 'rejected', 1],
  ])
  expect(groups[0]).toMatchObject({
    ...{ firstAtMs: 1_000, lastAtMs: 3_000, sample: 'rejected: 400 the newest', sampleJobId: 'main.2' },
  })
})

describe('the gauges of the queues', () => {
  it('tell what stands where', async () => {
    const { queues, metrics, sender } = rig(server, ['hook', 'desk'])
    sender([testSink('hook', () => rejected), testSink('desk')])
    await queues.queue('desk').pause()
    await queues.enqueue([...jobs('hook', 1, 2), ...jobs('desk', 1, 3)])
    await until('dead', async () => (await queues.queue('hook').getFailedCount()) === 2)
    expect(await collectQueues({ queues, metrics })).toBe(true)
    expect(await queues.waiting()).toBe(3)
    const text = await metrics.registry.metrics()
    expect(text).toContain('alert_bridge_dead_letters{sink="hook"} 2')
    expect(text).toContain('alert_bridge_queue_jobs{sink="desk",state="paused"} 3')
    expect(text).toContain('alert_bridge_queue_jobs{sink="desk",state="waiting"} 0')
  })

  it('keep nobody waiting while Redis is away or frozen, and say then only what is paused', async () => {
    const own = await startRedis()
    try {
      const { queues, metrics } = rig(own, ['hook'])
      await queues.queue('hook').pause()
      await collectQueues({ queues, metrics })
      expect(await metrics.registry.metrics()).toContain('alert_bridge_dead_letters{')
      own.freeze()
      const startMs = Date.now()
      expect(await collectQueues({ queues, metrics, timeoutMs: 300 })).toBe(false)
      // A count that nobody can tell now is no count: also not the last one, nor the 0 of the start.
      expect(await metrics.registry.metrics()).not.toMatch(/alert_bridge_(dead_letters|queue_jobs)\{/)
      // A pause is known: nobody can end it meanwhile, and no alert of a sink that fails may come of the outage.
      expect(await metrics.registry.metrics()).toContain('alert_bridge_sink_paused{sink="hook"} 1')
      own.thaw()
      await own.kill9()
      expect(await collectQueues({ queues, metrics, timeoutMs: 300 })).toBe(false)
      expect(Date.now() - startMs).toBeLessThan(2_000)
    } finally {
      await own.dispose()
    }
  })
})
