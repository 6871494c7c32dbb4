import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { WaitingError, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import type { JobData } from '../../src/alert/job.ts'
import { createAcknowledged } from '../../src/delivery/acknowledgement/acknowledged.ts'
import type { FindContext } from '../../src/delivery/attempt/deliver.ts'
import { processJob } from '../../src/delivery/attempt/processor.ts'
import type { AttemptRecord } from '../../src/delivery/queue/attempt-record.ts'
import { createJobFields } from '../../src/delivery/queue/job-fields.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { connectRedis, type RedisClient } from '../../src/store/connection/redis.ts'
import { queuePrefix } from '../../src/store/keys.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { startDoor } from '../support/door.ts'
import { onTestFinished } from '../support/finished.ts'
import { afterOwnMs, countWaits } from '../support/own-time.ts'
import { useRedis } from '../support/redis.ts'
import { delivered, jobs, quickSettings, rig, testSink, unavailable, until } from './rig.ts'

const server = useRedis()

/** Takes a job in a process of its own and is killed with SIGKILL while it sends. */
async function takeAndDie(prefix: string, sink: string, size = 0): Promise<void> {
  const script = join(import.meta.dirname, 'killed-sender.ts')
  const child = spawn(process.execPath, [script, server.url, prefix, sink, String(size)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  countWaits(child.pid)
  const ended = once(child, 'exit')
  const late = new AbortController()
  const limit = afterOwnMs(10_000, () => late.abort())
  try {
    await once(child.stdout, 'data', { signal: late.signal })
  } finally {
    limit.off()
    child.kill('SIGKILL')
    await ended
  }
}

describe('a process that is killed while it sends', () => {
  it('leaves the alert to the next one, however often, and burns no attempt', async () => {
    const { prefix, queues, sender } = rig(server, ['hook'])
    await queues.enqueue(jobs('hook', 1, 1))
    for (let kill = 1; kill <= 3; kill++) await takeAndDie(prefix, 'hook')
    const sink = testSink('hook')
    sender([sink], {
      tuning: { lockMs: 400, stalledIntervalMs: 200, takeOverMs: 100 },
      settings: { retry: singleAttempt },
    })
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    expect(sink.sends.map(({ number }) => number)).toEqual([1])
  }, 40_000)

  it('leaves every alert of a message to the next one', async () => {
    const { prefix, queues, sender } = rig(server, ['hook'])
    await queues.enqueue(jobs('hook', 1, 6))
    for (let kill = 1; kill <= 2; kill++) await takeAndDie(prefix, 'hook', 6)
    const sink = testSink('hook')
    sender([sink], {
      tuning: { lockMs: 400, stalledIntervalMs: 200, takeOverMs: 100 },
      settings: { retry: singleAttempt },
    })
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 6)
    expect(sink.sends.map(({ id, number }) => `${id} ${number}`).sort()).toEqual(
      [1, 2, 3, 4, 5, 6].map((id) => `${id} 1`),
    )
  }, 40_000)
})

describe('a process that sends nothing', () => {
  it('does not look for jobs of others all the time, and takes over what one of them left', async () => {
    const { queues, redis, sender } = rig(server, ['hook'])
    const sink = testSink('hook')
    sender([sink], { tuning: { stalledIntervalMs: 200, watchEveryMs: 50, takeOverMs: 1 } })
    const queue = queues.queue('hook')
    await queues.enqueue(jobs('hook', 1, 1))
    await until('it has sent', async () => (await queue.getCompletedCount()) === 1)
    // Each look leaves a key for as long as the pause to the next one.
    let rests = 0
    await until('it rests', async () => {
      rests = (await redis.exists(queue.toKey('stalled-check'))) === 0 ? rests + 1 : 0
      return rests > 50
    })
    await queue.pause()
    await queues.enqueue(jobs('hook', 2, 2))
    await redis.rpoplpush(queue.toKey('wait'), queue.toKey('active'))
    await queue.resume()
    await until('delivered', async () => (await queue.getCompletedCount()) === 2)
    expect(sink.sends.map(({ id }) => id)).toEqual([1, 2])
  })
})

describe('an alert that was taken over', () => {
  it('waits for its former process once, not before each later attempt', async () => {
    const { redis, queues, sender } = rig(server, ['hook'])
    await queues.enqueue(jobs('hook', 1, 1))
    const stalls = (count: number) => redis.hset(queues.queue('hook').toKey('main.1'), 'stc', count)
    // As BullMQ counts it when the lock of its process has run out.
    await stalls(1)
    const waits: number[] = []
    const takeOverMs = 123
    const clock = { ...systemClock, sleep: countedSleep }
    function countedSleep(...[ms, signal]: Parameters<typeof systemClock.sleep>) {
      if (ms === takeOverMs) waits.push(ms)
      return systemClock.sleep(ms, signal)
    }
    const waitsAt: number[] = []
    const sink = testSink('hook', async ({ number }) => {
      waitsAt.push(waits.length)
      // Its process dies again, in the third attempt.
      if (number === 3) await stalls(2)
      return number === 4 ? delivered : unavailable
    })
    sender([sink], { tuning: { takeOverMs }, more: { clock } })
    await until('delivered', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    expect(waitsAt).toEqual([1, 1, 1, 2])
  })
})

describe('a process that wakes up when its job belongs to another', () => {
  it('does not send it', async () => {
    const { prefix, redis, queues, metrics } = rig(server, ['hook'])
    await queues.enqueue(jobs('hook', 1, 1))
    const blocking = connectRedis({ target: { url: server.url }, profile: 'blocking' }, silent)
    const taker = new Worker<JobData, AttemptRecord>('hook', null, {
      connection: blocking,
      prefix: queuePrefix(prefix),
      autorun: false,
    })
    const job = await taker.getNextJob('mine')
    if (!job) throw new Error('no job')
    await redis.set(`${queues.queue('hook').toKey('main.1')}:lock`, 'another')
    const sink = testSink('hook')
    const context = {
      sink,
      settings: quickSettings,
      acknowledged: createAcknowledged(),
      clock: systemClock,
      log: silent,
      metrics,
      lockAges: { lockMs: 1_000, isYoung: () => false },
      begins: () => {},
      jobFields: createJobFields(redis, queues.queue('hook')),
      observe: async () => {},
      onAcknowledged: () => {},
      takeOverMs: 0,
      stopping: new AbortController().signal,
      hold: async () => {},
      waiting: async () => {},
      queueState: () => ({ emptyMs: 0, isFull: false }),
      replace: async () => {},
    }
    await expect(processJob(job, 'mine', new AbortController().signal, context)).rejects.toThrow(WaitingError)
    expect(sink.sends).toHaveLength(0)
    // The other one's lock is untouched.
    expect(await queues.queue('hook').getJobCounts('active')).toEqual({ active: 1 })
    await taker.close()
    blocking.disconnect()
  })
})

describe('a job whose lock has run out before its send', () => {
  /** Two alerts, one after the other; of each send whether its job was locked. */
  async function sendsOf(
    url: string,
    more: { clock: Clock; findContext?: FindContext; redisBlocking?: RedisClient },
    onFirst = () => {},
  ) {
    const { queues, sender } = rig({ ...server, url }, ['hook'])
    const key = (name: string) => queues.queue('hook').toKey(name)
    const redis = server.client()
    await queues.enqueue(jobs('hook', 1, 2))
    const sends: string[] = []
    const sink = testSink('hook', async ({ id }) => {
      sends.push(`${id} ${(await redis.exists(key(`main.${id}:lock`))) === 1 ? 'locked' : 'not locked'}`)
      if (id === 1) onFirst()
      return delivered
    })
    sender([sink], {
      settings: { concurrency: 1 },
      tuning: { lockMs: 10_000, stalledIntervalMs: 200, takeOverMs: 1 },
      more,
    })
    return { sends, lockOf: (id: number) => key(`main.${id}:lock`), redis }
  }

  it.each([
    ['process stood still', 'monotonicMs', 1],
    ['process stood still', 'monotonicMs', 2],
    ['machine was asleep', 'now', 1],
    ['machine was asleep', 'now', 2],
  ] as const)(
    'as when the %s (%s, alert %i), is not sent: whoever has it then does',
    async (_why, ahead, id) => {
      let [aheadMs, isFirst] = [0, true]
      const clock = { ...systemClock, [ahead]: () => systemClock[ahead]() + aheadMs }
      const { sends, lockOf, redis } = await sendsOf(server.url, {
        clock,
        async findContext({ alert }) {
          if (alert.id === id && isFirst) {
            isFirst = false
            await redis.del(lockOf(id))
            aheadMs = 60_000
          }
          return undefined
        },
      })
      await until('both are sent', () => sends.length >= 2)
      expect(sends.toSorted()).toEqual(['1 locked', '2 locked'])
    },
  )

  it('as when Redis answered late, is not sent either', async () => {
    let aheadMs = 0
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
    const door = await startDoor(server.socketPath)
    const { sends, lockOf, redis } = await sendsOf(door.url, { clock }, door.hold)
    await until('Redis has handed the second one out', async () => (await redis.exists(lockOf(2))) === 1)
    await redis.del(lockOf(2))
    aheadMs = 60_000
    door.release()
    await until('both are sent', () => sends.length >= 2)
    expect(sends).toEqual(['1 locked', '2 locked'])
  })

  it('as when Redis answered a worker late that had asked for one, is not sent either', async () => {
    let aheadMs = 0
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
    const door = await startDoor(server.socketPath)
    const redisBlocking = connectRedis({ target: { url: door.url }, profile: 'blocking' }, silent)
    if (!(redisBlocking instanceof Redis)) throw new Error('no single server')
    onTestFinished(() => redisBlocking.disconnect())
    const send = redisBlocking.sendCommand.bind(redisBlocking)
    let isFirst = true
    redisBlocking.sendCommand = (...given) => {
      if (isFirst && Number(given[0].args[1]) === keysOfTaking) {
        isFirst = false
        door.hold()
      }
      return send(...given)
    }
    const { sends, lockOf, redis } = await sendsOf(door.url, { clock, redisBlocking })
    await until('Redis has handed the first one out', async () => (await redis.exists(lockOf(1))) === 1)
    await redis.del(lockOf(1))
    aheadMs = 60_000
    door.release()
    await until('both are sent', () => sends.length >= 2)
    expect(sends.toSorted()).toEqual(['1 locked', '2 locked'])
  })
})

it('an alert that comes into an empty queue is sent without another question about it', async () => {
  const redis = server.client()
  // Before anybody else asks Redis.
  const monitor = await redis.monitor()
  const seen: string[] = []
  monitor.on('error', () => {})
  monitor.on('monitor', (_time, args: readonly string[], source: string) => {
    if (source !== 'lua') seen.push(args.join(' '))
  })
  const sink = testSink('hook', async () => {
    await redis.ping('sent')
    await until('Redis has told what came before', () => seen.includes('ping sent'))
    return delivered
  })
  const { queues, sender } = rig(server, ['hook'])
  sender([sink], {})
  await queues.enqueue(jobs('hook', 1, 1))
  await until('it is sent', () => seen.includes('ping sent'))
  const about = queues.queue('hook').toKey('main.1')
  expect(seen.slice(0, seen.indexOf('ping sent')).filter((command) => command.includes(about))).toEqual([])
})

const silent = createLogger({ level: 'silent' })

/** How many keys BullMQ gives to its script that takes a job. */
const keysOfTaking = 11

/** One attempt and no more: a burnt one would show. */
const singleAttempt = { attempts: 1, initialDelayMs: 1_000, maxDelayMs: 1_000 }
