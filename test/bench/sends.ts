import { type ChildProcess, fork, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Queue } from 'bullmq'
import { parseRow } from '../../src/alert/alert.ts'
import { toJobData } from '../../src/alert/job.ts'
import { createQueues } from '../../src/delivery/queues.ts'
import { queuePrefix } from '../../src/store/keys.ts'
import { connectRedis, waitForRedis } from '../../src/store/redis.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { median, spread } from './sends/statistics.ts'
import { prefix, sinks, width } from './sends/work.ts'

/**
 * How many acknowledged sends a second the sender reaches beside what it is made of: each arm drains the same alerts to
 * the same receiver on this machine, one after the other, and again for each round. A figure of one arm alone says
 * little on a busy machine; the ratio of two arms of the same rounds says more.
 */
const { values: given } = parseArgs({
  options: {
    alerts: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '3' },
    /** Another build of the bridge, by its main file: before and after, side by side. */
    beside: { type: 'string' },
    arms: { type: 'string' },
    /** A folder for CPU profiles of the bridge. */
    profile: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
/** One arm on a busy machine. */
const armTimeoutMs = 300_000
/** Linux counts CPU time in these, for whoever looks from outside. */
const tickMs = 10
const alerts = Number(given.alerts)
const total = alerts * sinks.length
const folder = mkdtempSync(join(tmpdir(), 'bench-sends-'))
const asInTheImage = ['--max-semi-space-size=16', '--max-old-space-size=384']
const profiling = given.profile === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', given.profile]
const main = join(import.meta.dirname, '../../src/main.ts')

interface Measured {
  readonly perSecond: number
  /** Of the sending process and of Redis. A busy machine changes these less than `perSecond`. */
  readonly cpuMsPerThousand: number
  readonly redisMsPerThousand: number
  /** The most that the process had in memory. */
  readonly mb: number
}

type Arm = (rig: Rig) => Promise<Measured>

interface Rig {
  readonly redis: RedisServer
  readonly receiver: { readonly url: string; readonly process: ChildProcess }
}

const arms: Readonly<Record<string, Arm>> = {
  bullmq: bare('queue'),
  undici: bare('post'),
  bare: bare('both'),
  ...(given.beside === undefined ? {} : { beside: bridge(given.beside) }),
  bridge: bridge(main),
}

/** What the others are compared with. */
const limit = 'bare'
const redis = await startRedis()
const receiver = await startReceiver()
const results = new Map<string, Measured[]>()
try {
  const wanted = Object.entries(arms).filter(([name]) => given.arms?.split(',').includes(name) ?? true)
  for (let round = 0; round < Number(given.rounds); round++)
    for (const [name, arm] of wanted) {
      const measured = await arm({ redis, receiver })
      results.set(name, [...(results.get(name) ?? []), measured])
      if (!given.json)
        process.stderr.write(
          `${name}: ${measured.perSecond.toFixed(0)} a second, ${measured.cpuMsPerThousand.toFixed(0)} ms of CPU a thousand, Redis ${measured.redisMsPerThousand.toFixed(0)} ms\n`,
        )
    }
} finally {
  receiver.process.kill()
  await redis.dispose()
  rmSync(folder, { recursive: true })
}
report()
process.exit()

function bare(kind: 'queue' | 'post' | 'both'): Arm {
  return async (rig) => {
    if (kind !== 'post') await storeBare(rig)
    else await flush(rig)
    const row = JSON.stringify(rowOf(1))
    const worker = fork(join(import.meta.dirname, 'sends/bare.ts'), [
      ...[kind, rig.redis.socketPath, rig.receiver.url, String(alerts), row],
    ])
    return measured(worker, kind === 'queue' ? worker : rig.receiver.process)
  }
}

function bridge(program: string): Arm {
  return async (rig) => {
    await storeOurs(rig)
    const config = join(folder, 'config.yaml')
    const one = `{ type: webhook, url: "${rig.receiver.url}/a", secret: whsec_${'A'.repeat(43)}=, allowPrivateNetworks: true, concurrency: ${width} }`
    writeFileSync(
      config,
      `redis: { url: "${rig.redis.url}", prefix: ${prefix} }
dataDir: ${folder}
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "http://127.0.0.1:9", token: none-is-needed } }
sinks: { ${sinks.map((sink) => `${sink}: ${one}`).join(', ')} }
routes: [{ sinks: [${sinks.join(', ')}] }]
`,
    )
    const sender = spawn(
      process.execPath,
      [...asInTheImage, ...profiling, program, 'run', '--role', 'sender', '--config', config],
      {
        stdio: ['ignore', 'ignore', 'inherit'],
        env: { ...process.env, MALLOC_ARENA_MAX: '2' },
      },
    )
    return measured(sender, rig.receiver.process)
  }
}

async function measured(worker: ChildProcess, teller: ChildProcess): Promise<Measured> {
  const warm = message(teller, 'warm').then(() => cpuOf(worker.pid ?? 0, redis.pid))
  const told = message<{ perSecond: number; sends: number }>(teller, 'perSecond')
  receiver.process.send({ count: total })
  let peak = 0
  const look = setInterval(() => {
    peak = Math.max(peak, residentMb(worker.pid ?? 0))
  }, 100)
  const { perSecond, sends } = await told
  const [before, after] = [await warm, cpuOf(worker.pid ?? 0, redis.pid)]
  clearInterval(look)
  const ended = new Promise((resolve) => worker.once('exit', resolve))
  worker.kill(given.profile === undefined ? 'SIGKILL' : 'SIGTERM')
  await ended
  const spentMs = (at: 0 | 1) => ((after[at] - before[at]) * 1_000) / sends
  return { perSecond, mb: peak, cpuMsPerThousand: spentMs(0), redisMsPerThousand: spentMs(1) }
}

function cpuOf(...pids: [worker: number, redis: number]): [worker: number, redis: number] {
  return pids.map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * tickMs
  }) as [number, number]
}

function residentMb(pid: number): number {
  try {
    const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Number(kb ?? 0) / 1_024
  } catch {
    return 0
  }
}

function message<T>(from: ChildProcess, key: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no ${key} within ${armTimeoutMs} ms`)), armTimeoutMs)
    const listen = (told: object) => {
      if (!(key in told)) return
      clearTimeout(late)
      from.off('message', listen)
      resolve(told as T)
    }
    from.on('message', listen)
  })
}

async function startReceiver() {
  const child = fork(join(import.meta.dirname, 'sends/receiver.ts'))
  const { port } = await message<{ port: number }>(child, 'port')
  return { url: `http://127.0.0.1:${port}`, process: child }
}

async function flush({ redis }: Rig): Promise<void> {
  const client = redis.client()
  await client.flushall()
  client.disconnect()
}

async function storeBare(rig: Rig): Promise<void> {
  await flush(rig)
  const connection = rig.redis.client()
  for (const sink of sinks) {
    const queue = new Queue(sink, { connection, prefix: queuePrefix(prefix) })
    const jobs = jobsOf(sink).map((job) => ({
      name: 'alert',
      data: toJobData(job),
      opts: { jobId: `main.${job.alert.id}` },
    }))
    for (let from = 0; from < jobs.length; from += 1_000) await queue.addBulk(jobs.slice(from, from + 1_000))
    await queue.close()
  }
  connection.disconnect()
}

async function storeOurs(rig: Rig): Promise<void> {
  await flush(rig)
  const log = createLogger({ level: 'silent' })
  const client = connectRedis(
    { target: { url: rig.redis.url }, profile: 'commands', connectionName: 'bench' },
    log,
  )
  await waitForRedis(client, { log, signal: AbortSignal.timeout(10_000) })
  const retention = { ageMs: 7 * 86_400_000, count: 100_000 }
  const queues = createQueues({ redis: client, prefix, sinks, retention, enqueueTimeoutMs: 60_000 })
  for (const sink of sinks) await queues.enqueue(jobsOf(sink))
  await queues.close()
  client.disconnect()
}

function jobsOf(sink: string) {
  const nowMs = Date.now()
  return Array.from({ length: alerts }, (_, index) => {
    const parsed = parseRow('main', rowOf(index + 1))
    if (!parsed.ok) throw new Error(parsed.reason)
    return { sink, alert: parsed.alert, seenAtMs: nowMs }
  })
}

function rowOf(id: number) {
  return {
    id,
    kind: 'price',
    symbol: 'فولاد',
    slug: 'foolad',
    payload: ['last=5230', 'threshold=5200', `volume=${id}`],
    headline: 'قیمت فولاد از ۵٬۲۰۰ ریال گذشت',
    url: `https://example.com/alerts/${id}`,
    why: 'قانون قیمت: آخرین معامله بالاتر از آستانه',
    ruleIds: ['12'],
    firedAt: new Date(Date.now() - 60_000).toISOString(),
    notifiedAt: null,
    channels: ['web'],
    isRead: false,
  }
}

function report(): void {
  const base = results.get(limit) ?? []
  const lines = [...results].map(([name, runs]) => {
    const rates = runs.map(({ perSecond }) => perSecond)
    const ratios = base.flatMap((each, at) => (runs[at] ? [runs[at].perSecond / each.perSecond] : []))
    return {
      ...{ name, rates, perSecond: median(rates), spread: spread(rates) },
      cpu: median(runs.map((each) => each.cpuMsPerThousand)),
      redis: median(runs.map((each) => each.redisMsPerThousand)),
      ...{ ratio: median(ratios), ratioSpread: spread(ratios), mb: Math.max(...runs.map(({ mb }) => mb)) },
    }
  })
  if (given.json) {
    print(JSON.stringify({ alerts, sinks: sinks.length, width, node: process.version, lines }, null, 2))
    return
  }
  print(
    `\n${alerts} alerts to ${sinks.length} webhooks, ${width} sends of each at a time; ${cpus().length} cores of ${cpus()[0]?.model.trim()}, Node.js ${process.version}\n`,
  )
  print(
    `| | sends a second | least to most | to "${limit}" | least to most | CPU a thousand | of Redis | peak memory |`,
  )
  print('|---|---|---|---|---|---|---|---|')
  for (const {
    name,
    perSecond,
    spread: [least, most],
    ratio,
    ratioSpread,
    cpu,
    redis,
    mb,
  } of lines)
    print(
      `| ${name} | ${perSecond.toFixed(0)} | ${least.toFixed(0)} to ${most.toFixed(0)} | ${ratio.toFixed(2)} | ${ratioSpread.map((each) => each.toFixed(2)).join(' to ')} | ${cpu.toFixed(0)} ms | ${redis.toFixed(0)} ms | ${mb.toFixed(0)} MB |`,
    )
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
