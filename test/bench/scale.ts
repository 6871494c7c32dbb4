import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { createSandbox, sandboxToken } from '../../src/sandbox/sandbox.ts'
import { type RedisCluster, startCluster } from '../support/cluster.ts'
import { freePort } from '../support/ports.ts'

/**
 * What a deployment costs, in processor time, which does not depend on what else the machine does:
 *
 *   node test/bench/scale.ts [REPLICAS…] [--alerts N] [--apart | --cluster] [--old CHECKOUT]
 *
 * N alerts (2,000) at once to two webhooks by so many replicas that have started, then half a minute of rest. `--apart`: two deployments by
 * prefix, each on a Redis of its own; `--cluster`: each on another master of one cluster, whose third master has none. `--old`: every
 * second replica runs from another checkout.
 */
const args = process.argv.slice(2)
const option = (name: string) => {
  const at = args.indexOf(name)
  return at < 0 ? undefined : args[at + 1]
}
const alerts = Number(option('--alerts') ?? 2_000)
const old = option('--old')
const counts = args.filter((each, at) => /^\d+$/.test(each) && args[at - 1] !== '--alerts').map(Number)
const root = join(import.meta.dirname, '../..')
const restSeconds = 30
const hooks = ['a', 'b']
const ticksPerSecond = 100

interface Deployment {
  readonly prefix: string
  readonly redis: Redis
  readonly redisPid: number
  readonly replicas: readonly ChildProcess[]
}

for (const count of counts.length > 0 ? counts : [1, 2, 4, 8]) await measure(count)

async function measure(count: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'scale-'))
  const children: ChildProcess[] = []
  const start = (command: string, parameters: readonly string[], cwd = root) => {
    const child = spawn(command, parameters, { cwd, stdio: 'ignore' })
    children.push(child)
    return child
  }
  const seen = new Map<string, number>()
  const receiver = createServer((request, answer) => {
    request.resume()
    const id = `${request.url}/${request.headers['webhook-id']}`
    seen.set(id, (seen.get(id) ?? 0) + 1)
    answer.writeHead(204).end()
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const hookPort = (receiver.address() as AddressInfo).port
  const sandbox = createSandbox({ history: 0, ratePerMinute: 0, requestsPerMinute: 1_000_000 })
  const { url: api } = await sandbox.start()
  const cluster = args.includes('--cluster') ? await startCluster({ masters: 3, replicas: 0 }) : undefined
  const ownRedis = async (prefix: string) => {
    const port = await freePort()
    const flags = ['--port', String(port), '--save', '', '--appendonly', 'yes', '--dir', folder]
    const server = start('redis-server', [...flags, '--appenddirname', prefix])
    return { port, pid: server.pid ?? 0, form: `url: "redis://127.0.0.1:${port}"` }
  }
  try {
    const deployments: Deployment[] = []
    const prefixes = cluster
      ? await prefixesOnTwo(cluster)
      : args.includes('--apart')
        ? ['one', 'two']
        : ['one']
    for (const prefix of prefixes) {
      const { port, pid, form } = cluster ? await masterOf(cluster, prefix) : await ownRedis(prefix)
      const redis = new Redis({ port, maxRetriesPerRequest: null })
      redis.on('error', () => {})
      await redis.ping()
      const config = join(folder, `${prefix}.yaml`)
      writeFileSync(
        config,
        `redis: { ${form}, prefix: ${prefix} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${api}", token: ${sandboxToken}, startFrom: beginning, budget: { unitsPerDay: 1000000 }, poll: { every: 1s, minInterval: 1s, historyPages: 0 } } }
sinks:
${hooks.map((name) => `  ${name}: { type: webhook, url: "http://127.0.0.1:${hookPort}/${prefix}/${name}", allowPrivateNetworks: true }`).join('\n')}
routes: [{ sinks: [${hooks.join(', ')}] }]
`,
      )
      const replicas = Array.from({ length: count }, (_, at) =>
        start(
          process.execPath,
          ['src/main.ts', 'run', '--config', config],
          old !== undefined && at % 2 === 1 ? old : root,
        ),
      )
      deployments.push({ prefix, redis, redisPid: pid, replicas })
    }
    const wanted = alerts * hooks.length * deployments.length
    const pids = deployments.flatMap(({ replicas }) => replicas.map(({ pid = 0 }) => pid))
    // Each has two connections of its own and one a sink; after that the costs of the start are over.
    const enough = pids.length * (2 + hooks.length)
    await until(async () => (await connectionsOf(deployments)) >= enough, 'all have started')
    await pause(3_000)
    const first = await costs(deployments, pids)
    for (let fired = 0; fired < alerts; fired++) sandbox.fire({})
    await until(() => seen.size >= wanted, 'all arrived')
    const seconds = (performance.now() - first.ms) / 1_000
    const done = await costs(deployments, pids)
    const bridges = done.bridges - first.bridges
    await pause(5_000)
    const before = await costs(deployments, pids)
    await pause(restSeconds * 1_000)
    const after = await costs(deployments, pids)
    const rest = (after.ms - before.ms) / 1_000
    const connections = await connectionsOf(deployments)
    const twice = [...seen.values()].filter((times) => times > 1).length
    const per = (value: number, digits = 2) => Number(value.toFixed(digits))
    process.stdout.write(
      `${JSON.stringify({
        replicas: count,
        deployments: deployments.length,
        ...(old === undefined ? {} : { old: Math.floor(count / 2) }),
        sends: wanted,
        twice,
        seconds: per(seconds, 1),
        sendsPerSecond: per(wanted / seconds, 0),
        redisMsPerSend: done.redis.map((each, at) =>
          per(((each - (first.redis[at] ?? 0)) * 1_000 * deployments.length) / wanted),
        ),
        bridgeMsPerSend: per((bridges * 1_000) / wanted),
        commandsPerSend: per((done.commands - first.commands) / wanted, 1),
        atRest: {
          connectionsPerReplica: per(connections / count / deployments.length, 1),
          commandsPerSecondPerReplica: per(
            (after.commands - before.commands) / rest / count / deployments.length,
            1,
          ),
          redisCpuPercent: after.redis.map((each, at) =>
            per(((each - (before.redis[at] ?? 0)) / rest) * 100),
          ),
          bridgeCpuPercent: per(((after.bridges - before.bridges) / rest / pids.length) * 100),
          megabytes: per(Math.max(...pids.map(memoryOf)), 0),
        },
      })}\n`,
    )
    for (const { redis } of deployments) redis.disconnect()
  } finally {
    for (const child of children.toReversed()) {
      const ended = new Promise((resolve) => child.once('close', resolve))
      child.kill('SIGKILL')
      await ended
    }
    await cluster?.dispose()
    await sandbox.stop()
    receiver.closeAllConnections()
    receiver.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Two prefixes that two masters answer for. */
async function prefixesOnTwo(cluster: RedisCluster): Promise<string[]> {
  const first = await cluster.ownerOf('one')
  for (let at = 2; ; at += 1) if ((await cluster.ownerOf(`d${at}`)) !== first) return ['one', `d${at}`]
}

async function masterOf(cluster: RedisCluster, prefix: string) {
  const { port, redis } = await cluster.ownerOf(prefix)
  const pid = Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1])
  return { port, pid, form: `cluster: ${JSON.stringify(cluster.urls)}` }
}

/** Seconds of processor time, and commands, so far. */
async function costs(deployments: readonly Deployment[], pids: readonly number[]) {
  return {
    redis: deployments.map(({ redisPid }) => secondsOf(redisPid)),
    bridges: pids.reduce((sum, pid) => sum + secondsOf(pid), 0),
    commands: await commandsOf(deployments),
    ms: performance.now(),
  }
}

/** User and system time of a process, of all its threads. */
function secondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

function memoryOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const startMs = performance.now()
  while (!(await condition())) {
    if (performance.now() - startMs > 600_000) throw new Error(`not within 10 minutes: ${what}`)
    await pause(100)
  }
}

/** Of the bridges, without this program's own. */
async function connectionsOf(deployments: readonly Deployment[]): Promise<number> {
  const texts = await Promise.all(deployments.map(({ redis }) => redis.info('clients')))
  return texts.reduce((sum, text) => sum + Number(/connected_clients:(\d+)/.exec(text)?.[1]) - 1, 0)
}

async function commandsOf(deployments: readonly Deployment[]): Promise<number> {
  const texts = await Promise.all(deployments.map(({ redis }) => redis.info('stats')))
  return texts.reduce((sum, text) => sum + Number(/total_commands_processed:(\d+)/.exec(text)?.[1]), 0)
}
