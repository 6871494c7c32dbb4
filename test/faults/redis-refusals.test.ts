import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { redisCheckEveryMs } from '../../src/app/redis-watch.ts'
import { defaultTuning } from '../../src/delivery/settings.ts'
import { queuePrefix } from '../../src/store/keys.ts'
import { buildApp, startApp } from '../support/app.ts'
import { api, metric, readiness } from '../support/bridge.ts'
import { startDoor } from '../support/door.ts'
import { failureRow } from '../support/failure-row.ts'
import { sideBySide } from '../support/finished.ts'
import { clean, hasAll, judge, logOf, sentAgain } from '../support/oracle.ts'
import { debugFlags, isBefore7, type RedisServer } from '../support/redis.ts'
import { inTurn, ownRedis, pass, redisRig } from '../support/redis-rig.ts'
import { until } from '../support/until.ts'

/** A Redis that is there and does not do what it is asked. The tests run side by side, each with a Redis of its own. */

const long = process.env['LONG'] === '1'
const taken = { status: 204 } as const
/** Longer than the lock of a job that was being sent when it began. */
const faultMs = long ? 70_000 : defaultTuning.lockMs + 2_000

it('a sink with alerts that wait asks a Redis that refuses once a second, and says so no more often', {
  timeout: 30_000,
}, async () => {
  const redis = await ownRedis()
  const { hook, shown, text, prefix } = await redisRig(redis)
  const client = redis.client()
  const log = logOf('hook', hook, { ...taken, afterMs: 500 })
  const login = (...more: string[]) =>
    client.call('ACL', 'SETUSER', 'bridge', 'reset', 'on', '>pw', '~*', '&*', '+@all', ...more)
  await login()
  const { lines } = await startApp(text.replace('unix://', 'unix://bridge:pw@'))
  shown.fire(100)
  await until('some are sent, others wait', () => log.taken.length > 5)
  await until('others wait', async () => (await client.llen(`${queuePrefix(prefix)}:hook:wait`)) > 20)
  await login('-evalsha')
  const refused = async () =>
    Number(/evalsha:.*rejected_calls=(\d+)/.exec(await client.info('commandstats'))?.[1])
  await pass(3_000)
  // Beside those of the sends that ran, of the locks and of the polls.
  expect(await refused()).toBeLessThan(100)
  expect(lines.filter(({ msg }) => msg === 'worker').length).toBeLessThan(50)
  await login()
  await until('the rest is sent', () => hasAll(shown, log))
  expect(judge(shown, log)).toEqual(clean)
  expect(sentAgain(hook)).toEqual([])
})

describe('Redis that answers, and does not do', () => {
  const faults: Record<
    string,
    { begin(redis: RedisServer, forMs: number): Promise<unknown>; end(redis: RedisServer): Promise<unknown> }
  > = {
    'READONLY: it became a replica': {
      begin: (redis) => redis.client().replicaof('127.0.0.1', 1),
      end: (redis) => redis.client().replicaof('NO', 'ONE'),
    },
    'OOM: its memory is full': {
      begin: (redis) => redis.client().config('SET', 'maxmemory', '1'),
      end: (redis) => redis.client().config('SET', 'maxmemory', '0'),
    },
    'NOREPLICAS: its replicas are gone': {
      begin: (redis) => redis.client().config('SET', 'min-replicas-to-write', '1'),
      end: (redis) => redis.client().config('SET', 'min-replicas-to-write', '0'),
    },
    'MISCONF: it cannot save to its disk': {
      async begin(redis) {
        // A full disk fails the same step, and a directory in the place of the file needs none that is full.
        await mkdir(join(blockedFile(redis), 'full'), { recursive: true })
        await redis.client().config('SET', 'save', '3600 1')
        await redis.client().bgsave()
        await until('it has failed to save', async () => (await lastSave(redis)) === 'err')
      },
      async end(redis) {
        await rm(blockedFile(redis), { recursive: true })
        await redis.client().bgsave()
        await until('it has saved', async () => (await lastSave(redis)) === 'ok')
      },
    },
    'nothing at all: it is frozen': {
      begin: async (redis) => redis.freeze(),
      end: async (redis) => redis.thaw(),
    },
    'LOADING: it reads a large file': {
      async begin(redis, forMs) {
        const filler = redis.client().multi()
        // Before version 7 it looks at its connections every two megabytes only, and is frozen in between.
        const value = 'x'.repeat(isBefore7() ? 20_000 : 1)
        for (let key = 0; key < 4_000; key += 1) filler.set(`filler:${key}`, value)
        await filler.exec()
        const watcher = redis.client()
        await watcher.config('SET', 'key-load-delay', String(Math.round((forMs * 1_000) / 4_000)))
        await watcher.config('SET', 'rdbcompression', 'no')
        if (!isBefore7()) await watcher.config('SET', 'loading-process-events-interval-bytes', '1024')
        // It answers everybody with LOADING until it is done.
        void redis
          .client()
          .call('DEBUG', 'RELOAD')
          .catch(() => {})
        await until('it loads', () => isLoading(watcher))
      },
      async end(redis) {
        const watcher = redis.client()
        await until('it has loaded', async () => !(await isLoading(watcher)), faultMs)
      },
    },
  }

  it.concurrent.for(Object.keys(faults))(
    '%s: polls and sends wait, and go on by themselves',
    { timeout: faultMs + 70_000 },
    (name, context) =>
      sideBySide(async () => {
        const row = failureRow('It becomes a replica (`READONLY`)')
        const redis = await ownRedis(debugFlags())
        const { sandbox, hook, shown, text, left } = await redisRig(redis)
        const log = logOf('hook', hook, { ...taken, afterMs: 300 })
        const { url, lines } = await inTurn(async () => {
          const started = await startApp(text)
          shown.fire(20)
          await until('20 are delivered', () => hasAll(shown, log))
          return started
        })
        const steady = setInterval(() => shown.fire(), 200)
        await until('sends run', () => log.attempts() > 22)
        await faults[name]?.begin(redis, faultMs)
        await pass(2_000)
        const [before, calls, sends] = [shown.ids.size, sandbox.requests.length, log.attempts()]
        await pass(faultMs - 2_000)
        const during = { calls: sandbox.requests.length - calls, sends: log.attempts() - sends }
        // What it has can be read all the same.
        if (name.startsWith('OOM')) expect(await api(url, '/api/v1/deliveries/main/1')).toHaveProperty('data')
        await faults[name]?.end(redis)
        clearInterval(steady)
        const endMs = performance.now()
        const firedMeanwhile = [...shown.ids.keys()].slice(before)
        await until(
          'what fired meanwhile arrives',
          () => firedMeanwhile.every((mark) => log.taken.includes(mark)),
          30_000,
        )
        await row.heals('10 s after its end', performance.now() - endMs)
        await until(
          'all is delivered and recorded',
          async () => (await left()) === 0 && hasAll(shown, log),
          30_000,
        )
        await row.heals('15 s for what was on its way', performance.now() - endMs)
        await row.kept('everything', () => expect(judge(shown, log)).toEqual(clean))
        await row.kept('polls and sends wait', () => expect(during).toEqual({ calls: 0, sends: 0 }))
        await row.twice('nothing', () => expect(sentAgain(hook)).toEqual([]))
        await until('ready again', async () => (await readiness(url)) === 'ok')
        expect(await metric(url, 'alert_bridge_poller_restarts_total{source="main"}')).toBe(0)
        expect(await metric(url, 'alert_bridge_state_lost_total{source="main"}')).toBe(0)
        expect(lines.filter(({ msg }) => msg === 'a job could not be handled')).toEqual([])
        expect(sandbox.requests.every(({ status }) => status === 200)).toBe(true)
      })(context),
  )

  it.concurrent(
    'connections that are cut a hundred times: nothing is lost, and it settles within seconds',
    { timeout: 90_000 },
    sideBySide(async () => {
      const row = failureRow('Its connections are cut a hundred times')
      const redis = await ownRedis()
      const { hook, shown, text, prefix, left } = await redisRig(redis)
      const door = await startDoor(redis.socketPath)
      const log = logOf('hook', hook, { ...taken, afterMs: 100 })
      await inTurn(() => startApp(text.replace(redis.url, door.url)))
      const knife = redis.client()
      for (let cut = 0; cut < 90; cut += 1) {
        shown.fire(2)
        await knife.call('CLIENT', 'KILL', 'SKIPME', 'yes', 'TYPE', 'normal')
        await pass(40)
      }
      // Redis does what it is asked at the end of these sends, hands out the next jobs, and no reply arrives.
      for (let cut = 90; cut < 100; cut += 1) {
        const sent = log.attempts()
        shown.fire(20)
        await until('sends run', () => log.attempts() > sent, 40_000)
        door.hold()
        await pass(300)
        door.close()
        await door.open()
      }
      const endMs = performance.now()
      await until('everything arrives', () => hasAll(shown, log), 40_000)
      await row.heals('35 s after the last, if a lock has to run out', performance.now() - endMs)
      await until('all is recorded', async () => (await left()) === 0, 30_000)
      const again = await takenAgain(redis, prefix)
      await row.heals('most jobs whose reply was lost are put back at once', () => {
        expect(again.length).toBeGreaterThan(0)
        expect(again.filter(({ stalls }) => stalls > 0).length).toBeLessThan(again.length / 2)
      })
      await row.kept('everything', () => expect(judge(shown, log)).toEqual(clean))
      await row.twice('nothing', () => expect(sentAgain(hook)).toEqual([]))
    }),
  )

  it.for(Object.keys(faults))(
    '%s, when the bridge starts: it waits, says why, and starts by itself',
    { timeout: 60_000 },
    (name, context) =>
      sideBySide(async () => {
        const row = failureRow('The same when the bridge starts')
        const redis = await ownRedis(debugFlags())
        const { hook, shown, text } = await redisRig(redis)
        const log = logOf('hook', hook, taken)
        shown.fire(20)
        await faults[name]?.begin(redis, 3_000)
        const { app, lines } = buildApp(text)
        const starting = app.start()
        const waiting = () => lines.some(({ msg, reason }) => msg === 'waiting for Redis' && Boolean(reason))
        await until('it waits', waiting, 15_000)
        await faults[name]?.end(redis)
        const endMs = performance.now()
        await starting
        await until('20 are delivered', () => hasAll(shown, log))
        await row.heals('10 s after its end', performance.now() - endMs)
        await row.kept('everything', () => expect(judge(shown, log)).toEqual(clean))
        await row.kept('it waits, and says why', () => expect(waiting()).toBe(true))
        await row.twice('nothing', () => expect(sentAgain(hook)).toEqual([]))
      })(context),
  )

  it('is full when the bridge starts: readiness says with which words it refuses', {
    timeout: 60_000,
  }, async () => {
    const redis = await ownRedis()
    const { text } = await redisRig(redis)
    await faults['OOM: its memory is full']?.begin(redis, 3_000)
    const { app, lines } = buildApp(text)
    const starting = app.start()
    const address = () => String(lines.find(({ msg }) => msg === 'listening')?.['address'])
    await until('it listens', () => address().startsWith('http'))
    await until('readiness says why', async () =>
      (await readiness(address())).includes('OOM command not allowed'),
    )
    await faults['OOM: its memory is full']?.end(redis)
    await starting
    await until('it is ready', async () => (await readiness(address())) === 'ok')
  })

  it(
    'is allowed to evict keys while the bridge runs: readiness says so at once, and what to set, until it is mended',
    { timeout: 180_000 },
    sideBySide(async () => {
      const row = failureRow('It is allowed to while the bridge runs')
      const redis = await ownRedis()
      const { hook, shown, text } = await redisRig(redis)
      const log = logOf('hook', hook, taken)
      const everyMs = long ? redisCheckEveryMs : 200
      const { url, lines } = await startApp(text, { redisCheckEveryMs: everyMs })
      const limitMs = everyMs + 10_000
      await until('ready', async () => (await readiness(url)) === 'ok')
      await redis.client().config('SET', 'maxmemory-policy', 'allkeys-lru')
      const redMs = await msUntil('not ready', async () => (await readiness(url)) !== 'ok', limitMs)
      shown.fire(5)
      await row.kept('what Redis keeps', () => until('it goes on', () => hasAll(shown, log)))
      await row.kept('`/readyz` turns red', async () => expect(await readiness(url)).not.toBe('ok'))
      await row.kept('names the setting', async () =>
        expect(await readiness(url)).toMatch(/maxmemory-policy is allkeys-lru; set it to noeviction/),
      )
      await redis.client().config('SET', 'maxmemory-policy', 'noeviction')
      const wellMs = await msUntil('ready again', async () => (await readiness(url)) === 'ok', limitMs)
      await row.inLong.kept('within a minute', () => expect(redMs).toBeLessThan(61_000))
      await row.heals('after the setting is right', () => expect(wellMs).toBeLessThan(limitMs))
      await row.inLong.heals('a minute', () => expect(wellMs).toBeLessThan(61_000))
      await row.twice('nothing', () => expect(sentAgain(hook)).toEqual([]))
      expect(lines.filter(({ code }) => code === 'eviction')).toHaveLength(1)
      expect(lines.filter(({ msg }) => msg === 'Redis keeps alerts again')).toHaveLength(1)
    }),
  )
})

/** The jobs that were handed out more than once, each with how often because its lock had run out. */
async function takenAgain(redis: RedisServer, prefix: string): Promise<{ readonly stalls: number }[]> {
  const client = redis.client()
  const ids = (await client.keys(`${queuePrefix(prefix)}:hook:main.*`)).filter((key) =>
    /main\.\d+$/.test(key),
  )
  const counts = await Promise.all(ids.map((id) => client.hmget(id, 'ats', 'stc')))
  return counts.filter(([taken]) => Number(taken) > 1).map(([, stalls]) => ({ stalls: Number(stalls) }))
}

async function msUntil(...given: Parameters<typeof until>): Promise<number> {
  const startMs = performance.now()
  await until(...given)
  return performance.now() - startMs
}

function blockedFile({ dir }: RedisServer): string {
  return join(dir, 'dump.rdb')
}

async function lastSave(redis: RedisServer): Promise<string | undefined> {
  return /rdb_last_bgsave_status:(\w+)/.exec(await redis.client().info('persistence'))?.[1]
}

async function isLoading(redis: Redis): Promise<boolean> {
  return redis.ping().then(
    () => false,
    (error: Error) => error.message.startsWith('LOADING'),
  )
}
