import { describe, expect, it } from 'vitest'
import { receiverFingerprint } from '../../src/app/sinks.ts'
import type { SinkEntry } from '../../src/delivery/settings.ts'
import { Secret } from '../../src/lib/secret.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import type { BatchPlan } from '../../src/sinks/sink.ts'
import { delayOriginsKey } from '../../src/store/keys.ts'
import { createDelayOriginStore } from '../../src/store/sink/delay-origins.ts'
import { useRedis } from '../support/redis.ts'
import {
  delivered,
  jobs,
  quickSettings,
  type Rig,
  rig,
  type TestSink,
  testSink,
  unavailable,
  until,
} from './rig.ts'

/** Alerts that one config has put off, and that go by another one now. */

const server = useRedis()
const day = 86_400_000
const settings = { ...quickSettings, expireAfterMs: 2 * day }
const quick = { watchEveryMs: 100, othersEveryMs: 200 }
const hourly: Outcome = { ...unavailable, reason: 'rate_limited', sinkFault: false, afterMs: 3_600_000 }

/** A sink that takes what came since the last mark as one mail. */
function digesting(everyMs: number, answer?: TestSink['answer']) {
  const sink = testSink('ops', answer)
  const plan: BatchPlan = { kind: 'digest', max: 60, everyMs, timeZone: 'Asia/Tehran' }
  const batch = {
    plan,
    split: <P>(parcels: readonly P[]): P[][] => [[...parcels]],
    send: async (
      parcels: readonly { alert: { id: number } }[],
      attempt: { number: number; signal: AbortSignal },
    ) => {
      for (const { alert } of parcels) sink.sends.push({ ...attempt, id: alert.id, atMs: Date.now() })
      return delivered
    },
  }
  return Object.assign(sink, { batch })
}

function entries(sink: TestSink, more: Partial<SinkEntry> = {}): ReadonlyMap<string, SinkEntry> {
  return new Map([[sink.name, { sink, settings, ...more }]])
}

async function putOff({ queues }: Rig, count: number): Promise<void> {
  await until(`${count} are put off`, async () => (await queues.queue('ops').getDelayedCount()) === count)
}

const completed = ({ queues }: Rig) => queues.queue('ops').getCompletedCount()

describe('alerts that wait for the mark of a digest', () => {
  it('go at once when the digest leaves the config, by a reload', async () => {
    const own = rig(server, ['ops'])
    const running = own.sender([digesting(day)], { settings, tuning: quick })
    await own.queues.enqueue(jobs('ops', 1, 250))
    await putOff(own, 250)
    const single = testSink('ops')
    void running.swap(entries(single))
    await until('all are sent', async () => (await completed(own)) === 250)
    expect(new Set(single.sends.map(({ id }) => id)).size).toBe(250)
    expect(single.sends.every(({ number }) => number === 1)).toBe(true)
  })

  it('go at the next mark when it becomes shorter, by a restart', async () => {
    const own = rig(server, ['ops'])
    const before = own.sender([digesting(day)], { settings })
    await own.queues.enqueue(jobs('ops', 1, 3))
    await putOff(own, 3)
    await before.stop(500)
    const short = digesting(1_000)
    own.sender([short])
    await until('all are sent', async () => (await completed(own)) === 3)
    expect(short.sends.map(({ id }) => id).sort()).toEqual([1, 2, 3])
  })

  it('go also when they were put off by a version that did not write down why', async () => {
    const own = rig(server, ['ops'])
    const before = own.sender([digesting(day)], { settings })
    await own.queues.enqueue(jobs('ops', 1, 3))
    await putOff(own, 3)
    const origins = delayOriginsKey(own.prefix, 'ops')
    await until('its first look is over', async () => (await own.redis.hexists(origins, 'receiver')) === 1)
    await before.stop(500)
    await own.redis.del(origins)
    own.sender([testSink('ops')])
    await until('all are sent', async () => (await completed(own)) === 3)
  })

  it('go while a replica of the config before still puts them off', async () => {
    const own = rig(server, ['ops'])
    const old = own.sender([digesting(day)], { settings, tuning: quick })
    const single = testSink('ops')
    own.sender([single], { tuning: quick })
    for (const from of [1, 21, 41]) await own.queues.enqueue(jobs('ops', from, from + 19))
    await until('all are sent', async () => (await completed(own)) === 60)
    expect([single.sends.length, await own.queues.queue('ops').getDelayedCount()]).toEqual([60, 0])
    await old.stop(500)
  })

  it('wait for the mark of now when the digest is new or longer', async () => {
    const own = rig(server, ['ops'])
    const running = own.sender([digesting(60_000)], { settings, tuning: quick })
    await own.queues.enqueue(jobs('ops', 1, 3))
    await putOff(own, 3)
    const daily = digesting(day)
    await running.swap(entries(daily))
    await until('the mark of before is forgotten', async () => {
      const known = await own.redis.hkeys(delayOriginsKey(own.prefix, 'ops'))
      const plans = known.filter((field) => field.startsWith('plan:'))
      return plans.length === 1 && plans[0]?.includes(String(day))
    })
    const single = testSink('ops')
    expect([daily.sends, await own.queues.queue('ops').getDelayedCount()]).toEqual([[], 3])
    void running.swap(entries(single))
    await until('all are sent', async () => (await completed(own)) === 3)
  })

  it('keep the schedule of an attempt that failed', async () => {
    const own = rig(server, ['ops'])
    const retry = { attempts: 4, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000 }
    const failing = testSink('ops', ({ id }) => (id === 1 ? unavailable : delivered))
    const running = own.sender([failing], { settings: { retry } })
    await own.queues.enqueue(jobs('ops', 1, 1))
    await putOff(own, 1)
    const same = { settings: { ...settings, retry } }
    await running.swap(entries(digesting(day), same))
    await own.queues.enqueue(jobs('ops', 2, 3))
    await putOff(own, 3)
    const single = testSink('ops')
    void running.swap(entries(single, same))
    await until('the others are sent', async () => (await completed(own)) === 2)
    await putOff(own, 1)
    expect(single.sends.map(({ id }) => id).sort()).toEqual([2, 3])
  })
})

describe('alerts that failed under a longer retry', () => {
  const hourly = { attempts: 3, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000 }
  it.each(['a reload', 'a restart'])('go by a shorter one after %s, and each attempt counts', async (how) => {
    const own = rig(server, ['ops'])
    const failing = testSink('ops', () => ({ ...unavailable, sinkFault: false }))
    const before = own.sender([failing], { settings: { retry: hourly }, tuning: quick })
    await own.queues.enqueue(jobs('ops', 1, 3))
    await putOff(own, 3)
    const shorter = { ...settings, retry: { attempts: 3, initialDelayMs: 50, maxDelayMs: 50 } }
    if (how === 'a reload') void before.swap(entries(failing, { settings: shorter }))
    else {
      await before.stop(500)
      own.sender([failing], { settings: shorter })
    }
    await until('all are given up on', async () => (await own.queues.queue('ops').getFailedCount()) === 3)
    expect(failing.sends).toHaveLength(9)
  })

  it('keep the schedule of now where that is longer', async () => {
    const own = rig(server, ['ops'])
    const failing = testSink('ops', () => ({ ...unavailable, sinkFault: false }))
    const before = own.sender([failing], { settings: { retry: hourly }, tuning: quick })
    await own.queues.enqueue(jobs('ops', 1, 1))
    await putOff(own, 1)
    const longer = { ...hourly, initialDelayMs: 3_500_000, maxDelayMs: 28_800_000 }
    await before.swap(entries(failing, { settings: { ...settings, retry: longer } }))
    const origins = createDelayOriginStore(own.redis, own.prefix)
    await until(
      'the delays were looked at',
      async () => (await origins.read('ops')).retry === '3500000 28800000',
    )
    expect(failing.sends).toHaveLength(1)
    await putOff(own, 1)
  })
})

describe('a sink that asked for an hour of patience', () => {
  async function asked(own: Rig) {
    const busy = testSink('ops', () => hourly)
    const running = own.sender([], { tuning: quick })
    void running.swap(entries(busy, { receiver: 'here' }))
    await own.queues.enqueue(jobs('ops', 1, 2))
    await until(
      'held',
      async () => (await own.redis.pttl(own.queues.queue('ops').toKey('limiter'))) > 3_500_000,
    )
    await own.queues.enqueue(jobs('ops', 3, 3))
    return running
  }

  it('is asked for nothing once alerts go to another place, by a reload', async () => {
    const own = rig(server, ['ops'])
    const running = await asked(own)
    const other = testSink('ops')
    void running.swap(entries(other, { receiver: 'elsewhere' }))
    const queue = own.queues.queue('ops')
    await until('nothing is held or put off', async () => {
      const [held, putOff] = await Promise.all([
        own.redis.exists(queue.toKey('limiter')),
        queue.getJobs(['delayed']),
      ])
      return held === 0 && putOff.every(({ timestamp, delay }) => timestamp + delay <= Date.now())
    })
    expect(running.states()[0]?.heldUntilMs).toBeUndefined()
  })

  it('nor by a restart', async () => {
    const own = rig(server, ['ops'])
    await (await asked(own)).stop(500)
    const other = testSink('ops')
    void own.sender([], { tuning: quick }).swap(entries(other, { receiver: 'elsewhere' }))
    await until('all are sent', async () => (await completed(own)) === 3)
  })

  it('nor while a replica of the config before still meets it', async () => {
    const own = rig(server, ['ops'])
    const other = testSink('ops')
    void own.sender([], { tuning: quick }).swap(entries(other, { receiver: 'elsewhere' }))
    await own.queues.queue('ops').waitUntilReady()
    const key = delayOriginsKey(own.prefix, 'ops')
    await until(
      'the other place is known',
      async () => (await own.redis.hget(key, 'receiver')) === 'elsewhere',
    )
    await own.queues.queue('ops').rateLimit(3_600_000)
    await own.redis.hset(key, 'held', 'here')
    await until(
      'the hold is over',
      async () => (await own.redis.exists(own.queues.queue('ops').toKey('limiter'))) === 0,
    )
  })

  it('is given it when anything else of its config changes, and after a restart', async () => {
    const own = rig(server, ['ops'])
    const running = await asked(own)
    const limiter = own.queues.queue('ops').toKey('limiter')
    const same = testSink('ops')
    await running.swap(entries(same, { receiver: 'here', settings: { ...settings, concurrency: 7 } }))
    await running.stop(500)
    const again = testSink('ops')
    const next = own.sender([], { tuning: quick })
    void next.swap(entries(again, { receiver: 'here' }))
    await own.queues.enqueue(jobs('ops', 5, 5))
    await next.stop(500)
    expect([same.sends, again.sends, (await own.redis.pttl(limiter)) > 3_500_000]).toEqual([[], [], true])
  })

  it('is given no more than that, whatever Redis holds', async () => {
    const own = rig(server, ['ops'])
    const queue = own.queues.queue('ops')
    await queue.rateLimit(25 * 3_600_000)
    own.sender([testSink('ops')], { tuning: quick })
    await until('no longer than an hour', async () => {
      const leftMs = await own.redis.pttl(queue.toKey('limiter'))
      return leftMs > 3_500_000 && leftMs <= 3_600_000
    })
  })
})

describe('the fingerprint of a receiver', () => {
  const base = { type: 'webhook', url: 'https://a.example', concurrency: 5 }

  it('changes with the place and the user, not with the pace, and is the same in every process', () => {
    const fingerprint = receiverFingerprint(base)
    expect(fingerprint).toBe('2aff')
    expect(receiverFingerprint({ ...base, concurrency: 9, timeout: 1 })).toBe(fingerprint)
    expect(receiverFingerprint({ ...base, url: 'https://b.example' })).not.toBe(fingerprint)
    const bearer = (token: string) => receiverFingerprint({ ...base, auth: { bearer: new Secret(token) } })
    expect(new Set([fingerprint, bearer('one'), bearer('two')]).size).toBe(3)
  })
})
