import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseRow } from '../../src/alert/alert.ts'
import type { DeliveryJob } from '../../src/alert/job.ts'
import { createQueues, type SinkQueues } from '../../src/delivery/queue/queues.ts'
import { createSender } from '../../src/delivery/sender.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import { connectRedis, type RedisProfile } from '../../src/store/connection/redis.ts'
import { createWalkState } from '../../src/store/walk/walk-state.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'

/**
 * What Redis needs for what the bridge remembers, by its own count of its memory:
 *
 *   node test/bench/redis-size.ts [--ids N]
 *
 * N ids (1,000,000) of one source, and what the two steps of a poll with a hundred news cost Redis at 1,000, 10,000, … of them; then
 * 10,000 alerts that wait for one sink and for three, and those of the one after they were sent. The redis-server is that on PATH: how much
 * it needs depends on the allocator that it was built with.
 */
const at = process.argv.indexOf('--ids')
const idsMax = Number(at < 0 ? 1_000_000 : process.argv[at + 1])
const alerts = 10_000
const pageRows = 100
const prefix = 'size'
const dayMs = 86_400_000

const folder = mkdtempSync(join(tmpdir(), 'size-'))
const socket = join(folder, 'redis.sock')
const server = spawn('redis-server', ['--port', '0', '--unixsocket', socket, '--dir', folder, '--save', ''], {
  stdio: 'ignore',
})
// Also where nobody reads what is printed any more.
process.on('exit', () => server.kill('SIGKILL'))
const log = createLogger({ level: 'silent' })
const connect = (profile: RedisProfile) => connectRedis({ target: { url: `unix://${socket}` }, profile }, log)
const redis = connect('blocking')
const blocking = connect('blocking')
try {
  print(`Redis ${await info('server', 'redis_version')}, ${await info('memory', 'mem_allocator')}`)
  await measureIds()
  await measureAlerts()
} finally {
  redis.disconnect()
  blocking.disconnect()
  server.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

async function measureIds(): Promise<void> {
  const walk = createWalkState({ redis, prefix, source: 'main', seenWindowMs: 30 * dayMs })
  const { id, version: first } = await walk.open({ id: 'first', scope: { kind: 'all' } })
  let [known, version] = [0, first]
  const before = await memory()
  const poll = async () => {
    const mark = Array.from({ length: pageRows }, (_, row) => String(7_000_000 + known + row))
    known += pageRows
    await walk.look(mark)
    const nowMs = Date.now()
    const still = { joins: [], finished: [], quarantine: [], readable: [], passedOver: 0, unrouted: 0 }
    const change = { nowMs, mark, shown: [], rowsBecome: 'covered', explains: true, ...still } as const
    version = (await walk.commit({ id, version }, change)).version
  }
  for (let size = 1_000; size <= idsMax; size *= 10) {
    while (known < size) await poll()
    const bytes = ((await memory()) - before) / known
    const [cpuMs, commands] = [await usedCpuMs(), await commandsRun()]
    for (let polls = 0; polls < 50; polls += 1) await poll()
    const [cpu, sent] = [(await usedCpuMs()) - cpuMs, (await commandsRun()) - commands]
    print(
      `${size} ids: ${bytes.toFixed(0)} bytes each; a poll of ${pageRows} news: ${(cpu / 50).toFixed(2)} ms of Redis, ${sent / 50} scripts`,
    )
  }
}

async function measureAlerts(): Promise<void> {
  const queues = createQueues({ redis, prefix, sinks: ['hook'] })
  const start = await memory()
  const one = await measureWaiting(queues)
  const several = createQueues({ redis, prefix: 'other', sinks: ['a', 'b', 'c'] })
  const three = await measureWaiting(several)
  await several.close()
  await redis.del(await redis.keys('*{other}*'))
  const size = Buffer.byteLength(JSON.stringify(row(1)))
  // What a sink adds, and what an alert takes once for all its sinks.
  const each = (three - one) / 2
  print(
    `waiting: ${one} bytes for one sink, ${three} for three: ${each} a sink, of which its row is ${size}, and ${one - each} once`,
  )
  const sink: Sink = {
    name: 'hook',
    type: 'test',
    targets: [undefined],
    send: async () => ({ kind: 'delivered', answer: { status: 204, text: '' } }),
    close: async () => {},
  }
  const settings = {
    ...{ timeoutMs: 2_000, concurrency: 50 },
    retry: { attempts: 11, initialDelayMs: 5_000, maxDelayMs: 60_000 },
  }
  const metrics = createMetrics({ version: 'bench', node: process.version })
  const sinks = new Map([['hook', { sink, settings }]])
  const sender = createSender({
    retention: () => ({ ageMs: 7 * dayMs, count: 100_000 }),
    ...{ redis, redisBlocking: blocking, prefix, sinks, metrics, log, clock: systemClock },
  })
  sender.start()
  while ((await queues.queue('hook').getCompletedCount()) < alerts)
    await new Promise((resolve) => setTimeout(resolve, 100))
  print(`sent, with its story: ${Math.round(((await memory()) - start) / alerts)} bytes`)
  await sender.stop(1_000)
  await queues.close()
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function row(id: number): Record<string, unknown> {
  return {
    ...{ id, kind: 'price', symbol: 'فولاد', slug: 'foolad', payload: { price: 5_000 + id, above: 4_990 } },
    ...{ headline: `فولاد از ${4_990 + id} ریال گذشت`, url: `https://example.com/alerts/${id}`, why: null },
    ...{
      ruleIds: ['12'],
      firedAt: new Date().toISOString(),
      notifiedAt: null,
      channels: ['web'],
      isRead: false,
    },
  }
}

/** Bytes an alert that waits for all sinks of these queues. */
async function measureWaiting(queues: SinkQueues): Promise<number> {
  const before = await memory()
  for (let id = 1; id <= alerts; id += 1_000) {
    const some = Array.from({ length: 1_000 }, (_, index) => id + index)
    await queues.enqueue(some.flatMap((each) => queues.sinks.map((sink) => job(each, sink))))
  }
  return Math.round(((await memory()) - before) / alerts)
}

function job(id: number, sink: string): DeliveryJob {
  const parsed = parseRow('main', row(id))
  if (!parsed.ok) throw new Error(parsed.reason)
  return { sink, alert: parsed.alert, seenAtMs: Date.now() }
}

async function info(section: string, field: string): Promise<string> {
  return new RegExp(`^${field}:(\\S+)`, 'm').exec(await redis.info(section))?.[1] ?? ''
}

async function memory(): Promise<number> {
  return Number(await info('memory', 'used_memory'))
}

async function usedCpuMs(): Promise<number> {
  return 1_000 * (Number(await info('cpu', 'used_cpu_user')) + Number(await info('cpu', 'used_cpu_sys')))
}

async function commandsRun(): Promise<number> {
  const text = await redis.info('commandstats')
  return Number(/^cmdstat_eval:calls=(\d+)/m.exec(text)?.[1] ?? 0)
}
