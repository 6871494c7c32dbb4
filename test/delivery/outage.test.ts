import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { waitedField } from '../../src/delivery/queue/job-fields.ts'
import type { AlertQueue } from '../../src/delivery/queue/queues.ts'
import { resend } from '../../src/delivery/records/resend.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { connectRedis, type RedisClient, type RedisProfile } from '../../src/store/connection/redis.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { onTestFinished } from '../support/finished.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import {
  delivered,
  hang,
  jobs,
  limitedUser,
  refusedInScript,
  rejected,
  rig,
  testSink,
  unavailable,
  until,
} from './rig.ts'

const servers: RedisServer[] = []

async function ownServer(): Promise<RedisServer> {
  const server = await startRedis({ aof: 'always' })
  servers.push(server)
  return server
}

afterEach(async () => {
  for (const server of servers.splice(0)) await server.dispose()
})

/** How many keys BullMQ gives to its scripts that take a job, and that end one and take the next. */
const [keysOfTaking, keysOfFinishing] = [11, 14]
const questions = [
  ['asked for', keysOfTaking],
  ['acknowledged, which also asks for the next', keysOfFinishing],
] as const

/** A sender that takes one job at a time, on a connection of its own. */
async function oneAtATime() {
  const server = await ownServer()
  const { queues, sender } = rig(server, ['hook'])
  const log = createLogger({ level: 'silent' })
  const redisBlocking = connectRedis({ target: { url: server.url }, profile: 'blocking' }, log)
  if (!(redisBlocking instanceof Redis)) throw new Error('no single server')
  onTestFinished(() => redisBlocking.disconnect())
  const sink = testSink('hook')
  const start = () => sender([sink], { more: { redisBlocking }, settings: { concurrency: 1 } })
  return { server, queues, redisBlocking, sink, start }
}

/** As by a process that has ended since. */
async function takeAll(server: RedisServer, queue: AlertQueue): Promise<void> {
  const log = createLogger({ level: 'silent' })
  const connection = connectRedis({ target: { url: server.url }, profile: 'blocking' }, log)
  const taker = new Worker(queue.name, null, { connection, autorun: false, prefix: queue.opts.prefix ?? '' })
  for (let left = await queue.getWaitingCount(); left > 0; left -= 1) {
    const job = await taker.getNextJob('of another')
    await connection.del(queue.toKey(`${job?.id}:lock`))
  }
  await taker.close()
  connection.disconnect()
}

/** Redis away for so long, by the clock: what is tested is what happens while time passes. */
async function outage(server: RedisServer, forMs: number): Promise<void> {
  await server.kill9()
  const startMs = Date.now()
  await until('the outage is long enough', () => Date.now() - startMs >= forMs)
  await server.start()
}

describe('an outage of Redis', () => {
  it('leaves an idle worker able to work: the next alert goes out soon after the return', async () => {
    const server = await ownServer()
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook')
    sender([sink])
    await queues.enqueue(jobs('hook', 1, 1))
    await until('the worker works', () => sink.sends.length === 1)
    await outage(server, 10_000)
    await until('stored', () =>
      queues.enqueue(jobs('hook', 2, 2)).then(
        () => true,
        () => false,
      ),
    )
    const storedAtMs = Date.now()
    await until('sent', () => sink.sends.length === 2)
    expect(Date.now() - storedAtMs).toBeLessThan(10_000)
  }, 60_000)

  it.each(questions)(
    'that is frozen when a job is %s, and takes one once nobody waits for the answer, has it sent soon',
    async (_, keys) => {
      const { server, queues, redisBlocking, sink, start } = await oneAtATime()
      start()
      await queues.enqueue(jobs('hook', 1, 1))
      await until('recorded', async () => (await queues.queue('hook').getCompletedCount()) === 1)
      // Its next question is for the jobs that follow.
      const client = server.client()
      await until('it waits', async () => /^blocked_clients:1\r$/m.test(await client.info('clients')))
      const send = redisBlocking.sendCommand.bind(redisBlocking)
      let frozenMs: number | undefined
      redisBlocking.sendCommand = (...given) => {
        if (frozenMs === undefined && Number(given[0].args[1]) === keys) {
          server.freeze()
          frozenMs = performance.now()
        }
        return send(...given)
      }
      // Stored, or so: its answer may wait for the thaw, too.
      void queues.enqueue(jobs('hook', 2, 4)).catch(() => {})
      const atMs = await until('frozen', () => frozenMs)
      await until('long enough', () => performance.now() - atMs > 1_500)
      // As the driver does after 15 s of silence.
      redisBlocking.stream.destroy()
      await until('it connects anew', () => redisBlocking.status === 'connect')
      server.thaw()
      // Less than a lock.
      await until('all are sent', () => sink.sends.length >= 4, 5_000)
      expect(sink.sends.map(({ id }) => id).sort()).toEqual([1, 2, 3, 4])
    },
    30_000,
  )

  it.each(questions)(
    'that is over at once, and in which Redis took a job when one was %s and its answer was lost, has it sent soon',
    async (_, keys) => {
      const { server, queues, redisBlocking, sink, start } = await oneAtATime()
      await until('connected', () => redisBlocking.status === 'ready')
      const send = redisBlocking.sendCommand.bind(redisBlocking)
      let isAsked = false
      redisBlocking.sendCommand = (...given) => {
        const answer = send(...given)
        if (!isAsked && Number(given[0].args[1]) === keys) {
          isAsked = true
          redisBlocking.stream.pause()
        }
        return answer
      }
      const queue = queues.queue('hook')
      await queues.enqueue(jobs('hook', 1, 4))
      start()
      const next = keys === keysOfTaking ? 'main.1' : 'main.2'
      await until('taken', async () => isAsked && (await queue.getActive()).some(({ id }) => id === next))
      await server.kill9()
      redisBlocking.stream.destroy()
      await server.start()
      // As the table of failures says: less than a lock.
      await until('all are sent', () => sink.sends.length >= 4, 10_000)
      expect(sink.sends.map(({ id }) => id).sort()).toEqual([1, 2, 3, 4])
    },
    30_000,
  )

  it('that outlasts the lock sends nothing twice from the same process', async () => {
    const server = await ownServer()
    const { queues, sender, lines } = rig(server, ['hook'])
    let answer = () => {}
    const sink = testSink(
      'hook',
      () =>
        new Promise((resolve) => {
          answer = () => resolve(delivered)
        }),
    )
    sender([sink], { tuning: { lockMs: 500, stalledIntervalMs: 200 } })
    await queues.enqueue(jobs('hook', 1, 1))
    await until('on its way', () => sink.sends.length === 1)
    await server.kill9()
    answer()
    const startMs = Date.now()
    await until('the lock has run out', () => Date.now() - startMs > 1_500)
    await server.start()
    const completed = async () =>
      (await queues
        .queue('hook')
        .getCompletedCount()
        .catch(() => 0)) === 1
    await until('recorded', completed, 30_000)
    expect(sink.sends).toHaveLength(1)
    expect(lines.some(({ msg }) => msg === 'acknowledged before, not sent again')).toBe(true)
  }, 60_000)

  it('from which it comes back without its last second, while jobs are taken one after another, sends none of them twice', async () => {
    const server = await ownServer()
    const { redis, queues, sender } = rig(server, ['hook'])
    const log = createLogger({ level: 'silent' })
    const redisBlocking = connectRedis({ target: { url: server.url }, profile: 'blocking' }, log)
    if (!(redisBlocking instanceof Redis)) throw new Error('no single server')
    await queues.enqueue(jobs('hook', 1, 4))
    const send = redisBlocking.sendCommand.bind(redisBlocking)
    let taken = 0
    redisBlocking.sendCommand = async (...given) => {
      const isTaking = Number(given[0].args[1]) === keysOfTaking
      if (isTaking) taken += 1
      // Two were taken, and are not handled yet.
      if (isTaking && taken === 3) await asBefore()
      return send(...given)
    }
    const queue = queues.queue('hook')
    const asBefore = async () => {
      const ids = await redis.lrange(queue.toKey('active'), 0, -1)
      await redis.del(queue.toKey('active'), ...ids.map((id) => queue.toKey(`${id}:lock`)))
      for (const id of ids) await redis.hdel(queue.toKey(id), 'ats', 'processedOn')
      await redis.rpush(queue.toKey('wait'), ...ids)
    }
    const sink = testSink('hook')
    sender([sink], { more: { redisBlocking }, settings: { concurrency: 6 } })
    await until('recorded', async () => (await queue.getCompletedCount()) === 4)
    expect(sink.sends.map(({ id }) => id).sort()).toEqual([1, 2, 3, 4])
    redisBlocking.disconnect()
  }, 30_000)

  it('that outlasts the lock sends nothing twice from another process either', async () => {
    const server = await ownServer()
    const { queues, sender, lines } = rig(server, ['hook'])
    const answers: (() => void)[] = []
    const sink = testSink('hook', () => new Promise((resolve) => answers.push(() => resolve(delivered))))
    const tuning = { lockMs: 1_000, stalledIntervalMs: 200, takeOverMs: 2_500 }
    sender([sink], { settings: { concurrency: 8 }, tuning })
    await queues.enqueue(jobs('hook', 1, 8))
    await until('all are on their way', () => sink.sends.length === 8)
    const other = testSink('hook')
    sender([other], { settings: { concurrency: 8 }, tuning })
    await queues.enqueue(jobs('hook', 9, 9))
    await until('the other works too', () => other.sends.length === 1)
    await server.kill9()
    for (const answer of answers) answer()
    const startMs = performance.now()
    await until('the locks have run out', () => performance.now() - startMs > 1_200)
    await server.start()
    const completed = () =>
      queues
        .queue('hook')
        .getCompletedCount()
        .catch(() => 0)
    await until('recorded', async () => (await completed()) === 9, 30_000)
    expect([sink.sends.length, other.sends.length]).toEqual([8, 1])
    expect(lines.some(({ msg }) => msg === 'acknowledged before, not sent again')).toBe(true)
  }, 60_000)

  it('does not keep the sender from stopping, in the middle of a send or idle', async () => {
    const server = await ownServer()
    const { queues, sender } = rig(server, ['hook', 'idle'])
    const sink = testSink('hook', hang)
    const running = sender([sink, testSink('idle')])
    await queues.enqueue(jobs('hook', 1, 1))
    await until('on its way', () => sink.sends.length === 1)
    await server.kill9()
    const startMs = Date.now()
    await running.stop(1_000)
    expect(Date.now() - startMs).toBeLessThan(1_500)
    expect(sink.sends[0]?.signal.aborted).toBe(true)
  })

  it('that lasts from the start to the end keeps nothing from stopping either', async () => {
    const server = await ownServer()
    await server.kill9()
    const { sender } = rig(server, ['hook'])
    const running = sender([testSink('hook')])
    const startMs = Date.now()
    await running.stop(600)
    expect(Date.now() - startMs).toBeLessThan(1_100)
  })

  it('is told to whoever stores jobs, in bounded time, whether Redis was ever there or not', async () => {
    const server = await ownServer()
    const known = rig(server, ['hook'])
    await known.queues.enqueue(jobs('hook', 1, 1))
    await server.kill9()
    const unknown = rig(server, ['hook'])
    const startMs = Date.now()
    for (const { queues } of [known, unknown])
      await expect(queues.enqueue(jobs('hook', 2, 2))).rejects.toThrow()
    expect(Date.now() - startMs).toBeLessThan(4_000)
    await server.start()
    await until('stored', () =>
      unknown.queues.enqueue(jobs('hook', 2, 2)).then(
        () => true,
        () => false,
      ),
    )
    expect(await unknown.queues.queue('hook').getJob('main.2')).toBeDefined()
  })
})

describe('an acknowledgement that Redis refuses to record, and to store', () => {
  it('keeps its job until the process that takes it next can read it', async () => {
    const server = await ownServer()
    const operator = server.client()
    const { queues, sender } = rig(server, ['hook'])
    const queue = queues.queue('hook')
    const user = (name: string, ...rules: string[]) => operator.call('ACL', 'SETUSER', name, ...rules)
    // All keys but that of the completed jobs.
    const others = ['~*[^d]', '~*:delayed', '~*:failed', '~*:stalled', '~*:paused', '~*:prioritized']
    const opened: RedisClient[] = []
    const connect = async (profile: RedisProfile) => {
      await user(profile, 'on', 'nopass', 'allkeys', 'allcommands')
      const target = { url: server.url, username: profile }
      const client = connectRedis({ target, profile }, createLogger({ level: 'silent' }))
      opened.push(client)
      return client
    }
    const [redis, redisBlocking] = [await connect('commands'), await connect('blocking')]
    const sink = testSink('hook', async () => {
      await user('blocking', 'resetkeys', ...others)
      await user('commands', '-eval')
      return delivered
    })
    const tuning = { lockMs: 1_000, stalledIntervalMs: 200, takeOverMs: 2_500 }
    sender([sink], { tuning, more: { redis, redisBlocking } })
    await queues.enqueue(jobs('hook', 1, 1))
    await until('acknowledged', () => sink.sends.length === 1)
    const other = testSink('hook')
    sender([other], { tuning })
    const isTakenOver = async () => (await operator.hget(queue.toKey('main.1'), 'stc')) === '1'
    await until('taken by the other', async () => other.sends.length > 0 || isTakenOver())
    await user('commands', '+eval')
    await user('blocking', 'allkeys')
    await until('recorded', async () => (await queue.getCompletedCount()) === 1)
    expect([sink.sends.length, other.sends.length]).toEqual([1, 0])
    for (const client of opened) client.disconnect()
  }, 30_000)
})

describe('a job whose lock Redis lost with its last second', () => {
  async function lostLock(sink: ReturnType<typeof testSink>) {
    const server = await startRedis()
    servers.push(server)
    const { lines, queues, sender } = rig(server, ['hook'])
    const queue = queues.queue('hook')
    await queues.enqueue(jobs('hook', 1, 1))
    await server.client().save()
    sender([sink], { settings: { concurrency: 1 }, tuning: { lockMs: 1_000, stalledIntervalMs: 200 } })
    await until('it is being sent', () => sink.sends.length === 1)
    await server.kill9()
    await server.start()
    await until('its lock is not there', () =>
      lines.some(({ reason }) => /could not renew lock/.test(String(reason))),
    )
    return { queue, client: server.client() }
  }

  it('is sent on, since nobody else has it: the answer counts', async () => {
    const answer = Promise.withResolvers<Outcome>()
    const sink = testSink('hook', (send) => Promise.race([hang(send), answer.promise]))
    const { queue } = await lostLock(sink)
    answer.resolve(delivered)
    await until('recorded', async () => (await queue.getCompletedCount()) === 1)
    expect(sink.sends).toHaveLength(1)
  })

  it.each([
    ['', false],
    [' and had been taken over', true],
  ])(
    'goes out in the same list as before, though it was handed out again while it waited for that%s',
    {
      timeout: 30_000,
    },
    async (_, isTakenOver) => {
      const server = await startRedis()
      servers.push(server)
      const { queues, sender } = rig(server, ['hook'])
      const queue = queues.queue('hook')
      const plan = { kind: 'burst', max: 20, after: 1, windowMs: 5_000 } as const
      const sizes: number[] = []
      const takes = (count: number) => {
        sizes.push(count)
        return Promise.resolve(delivered)
      }
      const batch = {
        plan,
        split: <P>(parts: readonly P[]) => [[...parts]],
        send: (parts: readonly unknown[]) => takes(parts.length),
      }
      await queues.enqueue(jobs('hook', 1, 6))
      const client = server.client()
      if (isTakenOver) await takeAll(server, queue)
      await client.save()
      const tuning = { lockMs: 2_000, stalledIntervalMs: 300, watchEveryMs: 500, takeOverMs: 100 }
      sender([{ ...testSink('hook', () => takes(1)), batch }], { tuning })
      await until('five wait for the list', async () => {
        const active = await queue.getActive()
        const waited = await Promise.all(
          active.map((job) => client.hexists(queue.toKey(job.id ?? ''), waitedField)),
        )
        return active.length === 5 && waited.every((is) => is === Number(isTakenOver))
      })
      await server.kill9()
      await server.start()
      const recorded = () => queue.getCompletedCount().catch(() => 0)
      await until('all are recorded', async () => (await recorded()) === 6)
      expect(sizes).toEqual([1, 5])
    },
  )

  it('is broken off once another process has it', async () => {
    const sink = testSink('hook', hang)
    const { queue, client } = await lostLock(sink)
    await client.set(queue.toKey('main.1:lock'), 'of another process')
    await until('broken off', () => sink.sends[0]?.signal.aborted)
  })
})

it.each(['hset', 'hget'])(
  'a job that Redis refuses to give back, %s in the middle of a script, is tried again',
  async (command) => {
    const server = await ownServer()
    const { lines, queues, sender } = rig(server, ['hook'])
    const { redis: redisBlocking, may } = await limitedUser(server, 'blocking')
    const sink = testSink('hook', async () => {
      if (sink.sends.length > 1) return delivered
      await may(`-${command}`)
      return unavailable
    })
    const tuning = { lockMs: 1_000, stalledIntervalMs: 200, takeOverMs: 100 }
    sender([sink], { tuning, more: { redisBlocking } })
    await queues.enqueue(jobs('hook', 1, 1))
    const queue = queues.queue('hook')
    await until('refused', () => lines.some(({ reason }) => refusedInScript.test(String(reason))))
    await may('+@all')
    await until('recorded', async () => (await queue.getCompletedCount()) === 1)
    expect(sink.sends.length).toBe(2)
  },
)

it.each([
  ['hset', 'by it'],
  ['hget', 'by the next process'],
  ['lpush', 'by it'],
])(
  'jobs whose delay ends while Redis refuses %s, in the middle of the script that takes them, are tried again %s',
  async (command, by) => {
    const server = await ownServer()
    const { lines, queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => unavailable)
    const retry = { attempts: 9, initialDelayMs: 500, maxDelayMs: 500 }
    const before = sender([sink], { settings: { retry } })
    await queues.enqueue(jobs('hook', 1, 3))
    const queue = queues.queue('hook')
    await until('delayed', async () => (await queue.getDelayedCount()) === 3)
    await before.stop()
    const sent = sink.sends.length
    const delayedMs = Date.now()
    await until('due', () => Date.now() - delayedMs > 1_000)
    sink.answer = () => delivered
    const { redis: redisBlocking, may } = await limitedUser(server, 'blocking')
    await may(`-${command}`)
    const limited = sender([sink], { settings: { retry }, more: { redisBlocking } })
    await until('taken', async () => (await queue.getDelayedCount()) === 0)
    await until('refused', () => lines.some(({ reason }) => refusedInScript.test(String(reason))))
    if (by !== 'by it') await limited.stop()
    await may('+@all')
    if (by !== 'by it') sender([sink], { settings: { retry } })
    await until('recorded', async () => (await queue.getCompletedCount()) === 3)
    expect(sink.sends.length).toBe(sent + 3)
  },
)

it.each(['hset', 'hget', 'zadd'])(
  'a job that is to wait without an attempt being counted, where Redis refuses %s in the middle of the script, is tried again',
  async (command) => {
    const server = await ownServer()
    const { lines, queues, sender } = rig(server, ['hook'])
    const { redis: redisBlocking, may } = await limitedUser(server, 'blocking')
    const sink = testSink('hook', async () => {
      if (sink.sends.length > 1) return delivered
      await may(`-${command}`)
      return { ...unavailable, reason: 'rate_limited', afterMs: 500 }
    })
    sender([sink], { more: { redisBlocking } })
    await queues.enqueue(jobs('hook', 1, 1))
    await until('refused', () => lines.some(({ msg }) => /could not be moved/.test(String(msg))))
    await may('+@all')
    await until('recorded', async () => (await queues.queue('hook').getCompletedCount()) === 1)
    expect(sink.sends.length).toBe(2)
  },
)

it('a job that is to probe its sink, where Redis refuses the middle of that script, is tried again', async () => {
  const server = await ownServer()
  const { queues, sender } = rig(server, ['hook'])
  const { redis, may } = await limitedUser(server, 'commands')
  const sink = testSink('hook', () => unavailable)
  const running = sender([sink], {
    settings: { retry: { attempts: 2, initialDelayMs: 3_600_000, maxDelayMs: 3_600_000 } },
    tuning: { faultsToOpen: 2, probePauseMsMax: 1_000 },
    more: { redis },
  })
  await queues.enqueue(jobs('hook', 1, 2))
  await until('open', () => running.states()[0]?.breaker === 'open')
  const queue = queues.queue('hook')
  const listed = async () => (await queue.getJobCountByTypes('wait', 'active', 'delayed')) === 2
  await may('-hget')
  await until('in no list', async () => !(await listed()))
  sink.answer = () => delivered
  await may('+@all')
  await until('recorded', async () => (await queue.getCompletedCount()) === 2)
})

it.each(['hset', 'hdel', 'lpush'])(
  'a dead letter that is sent again while Redis refuses %s, in the middle of the script, stays one until it is sent again',
  async (command) => {
    const server = await ownServer()
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => rejected)
    sender([sink])
    await queues.enqueue(jobs('hook', 1, 1))
    const queue = queues.queue('hook')
    await until('dead', async () => (await queue.getFailedCount()) === 1)
    sink.answer = () => delivered
    const { redis, may } = await limitedUser(server, 'commands')
    const again = async (atMs: number) => {
      const job = await queue.getJob('main.1')
      if (!job) throw new Error('no dead letter')
      const order = { v: 1 as const, atMs, throughMs: atMs, total: 1, idsDone: 0 }
      return resend({ redis, queue: () => queue }, { sink: 'hook', job, state: 'failed' }, order)
    }
    await may(`-${command}`)
    await expect(again(Date.now())).rejects.toThrow(refusedInScript)
    expect(await queue.getFailedCount()).toBe(1)
    await may('+@all')
    expect(await again(Date.now() + 1)).toBe(true)
    await until('recorded', async () => (await queue.getCompletedCount()) === 1)
    expect([sink.sends.length, await queue.getFailedCount()]).toEqual([2, 0])
  },
)
