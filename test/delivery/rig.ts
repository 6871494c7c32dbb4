import { afterEach } from 'vitest'
import { type Alert, parseRow } from '../../src/alert/alert.ts'
import type { DeliveryJob } from '../../src/alert/job.ts'
import { type AlertQueue, createQueues, type SinkQueues } from '../../src/delivery/queue/queues.ts'
import { createSender, type Sender, type SenderOptions } from '../../src/delivery/sender.ts'
import type { SinkSettings, Tuning } from '../../src/delivery/settings.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import type { Attempt, Sink } from '../../src/sinks/sink.ts'
import { connectRedis, type RedisClient, type RedisProfile } from '../../src/store/connection/redis.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts'
import { onTestFinished } from '../support/finished.ts'
import { ownTime } from '../support/own-time.ts'
import { freshPrefix, type RedisServer } from '../support/redis.ts'

export const quickSettings: SinkSettings = {
  timeoutMs: 2_000,
  concurrency: 5,
  retry: { attempts: 4, initialDelayMs: 40, maxDelayMs: 200 },
  expireAfterMs: 3_600_000,
}

export const delivered: Outcome = { kind: 'delivered', answer: { status: 200, text: 'ok' } }
export const unavailable: Extract<Outcome, { kind: 'retry' }> = {
  kind: 'retry',
  reason: 'server_error',
  sinkFault: true,
  answer: { status: 503, text: 'busy' },
}
export const rejected: Outcome = {
  kind: 'dead',
  reason: 'rejected',
  sinkFault: false,
  answer: { status: 400, text: 'no' },
}

/** One call of a sink, as the test sees it. */
export interface Send {
  readonly id: number
  readonly number: number
  readonly target?: string
  readonly atMs: number
  readonly signal: AbortSignal
}

export interface TestSink extends Sink {
  readonly sends: Send[]
  /** What it answers from now on. */
  answer: (send: Send) => Outcome | Promise<Outcome>
}

export function testSink(
  name: string,
  answer: TestSink['answer'] = () => delivered,
  targets: TestSink['targets'] = [undefined],
): TestSink {
  const sends: Send[] = []
  const sink: TestSink = {
    name,
    type: 'test',
    targets,
    sends,
    answer,
    async send(alert: Alert, { number, signal, target }: Attempt) {
      const send = {
        id: alert.id,
        number,
        signal,
        atMs: Date.now(),
        ...(target === undefined ? {} : { target }),
      }
      sends.push(send)
      return sink.answer(send)
    },
    close: async () => {},
  }
  return sink
}

/** Resolves like a sink that hangs until its signal aborts. */
export function hang({ signal }: Pick<Send, 'signal'>): Promise<Outcome> {
  return new Promise((resolve) => {
    const end = () =>
      resolve({ kind: 'retry', reason: 'aborted', sinkFault: false, answer: { text: 'aborted' } })
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}

export function alertRow(id: number, firedAt = new Date().toISOString()): Record<string, unknown> {
  return {
    id,
    kind: 'price',
    symbol: 'فولاد',
    slug: 'foolad',
    payload: { price: id },
    headline: `alert ${id}`,
    url: 'https://example.com/a',
    why: null,
    ruleIds: ['1'],
    firedAt,
    notifiedAt: null,
    channels: [],
    isRead: false,
  }
}

export function deliveryJob(sink: string, id: number, more: { firedAt?: string; target?: string } = {}) {
  const parsed = parseRow('main', alertRow(id, more.firedAt))
  if (!parsed.ok) throw new Error(parsed.reason)
  const { target } = more
  const job: DeliveryJob = {
    sink,
    alert: parsed.alert,
    seenAtMs: Date.now(),
    ...(target === undefined ? {} : { target }),
  }
  return job
}

export function jobs(sink: string, from: number, to: number): DeliveryJob[] {
  return Array.from({ length: to - from + 1 }, (_, index) => deliveryJob(sink, from + index))
}

export interface Rig {
  readonly prefix: string
  readonly redis: RedisClient
  readonly queues: SinkQueues
  readonly metrics: Metrics
  readonly lines: Record<string, unknown>[]
  /** A sender of its own, as another replica would be; stopped after the test. */
  sender(sinks: Sink[], options?: SenderSetup): Sender
  attempts(): Record<string, unknown>[]
}

interface SenderSetup {
  settings?: Partial<SinkSettings>
  tuning?: Partial<Tuning>
  more?: Partial<SenderOptions>
}

const cleanups: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Queues and senders on a real Redis, under a prefix of their own. */
export function rig(server: RedisServer, sinks: string[]): Rig {
  const prefix = freshPrefix()
  const lines: Record<string, unknown>[] = []
  const log = createLogger({
    level: 'debug',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  })
  const silent = createLogger({ level: 'silent' })
  const connect = (profile: RedisProfile) => {
    const redis = connectRedis({ target: { url: server.url }, profile }, silent)
    cleanups.push(async () => redis.disconnect())
    return redis
  }
  const redis = connect('commands')
  const retention = { ageMs: 7 * 86_400_000, count: 100_000 }
  const queues = createQueues({ redis, prefix, sinks, enqueueTimeoutMs: 1_000 })
  cleanups.push(() => queues.close())
  const metrics = createMetrics({ version: 'test', node: 'test' })
  return {
    prefix,
    redis,
    queues,
    metrics,
    lines,
    sender(own, { settings, tuning, more } = {}) {
      const sender = createSender({
        redis: connect('commands'),
        redisBlocking: connect('blocking'),
        prefix,
        sinks: new Map(own.map((sink) => [sink.name, { sink, settings: { ...quickSettings, ...settings } }])),
        metrics,
        log,
        retention: () => retention,
        clock: systemClock,
        ...(tuning ? { tuning } : {}),
        ...more,
      })
      sender.start()
      cleanups.push(() => sender.stop(1_000))
      return sender
    },
    attempts: () => lines.filter(({ msg }) => msg === 'delivery.attempt'),
  }
}

/** Calls `before` before each batch of jobs is stored in this queue, with how many they are; where it throws, none is. */
export function beforeStoring(queue: AlertQueue, before: (jobs: number) => unknown): void {
  const backend = queue.getBackend()
  const store = backend.addJobs.bind(backend)
  backend.addJobs = async (entries) => {
    await before(entries.length)
    return store(entries)
  }
}

/** Polls until `check` gives something truthy; fails with `what` after `limitMs`. */
export async function until<T>(
  what: string,
  check: () => T | Promise<T>,
  limitMs = 15_000,
): Promise<NonNullable<T>> {
  const nowMs = ownTime()
  const deadlineMs = nowMs() + limitMs
  for (;;) {
    const value = await check()
    if (value) return value
    if (nowMs() > deadlineMs) throw new Error(`not within ${limitMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** As `until`, for lists: waits until there are at least `count`. */
export async function untilCount<T>(what: string, count: number, list: () => Promise<T[]>): Promise<T[]> {
  let found: T[] = []
  await until(`${count} ${what}`, async () => {
    found = await list()
    return found.length >= count
  })
  return found
}

/**
 * Ends what waits for a sink as BullMQ would, all at once: given up on or acknowledged, one a millisecond from `fromMs` on
 * or all in the same one.
 */
export async function endWaiting(
  { redis, queues }: Pick<Rig, 'redis' | 'queues'>,
  sink: string,
  { state = 'failed', fromMs = Date.now() - 3_600_000, stepMs = 1 }: EndOptions = {},
): Promise<void> {
  const queue = queues.queue(sink)
  const answer = { number: 1, atMs: fromMs, durationMs: 1, result: 'delivered', status: 200, text: 'ok' }
  const value =
    state === 'failed' ? ['failedReason', 'rejected: 400 no'] : ['returnvalue', JSON.stringify(answer)]
  const keys = [queue.toKey('wait'), queue.toKey(state), queue.toKey('')]
  await redis.eval(endScript, keys.length, ...keys, fromMs, stepMs, ...value)
}

interface EndOptions {
  state?: 'completed' | 'failed'
  fromMs?: number
  stepMs?: number
}

const endScript = `
local ids = redis.call('LRANGE', KEYS[1], 0, -1)
for place = #ids, 1, -1 do
  local at = math.floor(ARGV[1] + (#ids - place) * ARGV[2])
  redis.call('ZADD', KEYS[2], at, ids[place])
  redis.call('HSET', KEYS[3] .. ids[place], 'finishedOn', at, 'processedOn', at, 'atm', 1, ARGV[3], ARGV[4])
end
redis.call('DEL', KEYS[1])
`

/** How Redis says, up to 7.0 and from 7.2 on, that the user of a script may not run a command in it. */
export const refusedInScript = /can't run this command|ACL failure in script/

/** A connection of a Redis user who has all rights until `may('-lpush')` takes one away. */
export async function limitedUser(server: RedisServer, profile: RedisProfile) {
  const may = (rule: string) =>
    server.client().call('ACL', 'SETUSER', 'limited', 'on', 'nopass', '~*', '&*', '+@all', rule)
  await may('+@all')
  const target = { url: server.url, username: 'limited' }
  const redis = connectRedis({ target, profile }, createLogger({ level: 'silent' }))
  onTestFinished(() => redis.disconnect())
  await until('connected', () => redis.status === 'ready')
  return { redis, may }
}
