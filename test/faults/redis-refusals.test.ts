import { describe, expect, it } from 'vitest'
import { buildApp, startApp, until } from '../support/app.ts'
import { clean, hasAll, judge, logOf } from '../support/oracle.ts'
import type { RedisServer } from '../support/redis.ts'
import { ownRedis, pass, redisScene } from '../support/redis-scene.ts'
import { metric, readiness } from '../support/scene.ts'

/** A Redis that is there and does not do what it is asked. */

const taken = { status: 204 } as const

describe('Redis that answers, and does not do', () => {
  const faults: Record<
    string,
    { begin(redis: RedisServer): Promise<unknown>; end(redis: RedisServer): Promise<unknown> }
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
    'nothing at all: it is frozen': {
      begin: async (redis) => redis.freeze(),
      end: async (redis) => redis.thaw(),
    },
    'LOADING: it reads a large file': {
      async begin(redis) {
        const filler = redis.client().multi()
        for (let key = 0; key < 4_000; key += 1) filler.set(`filler:${key}`, 'x')
        await filler.exec()
        const watcher = redis.client()
        await watcher.config('SET', 'key-load-delay', '1000')
        // Else it looks at its connections every two megabytes only, and is frozen in between.
        await watcher.config('SET', 'loading-process-events-interval-bytes', '1024')
        // It answers everybody with LOADING until it is done, after about four seconds.
        void redis
          .client()
          .call('DEBUG', 'RELOAD')
          .catch(() => {})
        const isLoading = () =>
          watcher.ping().then(
            () => false,
            (error: Error) => error.message.startsWith('LOADING'),
          )
        await until('it loads', isLoading)
      },
      end: async () => {},
    },
  }

  it.each(Object.keys(faults))(
    '%s: polls and sends wait, and go on by themselves',
    { timeout: 40_000 },
    async (name) => {
      const fault = faults[name]
      if (!fault) throw new Error(name)
      const redis = await ownRedis(['--enable-debug-command', 'yes'])
      const { sandbox, hook, shown, text } = await redisScene(redis)
      const log = logOf('hook', hook, taken)
      const { url, lines } = await startApp(text)
      shown.fire(20)
      await until('20 are delivered', () => hasAll(shown, log))
      const steady = setInterval(() => shown.fire(), 100)
      await fault.begin(redis)
      await pass(2_000)
      await fault.end(redis)
      await pass(500)
      clearInterval(steady)
      const endMs = performance.now()
      await until('everything arrives', () => hasAll(shown, log), 20_000)
      expect(performance.now() - endMs).toBeLessThan(15_000)
      await until('ready again', async () => (await readiness(url)) === 'ok')
      expect(judge(shown, log)).toEqual(clean)
      expect(await metric(url, 'alert_bridge_poller_restarts_total{source="main"}')).toBe(0)
      expect(await metric(url, 'alert_bridge_state_lost_total{source="main"}')).toBe(0)
      expect(lines.filter(({ msg }) => msg === 'a job could not be handled')).toEqual([])
      expect(sandbox.requests.every(({ status }) => status === 200)).toBe(true)
    },
  )

  it.each(Object.keys(faults))(
    '%s, when the bridge starts: it waits, says why, and starts by itself',
    { timeout: 40_000 },
    async (name) => {
      const fault = faults[name]
      if (!fault) throw new Error(name)
      const redis = await ownRedis(['--enable-debug-command', 'yes'])
      const { hook, shown, text } = await redisScene(redis)
      const log = logOf('hook', hook, taken)
      await fault.begin(redis)
      const { app, lines } = buildApp(text)
      const starting = app.start()
      await until(
        'it waits',
        () => lines.some(({ msg, reason }) => msg === 'waiting for Redis' && reason !== ''),
        15_000,
      )
      await fault.end(redis)
      await starting
      shown.fire(20)
      await until('20 are delivered', () => hasAll(shown, log))
      expect(judge(shown, log)).toEqual(clean)
    },
  )

  it('is allowed to evict keys while the bridge runs: readiness says so at once, and what to set, until it is mended', async () => {
    const redis = await ownRedis()
    const { hook, shown, text } = await redisScene(redis)
    const log = logOf('hook', hook, taken)
    const { url, lines } = await startApp(text, { redisCheckEveryMs: 200 })
    await until('ready', async () => (await readiness(url)) === 'ok')
    await redis.client().config('SET', 'maxmemory-policy', 'allkeys-lru')
    await until('not ready', async () => (await readiness(url)) !== 'ok')
    expect(await readiness(url)).toMatch(/maxmemory-policy is allkeys-lru; set it to noeviction/)
    shown.fire(5)
    await until('it goes on', () => hasAll(shown, log))
    await redis.client().config('SET', 'maxmemory-policy', 'noeviction')
    await until('ready again', async () => (await readiness(url)) === 'ok')
    expect(lines.filter(({ code }) => code === 'eviction')).toHaveLength(1)
    expect(lines.filter(({ msg }) => msg === 'Redis keeps alerts again')).toHaveLength(1)
  })

  it('connections that are cut a hundred times: nothing is lost, and it settles within seconds', {
    timeout: 40_000,
  }, async () => {
    const redis = await ownRedis()
    const { hook, shown, text } = await redisScene(redis)
    const log = logOf('hook', hook, taken, () => ({ ...taken, afterMs: 20 }))
    await startApp(text)
    const knife = redis.client()
    for (let cut = 0; cut < 100; cut += 1) {
      shown.fire(2)
      await knife.call('CLIENT', 'KILL', 'SKIPME', 'yes', 'TYPE', 'normal')
      await pass(40)
    }
    const endMs = performance.now()
    await until('everything arrives', () => hasAll(shown, log), 30_000)
    expect(performance.now() - endMs).toBeLessThan(28_000)
    expect(judge(shown, log)).toEqual(clean)
  })
})
