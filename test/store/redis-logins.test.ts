import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { redisTargetOf } from '../../src/app/redis.ts'
import { parseConfig } from '../../src/config/load.ts'
import {
  connectRedis,
  duplicateRedis,
  type RedisClient,
  waitForRedis,
} from '../../src/store/connection/redis.ts'
import { startApp } from '../support/app.ts'
import { adminToken, bridgeConfig, leftToSend, readiness } from '../support/bridge.ts'
import { badServers, testAuthority, testServer } from '../support/certificates.ts'
import { type ClusterNode, clusterPorts, giveSlots, startCluster } from '../support/cluster.ts'
import { captureLog } from '../support/log.ts'
import { freePort, tcp } from '../support/ports.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** A server that lets in nobody but this user. */
const user = { username: 'bridge', password: 'secret of the bridge' }
const onlyUser = [
  '--user',
  'default',
  'off',
  '--user',
  'bridge',
  'on',
  `>${user.password}`,
  '~*',
  '&*',
  '+@all',
]

describe('a login beside the address reaches a Redis that asks for it', () => {
  it('as a password alone', async () => {
    const server = await started(['--requirepass', user.password])
    await answers({ url: server.url, password: user.password })
    await answers({ url: server.url.replace('unix://', 'unix://:wrong@'), password: user.password })
  })

  it('as a user of an access list', async () => {
    const server = await started(onlyUser)
    await answers({ url: server.url, ...user })
    await expect(connected({ url: server.url, ...user, password: 'wrong' })).rejects.toThrow('WRONGPASS')
  })

  it('in a cluster, at every node', async () => {
    const { port, flags } = await clusterPorts()
    const server = await started([...flags, '--cluster-announce-ip', '127.0.0.1', ...tcp(port), ...onlyUser])
    const admin = new Redis({ path: server.socketPath, ...user })
    onTestFinished(() => admin.disconnect())
    await giveSlots(admin)
    await vi.waitFor(async () => expect(await admin.cluster('INFO')).toContain('cluster_state:ok'), soon)
    await answers({ cluster: [`redis://127.0.0.1:${port}`], ...user })
  })

  it('behind sentinels that ask for another one, with the rights that config/README.md lists', async () => {
    const readme = readFileSync(join(import.meta.dirname, '../../config/README.md'), 'utf8')
    const rights = /^`(-@all \+sentinel.+?)`/m.exec(readme)?.[1]?.split(' ') ?? []
    const [master, sentinel] = [await freePort(), await freePort()]
    await started([...tcp(master), ...onlyUser])
    const watching = await started(tcp(sentinel), (dir) => {
      const file = join(dir, 'sentinel.conf')
      const lines = [
        `sentinel monitor main 127.0.0.1 ${master} 1`,
        `sentinel auth-user main ${user.username}`,
        `sentinel auth-pass main "${user.password}"`,
        'user default off',
        'user admin on >admin ~* &* +@all',
        `user watcher on ">secret of the sentinels" ${rights.join(' ')}`,
      ]
      writeFileSync(file, `${lines.join('\n')}\n`)
      return [file, '--sentinel']
    })
    expect(watching.pid).toBeGreaterThan(0)
    const config = { sentinels: [`127.0.0.1:${sentinel}`], name: 'main', ...user }
    const login = { sentinelUsername: 'watcher', sentinelPassword: 'secret of the sentinels' }
    await answers({ ...config, ...login })
    const admin = new Redis({ path: watching.socketPath, username: 'admin', password: 'admin' })
    onTestFinished(() => admin.disconnect())
    const refused = ((await admin.call('ACL', 'LOG')) as string[][]).map(
      (entry) => entry[entry.indexOf('object') + 1],
    )
    // What the driver says of itself to the sentinels of a newer Redis, as config/README.md says.
    expect(refused.filter((command) => command !== 'client|setinfo')).toEqual([])
    expect(rights).toHaveLength(3)
    for (const right of rights.slice(1)) {
      const others = rights.filter((each) => each !== right)
      await admin.call('ACL', 'SETUSER', 'watcher', 'reset', 'on', `>${login.sentinelPassword}`, ...others)
      await admin.call('ACL', 'LOG', 'RESET')
      connected({ ...config, ...login }).catch(() => {})
      const refusals = async () => String(await admin.call('ACL', 'LOG'))
      await until(`${right} is missed`, async () => (await refusals()).includes(right.slice(1)))
    }
  })
})

it('a login that Redis refuses while the bridge runs is named by readiness and once by the log, until it is right again', async () => {
  const server = await started([])
  const admin = server.client()
  const grant = (password: string) =>
    admin.call('ACL', 'SETUSER', 'bridge', 'reset', 'on', `>${password}`, '~*', '&*', '+@all')
  await grant('pw')
  const [{ url: feed }, hook] = [await startSandbox({ history: 1 }), await startWebhookReceiver()]
  onTestFinished(() => hook.stop())
  const redis = { url: server.url.replace('unix://', 'unix://bridge:pw@') }
  const { url, lines } = await startApp(bridgeConfig({ redis, feed, sinks: { hook: hook.url } }))
  await until('it is ready', async () => (await readiness(url)) === 'ok')
  await grant('another')
  await admin.call('CLIENT', 'KILL', 'USER', 'bridge')
  await until('readiness names it', async () => (await readiness(url)).includes('WRONGPASS'))
  const refused = lines.filter(({ msg }) => msg === 'Redis refuses the connection')
  expect(refused).toEqual([
    expect.objectContaining({ level: 'warn', reason: expect.stringMatching(/^WRONGPASS/) }),
  ])
  await grant('pw')
  await until('it is ready again', async () => (await readiness(url)) === 'ok')
})

it('a login that a cluster refuses while the bridge runs is named once by the log, too', async () => {
  const cluster = await startCluster({ masters: 1, replicas: 0 })
  onTestFinished(() => cluster.dispose())
  const [{ port, redis: admin }] = cluster.nodes as [ClusterNode]
  const grant = (password: string) =>
    admin.call('ACL', 'SETUSER', 'bridge', 'reset', 'on', `>${password}`, '~*', '&*', '+@all')
  await grant('pw')
  const captured = captureLog()
  const target = { cluster: [`redis://bridge:pw@127.0.0.1:${port}`] }
  const client = connectRedis({ target, profile: 'commands' }, captured.log)
  onTestFinished(() => client.disconnect())
  await waitForRedis(client, { log: captured.log, signal: AbortSignal.timeout(10_000) })
  await grant('another')
  await admin.call('CLIENT', 'KILL', 'USER', 'bridge')
  const refused = () => captured.with('Redis refuses the connection')
  await vi.waitFor(() => expect(refused()).not.toEqual([]), soon)
  await grant('pw')
  await vi.waitFor(() => expect(captured.with('Redis is back')).toHaveLength(1), soon)
  expect(refused()).toEqual([
    expect.objectContaining({ level: 'warn', reason: expect.stringMatching(/^WRONGPASS/) }),
  ])
})

describe('a database of its own', () => {
  it('that this Redis does not have ends the start with that reason', async () => {
    const server = await started(['--databases', '2'])
    await expect(connected({ url: `${server.url}?db=2` })).rejects.toThrow('DB index is out of range')
  })

  it('that is refused after the start is waited for: nothing is done in another one', async () => {
    const server = await started([])
    const admin = server.client()
    const grant = (...more: string[]) =>
      admin.call('ACL', 'SETUSER', 'bridge', 'reset', 'on', '>pw', '~*', '&*', '+@all', ...more)
    await grant()
    const client = await connected({ url: `${server.url}?db=3`, username: 'bridge', password: 'pw' })
    const copy = duplicateRedis(client)
    onTestFinished(() => copy.disconnect())
    await until('the copy is connected', () => copy.status === 'ready')
    await grant('-select')
    await admin.call('ACL', 'LOG', 'RESET')
    await admin.call('CLIENT', 'KILL', 'USER', 'bridge')
    const write = () => Promise.allSettled([client.set('key', '1'), copy.set('copy', '2')])
    await until('each has been refused again and again', async () => {
      await write()
      expect(await admin.dbsize()).toBe(0)
      const entries = (await admin.call('ACL', 'LOG')) as unknown[][]
      const counts = entries.map((entry) => Number(entry[entry.indexOf('count') + 1]))
      return counts.reduce((sum, count) => sum + count, 0) > 5
    })
    await grant()
    await until('both are back', async () => {
      const results = await write()
      return results.every(({ status }) => status === 'fulfilled')
    })
    expect(await admin.dbsize()).toBe(0)
  })
})

it('the rights that config/README.md lists are enough for the whole way of an alert, and each of them is needed', {
  timeout: 60_000,
}, async () => {
  const readme = readFileSync(join(import.meta.dirname, '../../config/README.md'), 'utf8')
  const [, rule = ''] = /^ACL SETUSER bridge on >PASSWORD (.+)$/m.exec(readme) ?? []
  const rights = rule.split(' ')
  const server = await started([])
  const admin = server.client()
  const grant = (granted: readonly string[]) =>
    admin.call('ACL', 'SETUSER', 'bridge', 'reset', 'on', '>pw', ...granted)
  const pair = { username: 'bridge', password: 'pw' }
  const refusals = async () => ((await admin.call('ACL', 'LOG')) as string[][]).map((each) => each.join(' '))
  await grant(rights)
  await admin.config('RESETSTAT')
  const [sandbox, hook] = [await startSandbox({ requestsPerMinute: 1_000_000 }), await startWebhookReceiver()]
  onTestFinished(() => hook.stop())
  const { url } = await startApp(
    bridgeConfig({
      redis: { url: server.url.replace('unix://', 'unix://bridge:pw@') },
      ...{ prefix: 'alert-bridge', feed: sandbox.url, sinks: { hook: hook.url }, startFrom: 'now' },
    }),
  )
  const { id } = sandbox.fire({})
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  await hook.received(1)
  for (const path of ['status', 'deliveries', 'dead-letters', 'orphans', 'rules', 'silences', 'quarantine'])
    expect([path, (await fetch(`${url}/api/v1/${path}`)).status]).toEqual([path, 200])
  await until('all is recorded', async () => (await leftToSend(admin, 'alert-bridge', ['hook'])) === 0)
  expect(await refusals()).toEqual([])
  // Nor is anything asked that this version does not know and the next one may have a right for.
  expect(await admin.info('errorstats')).not.toMatch(/errorstat_(ERR|NOPERM):/)

  // `-@all` and `resetchannels` give nothing, and `-@dangerous` takes away.
  for (const right of rights.filter((each) => /^[+~]/.test(each))) {
    await grant(rights.filter((each) => each !== right))
    await admin.call('ACL', 'LOG', 'RESET')
    await admin.call('SCRIPT', 'FLUSH')
    await admin.call('CLIENT', 'KILL', 'USER', 'bridge')
    // Asked of it at once; polls come later and later while they fail.
    const orders = async () => {
      const replay = { method: 'POST', headers, body: JSON.stringify({ ids: [`main.${id}`] }) }
      await Promise.all([
        fetch(`${url}/api/v1/replay`, replay),
        fetch(`${url}/api/v1/deliveries/main/${id}`),
        fetch(`${url}/api/v1/status`),
      ])
      return (await refusals()).length > 0
    }
    // As a command does that begins beside the bridge. It may wait for long until it may ask.
    connected({ url: server.url, ...pair }).catch(() => {})
    await until(`${right} is missed`, orders, 15_000)
  }
})

/** Speaks TLS alone, but for its socket; the files of the certificates are in its directory. */
async function startedWithTls(
  port: number,
  flags: readonly string[],
  options: { readonly pem?: typeof testServer; readonly watches?: number } = {},
): Promise<RedisServer> {
  const { pem: own = testServer, watches } = options
  const server = await startRedis({
    flags: ['--tls-port', String(port), '--bind', '127.0.0.1', ...flags],
    first: (dir) => {
      const file = join(dir, 'redis.conf')
      const ca = own === testServer ? testAuthority : own.cert
      const pem = { 'ca-cert': ca, cert: own.cert, key: own.key }
      const lines = Object.entries(pem).map(([name, text]) => {
        writeFileSync(join(dir, `${name}.pem`), text)
        return `tls-${name}-file ${join(dir, `${name}.pem`)}`
      })
      const watching = watches === undefined ? [] : [`sentinel monitor main 127.0.0.1 ${watches} 1`]
      writeFileSync(file, `${[...lines, ...watching].join('\n')}\n`)
      return [file, ...(watches === undefined ? [] : ['--sentinel'])]
    },
  })
  onTestFinished(() => server.dispose())
  return server
}

it('over TLS with a certificate of the bridge, standalone and in a cluster, and never without TLS', async () => {
  const { port, flags } = await clusterPorts()
  const cluster = [...flags, '--tls-cluster', 'yes', '--cluster-announce-ip', '127.0.0.1']
  const server = await startedWithTls(port, cluster)
  await giveSlots(server.client())
  await vi.waitFor(
    async () => expect(await server.client().cluster('INFO')).toContain('cluster_state:ok'),
    soon,
  )
  const [url, ca] = [`rediss://localhost:${port}`, join(server.dir, 'ca-cert.pem')]
  const tls = { ca, cert: join(server.dir, 'cert.pem'), key: join(server.dir, 'key.pem') }
  await answers({ url, tls })
  await answers({ cluster: [url], tls })
  const { log } = captureLog()
  const without = connectRedis({ target: { url, tls: { ca: testAuthority } }, profile: 'commands' }, log)
  onTestFinished(() => without.disconnect())
  const [refusal] = (await once(without, 'error')) as [Error]
  expect(refusal.message).toMatch(/certificate required|ECONNRESET|closed/)
  for (const redis of [
    { url: url.replace('rediss', 'redis'), tls },
    { cluster: [url, 'redis://b'], tls },
  ])
    await expect(connected(redis)).rejects.toThrow('this only goes with rediss:// addresses')
  const plain = { url: url.replace('rediss', 'redis'), tls: {} }
  expect(() => connectRedis({ target: plain, profile: 'commands' }, log)).toThrow('only goes with rediss://')
})

it('over TLS behind sentinels by TLS, which ask for the certificate of the bridge, too', async () => {
  const [port, sentinelPort] = [await freePort(), await freePort()]
  const { dir } = await startedWithTls(port, [])
  await startedWithTls(sentinelPort, ['--tls-replication', 'yes'], { watches: port })
  const pem = (name: string) => join(dir, `${name}.pem`)
  const tls = { ca: pem('ca-cert'), cert: pem('cert'), key: pem('key') }
  await answers({ sentinels: [`localhost:${sentinelPort}`], name: 'main', tls })
})

it('over TLS, a cluster whose certificates have its names and no addresses is reached by name', async () => {
  const { port, flags } = await clusterPorts()
  const pem = badServers['self-signed']
  const named = [...flags, '--tls-cluster', 'yes', '--cluster-announce-ip', 'localhost']
  const server = await startedWithTls(port, [...named, '--tls-auth-clients', 'no'], { pem })
  await giveSlots(server.client())
  await vi.waitFor(
    async () => expect(await server.client().cluster('INFO')).toContain('cluster_state:ok'),
    soon,
  )
  await answers({ cluster: [`rediss://localhost:${port}`], tls: { ca: join(server.dir, 'cert.pem') } })
})

it('over TLS, the certificate must be good; its authority may be named to Node', async () => {
  const port = await freePort()
  const server = await startedWithTls(port, ['--tls-auth-clients', 'no', ...onlyUser])
  const ask = (host: string, env: Readonly<Record<string, string>>) => {
    const url = `rediss://${host}:${port}`
    const script = `
      import { connectRedis } from './src/store/connection/redis.ts'
      import { createLogger } from './src/telemetry/log.ts'
      import { Secret } from './src/lib/secret.ts'
      const target = { url: '${url}', username: '${user.username}', password: new Secret('${user.password}') }
      const redis = connectRedis({ target, profile: 'commands' }, createLogger({ level: 'silent' }))
      redis.once('error', (error) => { console.log(error.code); redis.disconnect() })
      redis.once('ready', async () => { console.log(await redis.ping()); redis.disconnect() })`
    const done = spawnSync(process.execPath, ['--input-type=module-typescript', '--eval', script], {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    })
    return done.stdout.trim() || done.stderr
  }
  const authority = { NODE_EXTRA_CA_CERTS: join(server.dir, 'ca-cert.pem') }
  expect(ask('localhost', authority)).toBe('PONG')
  expect(ask('127.0.0.1', authority)).toBe('PONG')
  expect(ask('localhost', { NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toBe('SELF_SIGNED_CERT_IN_CHAIN')
})

const soon = { timeout: 10_000, interval: 50 }

async function answers(redis: Readonly<Record<string, unknown>>): Promise<void> {
  const client = await connected(redis)
  expect(await client.set('key', 'value')).toBe('OK')
}

/** By the whole way of an operator: from the text of a config. */
async function connected(redis: Readonly<Record<string, unknown>>): Promise<RedisClient> {
  const source = { baseUrl: 'https://api.example.com', token: 'tok', budget: { unitsPerDay: 2000 } }
  const sinks = { hook: { type: 'webhook', url: 'https://hooks.example.com' } }
  const text = JSON.stringify({ redis, sources: { main: source }, sinks, routes: [{ sinks: ['hook'] }] })
  const loaded = parseConfig(text, { env: {}, folder: '/' })
  if (!loaded.ok || loaded.config.redis.mode === 'embedded') throw new Error(JSON.stringify(loaded))
  const { log } = captureLog()
  const client = connectRedis({ target: redisTargetOf(loaded.config.redis), profile: 'commands' }, log)
  onTestFinished(() => client.disconnect())
  await waitForRedis(client, { log, signal: AbortSignal.timeout(10_000) })
  return client
}

async function started(flags: string[], first?: (dir: string) => string[]): Promise<RedisServer> {
  const server = await startRedis({ flags, ...(first ? { first } : {}) })
  onTestFinished(() => server.dispose())
  return server
}
