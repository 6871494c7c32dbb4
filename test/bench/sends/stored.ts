import { Queue } from 'bullmq'
import { parseRow } from '../../../src/alert/alert.ts'
import { toJobData } from '../../../src/alert/job.ts'
import { createQueues } from '../../../src/delivery/queue/queues.ts'
import { connectRedis, waitForRedis } from '../../../src/store/connection/redis.ts'
import { queuePrefix } from '../../../src/store/keys.ts'
import { createLogger } from '../../../src/telemetry/log.ts'
import type { RedisServer } from '../../support/redis.ts'
import { sinks } from './work.ts'

/** Ids of alerts: from the first to the last. */
export type Ids = readonly [first: number, last: number]

/** One queue a sink, as BullMQ alone would have it. */
export async function storeBare(redis: RedisServer, prefix: string, ids: Ids): Promise<void> {
  const queues = openBare(redis, prefix)
  await queues.add(ids)
  await queues.close()
}

export function openBare(redis: RedisServer, prefix: string) {
  const connection = redis.client()
  const queues = sinks.map((sink) => new Queue(sink, { connection, prefix: queuePrefix(prefix) }))
  return {
    add: (ids: Ids) => Promise.all(queues.map((queue) => addAll(queue, ids))),
    async close() {
      await Promise.all(queues.map((queue) => queue.close()))
      connection.disconnect()
    },
  }
}

async function addAll(queue: Queue, ids: Ids): Promise<void> {
  const jobs = jobsOf(queue.name, ids).map((job) => ({
    name: 'alert',
    data: toJobData(job),
    opts: { jobId: `main.${job.alert.id}` },
  }))
  for (let from = 0; from < jobs.length; from += 1_000) await queue.addBulk(jobs.slice(from, from + 1_000))
}

/** As the bridge's own intake stores them. */
export async function storeOurs(redis: RedisServer, prefix: string, ids: Ids): Promise<void> {
  const log = createLogger({ level: 'silent' })
  const client = connectRedis(
    { target: { url: redis.url }, profile: 'commands', connectionName: 'bench' },
    log,
  )
  await waitForRedis(client, { log, signal: AbortSignal.timeout(10_000) })
  const queues = createQueues({ redis: client, prefix, sinks, enqueueTimeoutMs: 60_000 })
  for (const sink of sinks) await queues.enqueue(jobsOf(sink, ids))
  await queues.close()
  client.disconnect()
}

function jobsOf(sink: string, [first, last]: Ids) {
  const nowMs = Date.now()
  return Array.from({ length: last - first + 1 }, (_, index) => {
    const parsed = parseRow('main', rowOf(first + index))
    if (!parsed.ok) throw new Error(parsed.reason)
    return { sink, alert: parsed.alert, seenAtMs: nowMs }
  })
}

export function rowOf(id: number) {
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
