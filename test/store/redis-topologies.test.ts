import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Cluster, Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Secret } from '../../src/lib/secret.ts'
import {
  connectRedis,
  duplicateRedis,
  faultOf,
  keepTogether,
  type RedisClient,
  type RedisTarget,
  waitForRedis,
} from '../../src/store/connection/redis.ts'
import { checkRedis } from '../../src/store/connection/redis-check.ts'
import { queuePrefix, sourceKeys } from '../../src/store/keys.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { tryLease } from '../../src/store/source/lease.ts'
import { createNameStore } from '../../src/store/source/names.ts'
import { startApp } from '../support/app.ts'
import { bridgeConfig } from '../support/bridge.ts'
import { clusterPorts, giveSlots, startCluster } from '../support/cluster.ts'
import { failureRow } from '../support/failure-row.ts'
import { captureLog } from '../support/log.ts'
import { clean, hasAll, judge, logOf, sentAgain, showing } from '../support/oracle.ts'
import { freePort, tcp } from '../support/ports.ts'
import { startRawServer } from '../support/raw-server.ts'
import { freshPrefix, type RedisServer, startRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const soon = { timeout: 10_000, interval: 50 }

describe('a cluster', () => {
  it('that gives no address for its slots is waited for with the reason, which is said once', async () => {
    const { port, flags } = await clusterPorts()
    const server = await started([...flags, ...tcp(port)])
    await giveSlots(server.client())
    const captured = captureLog()
    const redis = connectRedis(
      { target: { cluster: [`redis://127.0.0.1:${port}`] }, profile: 'commands' },
      captured.log,
    )
    onTestFinished(() => redis.disconnect())
    const waiting = waitForRedis(redis, { log: captured.log, signal: AbortSignal.timeout(60_000) })
    await vi.waitFor(
      () =>
        expect(captured.with('waiting for Redis')).toEqual([
          expect.objectContaining({ reason: expect.stringMatching(/cluster-announce-ip/) }),
        ]),
      soon,
    )
    await server.client().config('SET', 'cluster-announce-ip', '127.0.0.1')
    // Valkey keeps its answer until the slots change.
    await server.client().cluster('DELSLOTS', 0)
    await server.client().cluster('ADDSLOTS', 0)
    await waiting
    expect(captured.with('Redis is away')).toEqual([])
  })

  it('a node that dies with a slot on its way to it, before it has answered ASKING, ends no process', async () => {
    const cluster = await startCluster({ masters: 2, replicas: 0 })
    onTestFinished(() => cluster.dispose())
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const key = `{${freshPrefix()}}`
    const [from, slot] = [
      await cluster.ownerOf(key.slice(1, -1)),
      await cluster.nodes[0]?.redis.cluster('KEYSLOT', key),
    ]
    const to = cluster.nodes.find((node) => node !== from)
    if (!to || slot === undefined) throw new Error('there are two masters')
    const redis = await connected({ cluster: cluster.urls })
    await Promise.all(redis instanceof Cluster ? redis.nodes().map((node) => node.ping()) : [])
    await to.redis.cluster('SETSLOT', slot, 'IMPORTING', await from.id())
    await from.redis.cluster('SETSLOT', slot, 'MIGRATING', await to.id())
    to.server.freeze()
    const answer = redis.get(key)
    await until('it is asked', async () => (await from.redis.info('errorstats')).includes('errorstat_ASK'))
    await to.server.kill9()
    await from.redis.cluster('SETSLOT', slot, 'STABLE')
    expect(await answer).toBeNull()
    expect(unhandled).toEqual([])
  })

  it('is refused when any of its masters may throw alerts away, also one that has no key of ours', async () => {
    const cluster = await startCluster({ masters: 2, replicas: 0 })
    onTestFinished(() => cluster.dispose())
    const redis = await connected({ cluster: cluster.urls })
    for (const { redis: node } of cluster.nodes) {
      await node.config('SET', 'maxmemory-policy', 'allkeys-lru')
      expect(await checkRedis(redis, { prefix: freshPrefix() })).toContainEqual(
        expect.objectContaining({ level: 'refuse', code: 'eviction' }),
      )
      await node.config('SET', 'maxmemory-policy', 'noeviction')
    }
  })

  it('serves every script, because all keys share a slot', async () => {
    const { port, flags } = await clusterPorts()
    const server = await started([...flags, '--cluster-announce-ip', '127.0.0.1', ...tcp(port)])
    const admin = server.client()
    await giveSlots(admin)
    await vi.waitFor(async () => expect(await admin.cluster('INFO')).toContain('cluster_state:ok'), soon)

    const redis = await connected({ cluster: [`redis://127.0.0.1:${port}`] })
    const prefix = freshPrefix()
    const findings = await checkRedis(redis, { prefix })
    expect(findings.map(({ code }) => code)).toEqual(['persistence'])
    await admin.acl('SETUSER', 'bridge', 'on', '>pw', '~*', '&*', '+@all', '-asking')
    const user = { username: 'bridge', password: new Secret('pw') }
    const limited = await connected({ cluster: [`redis://127.0.0.1:${port}`], ...user })
    expect(await checkRedis(limited, { prefix })).toContainEqual({
      ...{ level: 'warn', code: 'permission' },
      message: expect.stringMatching(/^Redis refuses ASKING, without which alerts wait while a slot moves/),
    })
    await spendsUnderLease(redis, prefix)

    // Names that an earlier version did not write down are found on whichever node has them.
    await redis.hset(`${queuePrefix(prefix)}:old:meta`, 'version', 'bullmq')
    await redis.hset(sourceKeys(prefix, 'main').meta, 'id', 'x')
    const names = createNameStore(redis, prefix)
    await names.findOnce()
    expect([await names.sinks(), [...(await names.sources()).keys()]]).toEqual([['old'], ['main']])
  })
})

describe('sentinels', () => {
  it('are called away only where they are; else what they say is named, or that their master is not there', async () => {
    const ports = { master: await freePort(), sentinel: await freePort(), none: await freePort() }
    const password = ['--requirepass', 'secret']
    const master = await started([...tcp(ports.master), ...password])
    await startSentinel(ports.sentinel, ports.master, 0)
    const to = (port: number, name: string) => {
      const target = { sentinels: [{ host: '127.0.0.1', port }], name, password: new Secret('secret') }
      const redis = connectRedis({ target, profile: 'commands' }, captureLog().log)
      onTestFinished(() => redis.disconnect())
      return redis
    }
    const [away, unknown, good] = [
      to(ports.none, 'main'),
      to(ports.sentinel, 'mian'),
      to(ports.sentinel, 'main'),
    ]
    await vi.waitFor(() => expect(faultOf(away)).toBe('no sentinel answers'), soon)
    const noName = /^no sentinel names the master: ERR No such master with that name$/
    await vi.waitFor(() => expect(faultOf(unknown)).toMatch(noName), soon)
    await vi.waitFor(() => expect(good.status).toBe('ready'), soon)
    await master.kill9()
    const said = new Set<string | undefined>()
    await vi.waitFor(() => {
      said.add(faultOf(good))
      expect([...said]).toEqual(
        expect.arrayContaining([
          `connect ECONNREFUSED 127.0.0.1:${ports.master}`,
          'the sentinels name no master that can be reached',
        ]),
      )
    }, soon)
    expect([...said].filter((text) => text?.includes('unreachable'))).toEqual([])
  })

  it('of which one hangs are passed by, and lead both connections to the next master', {
    timeout: 60_000,
  }, async () => {
    const ports = { first: await freePort(), next: await freePort(), sentinel: await freePort() }
    for (const port of [ports.first, ports.next]) await started([...tcp(port), '--requirepass', 'secret'])
    const sentinel = await startSentinel(ports.sentinel, ports.first, 0)
    const hung = await startRawServer({ kind: 'hang' })
    onTestFinished(() => hung.stop())
    const target = {
      sentinels: [hung.port, ports.sentinel].map((port) => ({ host: '127.0.0.1', port })),
      name: 'main',
      password: new Secret('secret'),
    }
    const { log } = captureLog()
    const commands = connectRedis({ target, profile: 'commands' }, log)
    const blocking = connectRedis({ target, profile: 'blocking' }, log)
    onTestFinished(() => {
      for (const redis of [commands, blocking]) redis.disconnect()
    })
    keepTogether({ commands, blocking })
    await waitForRedis(commands, { log, signal: new AbortController().signal })
    const portOf = async (redis: RedisClient) => Number((await redis.config('GET', 'port'))[1])
    expect(await portOf(blocking)).toBe(ports.first)

    const admin = sentinel.client()
    await admin.call('SENTINEL', 'REMOVE', 'main')
    await admin.call('SENTINEL', 'MONITOR', 'main', '127.0.0.1', ports.next, 1)
    // As when the first master hangs: this connection gives it up first.
    commands.disconnect(true)
    await vi.waitFor(async () => expect(await portOf(blocking)).toBe(ports.next), {
      timeout: 30_000,
      interval: 50,
    })
  })

  it('lead every copy of a connection away from a master that hangs, also one that was never greeted', {
    timeout: 60_000,
  }, async () => {
    const ports = { first: await freePort(), next: await freePort(), sentinel: await freePort() }
    const first = await started([...tcp(ports.first), '--requirepass', 'secret'])
    await started([...tcp(ports.next), '--requirepass', 'secret'])
    const sentinel = await startSentinel(ports.sentinel, ports.first, 0)
    const target = {
      ...{ sentinels: [{ host: '127.0.0.1', port: ports.sentinel }], name: 'main' },
      password: new Secret('secret'),
    }
    const { log } = captureLog()
    const commands = connectRedis({ target, profile: 'commands' }, log)
    const blocking = connectRedis({ target, profile: 'blocking' }, log)
    keepTogether({ commands, blocking })
    const waiting = duplicateRedis(duplicateRedis(blocking))
    const all = [commands, blocking, waiting]
    onTestFinished(() => {
      for (const redis of all) redis.disconnect()
    })
    await waitForRedis(commands, { log, signal: new AbortController().signal })
    await Promise.all([blocking.ping(), waiting.ping()])

    first.freeze()
    onTestFinished(() => first.thaw())
    const ungreeted = duplicateRedis(blocking)
    all.push(ungreeted)
    const port = ungreeted.config('GET', 'port')
    await vi.waitFor(() => expect(ungreeted.status).toBe('connect'), soon)
    const job = waiting.bzpopmin('queue', 0)
    const admin = sentinel.client()
    await admin.call('SENTINEL', 'REMOVE', 'main')
    await admin.call('SENTINEL', 'MONITOR', 'main', '127.0.0.1', ports.next, 1)
    commands.disconnect(true)
    const startMs = performance.now()
    expect(await port).toEqual(['port', String(ports.next)])
    await blocking.zadd('queue', 1, 'job')
    expect(await job).toEqual(['queue', 'job', '1'])
    // By itself a connection gives up after 15 s of silence.
    expect(performance.now() - startMs).toBeLessThan(10_000)
  })

  // The pause makes a sentinel distrust its clock for half a minute, so this has one of its own.
  if (process.env['LONG'] === '1')
    it('out of reach: who is connected needs none, and who is cut off waits for one, blocking reads too', async () => {
      const ports = { master: await freePort(), sentinel: await freePort() }
      const master = await started([...tcp(ports.master), '--requirepass', 'secret'])
      const sentinel = await startSentinel(ports.sentinel, ports.master, 0)
      const sandbox = await startSandbox({ history: 0, requestsPerMinute: 1_000_000 })
      const hook = await startWebhookReceiver()
      const shown = showing(sandbox)
      const log = logOf('hook', hook, { status: 204 })
      const text = bridgeConfig({
        redis: { url: 'by-sentinel' },
        feed: sandbox.url,
        sinks: { hook: hook.url },
      })
      const bySentinel = `sentinels: ["127.0.0.1:${ports.sentinel}"], name: main, password: secret`
      await startApp(text.replace('url: "by-sentinel"', bySentinel))
      shown.fire(5)
      await until('5 are delivered', () => hasAll(shown, log))
      sentinel.freeze()
      shown.fire(5)
      await until('5 are delivered without a sentinel', () => hasAll(shown, log))
      await signedIn(master).call('CLIENT', 'KILL', 'TYPE', 'normal')
      shown.fire(5)
      sentinel.thaw()
      await until('5 more are delivered with it', () => hasAll(shown, log), 60_000)
      expect(judge(shown, log)).toEqual(clean)
      expect(sentAgain(hook)).toEqual([])
    })

  it('lead to the master, and to the next one after a failover', { timeout: 90_000 }, async () => {
    const row = failureRow('Its master fails over (Sentinel)')
    const { redis, shown, hook, log, bridges, known, elected, sentinel } = await failover(1)
    shown.fire(5)
    await until('what fired meanwhile arrives', () => hasAll(shown, log), 30_000)
    await row.heals('10 s after another is the master', performance.now() - (await elected).atMs)
    await row.heals(
      'the sentinels look for one once it was away for `down-after-milliseconds`, by default 30 s',
      async () => {
        expect((await elected).afterMs).toBeGreaterThan(500)
        await sentinel.call('SENTINEL', 'MONITOR', 'other', '127.0.0.1', 1, 1)
        const other = String(await sentinel.call('SENTINEL', 'MASTER', 'other'))
        expect(other).toContain('down-after-milliseconds,30000,')
      },
    )
    shown.fire()
    await until('what fires next arrives too', () => hasAll(shown, log))
    await row.kept('what had reached the replica', () => expect(known).toBeGreaterThanOrEqual(10))
    await row.kept('what had not is read from the feed again', () => {
      expect(known).toBeLessThan(20)
      expect(judge(shown, log)).toEqual(clean)
    })
    await row.twice('nothing while the same process lives', () => expect(sentAgain(hook)).toEqual([]))
    // The connection has logged the outage.
    const lines = bridges.flatMap((bridge) => bridge.lines)
    expect(lines.filter(({ msg, level }) => msg === 'worker' && level === 'warn')).toEqual([])

    await vi.waitFor(async () => expect(await redis.info('replication')).toContain('role:master'), {
      timeout: 15_000,
      interval: 100,
    })
    // A new master cuts its clients off once more after the first answers: what fails fast meanwhile is tried again.
    await vi.waitFor(() => spendsUnderLease(redis, freshPrefix()), { timeout: 15_000, interval: 100 })
  })

  it('lead two replicas to the next master: only what was delivered in the lost span, or was on its way, is repeated', {
    timeout: 90_000,
  }, async () => {
    const row = failureRow('Its master fails over (Sentinel)')
    const { shown, log, elected } = await failover(2, 3)
    const lost = new Map([...shown.ids.keys()].slice(10).map((mark) => [mark, 1]))
    shown.fire(5)
    await until('what fired meanwhile arrives', () => hasAll(shown, log), 30_000)
    await row.heals('10 s after another is the master', performance.now() - (await elected).atMs)
    shown.fire()
    await until('what fires next arrives too', () => hasAll(shown, log))
    const { doubled, ...rest } = judge(shown, log, { cutOff: lost })
    await row.kept('what had not is read from the feed again', () =>
      expect({ ...rest, doubled: [] }).toEqual(clean),
    )
    await row.twice(
      'with several replicas of the bridge, what was delivered in the lost span or was on its way at its end',
      () => expect(doubled).toEqual([]),
    )
  })
})

/**
 * So many bridges have delivered ten alerts, and ten more of which the replica knows nothing, and send so many others when the
 * master dies.
 */
async function failover(count: number, underWay = 0) {
  const ports = { master: await freePort(), replica: await freePort(), sentinel: await freePort() }
  const password = ['--requirepass', 'secret', '--masterauth', 'secret']
  const master = await started([...tcp(ports.master), ...password])
  const following = ['--replicaof', '127.0.0.1', String(ports.master)]
  const replica = await started([...tcp(ports.replica), ...password, ...following])
  const sentinel = (await startSentinel(ports.sentinel, ports.master)).client()
  const admin = signedIn(master)

  const redis = await connected({
    sentinels: [{ host: '127.0.0.1', port: ports.sentinel }],
    name: 'main',
    password: new Secret('secret'),
  })
  await spendsUnderLease(redis, freshPrefix())
  const sandbox = await startSandbox({ history: 0, requestsPerMinute: 1_000_000 })
  const hook = await startWebhookReceiver()
  const shown = showing(sandbox)
  let isSlow = false
  const log = logOf('hook', hook, { status: 204 }, () =>
    isSlow ? { status: 204, afterMs: 1_000 } : undefined,
  )
  const text = bridgeConfig({ redis: { url: 'by-sentinel' }, feed: sandbox.url, sinks: { hook: hook.url } })
  const bySentinel = `sentinels: ["127.0.0.1:${ports.sentinel}"], name: main, password: secret`
  const bridges: Awaited<ReturnType<typeof startApp>>[] = []
  while (bridges.length < count) bridges.push(await startApp(text.replace('url: "by-sentinel"', bySentinel)))
  shown.fire(10)
  await until('10 are delivered', () => hasAll(shown, log))
  await untilReplicated(redis)

  // From now on nothing reaches the replica: it cannot sign in again.
  const next = signedIn(replica)
  await next.config('SET', 'masterauth', 'wrong')
  await admin.call('CLIENT', 'KILL', 'TYPE', 'replica')
  shown.fire(10)
  await until('10 more are delivered', () => hasAll(shown, log))
  // Whoever is acknowledged later has no record at the next master, and the log says so.
  await until('and recorded', async () => (await admin.keys('*:hook:active')).length === 0)
  isSlow = true
  if (underWay > 0) shown.fire(underWay)
  await until('they are on their way', () => hasAll(shown, log))
  isSlow = false
  await master.kill9()
  const killedMs = performance.now()
  const known = (await next.keys('*:hook:main.*')).filter((key) => /main\.\d+$/.test(key)).length
  // A new master cuts its clients off.
  const isMaster = async () => (await next.info('replication').catch(() => '')).includes('role:master')
  const elected = until('another is the master', isMaster, 30_000).then(() => {
    const atMs = performance.now()
    return { atMs, afterMs: atMs - killedMs }
  })
  return { redis, shown, hook, log, bridges, known, elected, sentinel }
}

async function spendsUnderLease(redis: RedisClient, prefix: string): Promise<void> {
  const source = 'main'
  const lease = await tryLease({ redis, prefix, source, log: captureLog().log })
  const ledger = createLedger({
    ...{ redis, prefix, source, unitsPerDay: 10, requestsPerMinute: 10 },
    budgetDay: (nowMs) => ({ key: 'today', startMs: nowMs - 60_000, endMs: nowMs + 60_000 }),
  })
  const leaseToken = lease?.token ?? ''
  expect(await ledger.reserve({ cost: 1, purpose: 'poll', leaseToken })).toMatchObject({ ok: true })
  await lease?.release()
  expect(await ledger.reserve({ cost: 1, purpose: 'poll', leaseToken })).toMatchObject({ limit: 'lease' })
}

function signedIn({ socketPath }: RedisServer): Redis {
  const client = new Redis({ path: socketPath, password: 'secret', maxRetriesPerRequest: 1 })
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  return client
}

async function untilReplicated(redis: RedisClient): Promise<void> {
  await vi.waitFor(async () => expect(await redis.info('replication')).toContain('state=online'), soon)
  const reached = redis instanceof Redis ? await redis.wait(1, 10_000) : 0
  expect(reached).toBe(1)
}

async function startSentinel(port: number, masterPort: number, replicas = 1): Promise<RedisServer> {
  const server = await started(tcp(port), (dir) => {
    const file = join(dir, 'sentinel.conf')
    const lines = [
      `sentinel monitor main 127.0.0.1 ${masterPort} 1`,
      'sentinel auth-pass main secret',
      'sentinel down-after-milliseconds main 500',
      'sentinel failover-timeout main 3000',
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    return [file, '--sentinel']
  })
  const sentinel = server.client()
  // The replica is found by asking the master, which the sentinel does every ten seconds at first.
  await vi.waitFor(
    async () =>
      expect(String(await sentinel.call('SENTINEL', 'MASTER', 'main'))).toContain(`num-slaves,${replicas}`),
    { timeout: 15_000, interval: 100 },
  )
  return server
}

async function started(flags: string[], first?: (dir: string) => string[]): Promise<RedisServer> {
  const server = await startRedis({ flags, ...(first ? { first } : {}) })
  onTestFinished(() => server.dispose())
  return server
}

async function connected(target: RedisTarget): Promise<RedisClient> {
  const captured = captureLog()
  const redis = connectRedis({ target, profile: 'commands' }, captured.log)
  onTestFinished(() => redis.disconnect())
  await waitForRedis(redis, { log: captured.log, signal: new AbortController().signal })
  expect(captured.lines).toEqual([])
  return redis
}
