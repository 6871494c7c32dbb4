import { type Job, Queue } from 'bullmq'
import {
  type DeliveryJob,
  firedAlertOf,
  type JobData,
  jobId,
  type StoredJob,
  storedJob,
  targetTag,
} from '../../alert/job.ts'
import { NotFoundError } from '../../lib/errors.ts'
import { within } from '../../lib/time-limit.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { isRedisAway } from '../../store/connection/redis-errors.ts'
import { createFiredAlerts } from '../../store/fired-alerts.ts'
import { queuePrefix, sinkNamesKey, targetTagsName } from '../../store/keys.ts'
import type { AttemptRecord } from './attempt-record.ts'
import { putIntoQueue } from './jobs-in-no-list.ts'

/**
 * One queue a sink. Decides how a job is stored: its fixed id, which makes adding it again harmless for as long as its
 * record is kept, and how long that is. The caller decides what to do when Redis is away.
 */
export type AlertQueue = Queue<JobData, AttemptRecord>
export type AlertJob = Job<JobData, AttemptRecord>

export interface SinkQueues {
  /**
   * Resolves once every job is stored in its sink's queue. Ids are fixed, so adding one that is there already, waiting
   * or ended, changes nothing. After any throw some may be stored and some not: add all of them again. By then nothing is still
   * being stored, but for calls that ran out of time. Throws a NotFoundError for a sink that has no queue.
   */
  enqueue(jobs: readonly DeliveryJob[]): Promise<void>
  readonly sinks: readonly string[]
  /** For commands on their keys that BullMQ has no call for. */
  readonly redis: RedisClient
  /** Throws a NotFoundError for a sink that has no queue. */
  queue(sink: string): AlertQueue
  /** Also of a sink that is in no config. */
  anyQueue(sink: string): AlertQueue
  /** How many jobs of all sinks wait for their first or their next attempt, in one command: every poll asks. */
  waiting(): Promise<number>
  /** How many records of jobs acknowledged at or after `sinceMs` are kept. */
  completedSince(sink: string, sinceMs: number): Promise<number>
  /** How many were acknowledged, and how many given up on, at or after each of these instants; one command for all. */
  endedSince(
    sink: string,
    sinceMs: readonly number[],
  ): Promise<readonly (readonly [done: number, dead: number])[]>
  /** The sinks that have dead letters from `sinceMs` or later, or where Redis could not say; one command for all. */
  failingSince(sinceMs: number): Promise<ReadonlySet<string>>
  /** How many dead letters are from `sinceMs` or later. */
  failedSince(sink: string, sinceMs: number): Promise<number>
  /**
   * The same queues for another config. Callers that still have the old object can use it: no queue is closed before
   * `close`, also none of a sink that left the config.
   */
  reconfigured(next: Pick<QueuesOptions, 'sinks'>): SinkQueues
  /** Of every view. */
  close(): Promise<void>
}

interface QueuesOptions {
  /** A connection that fails fast (`commands`). */
  readonly redis: RedisClient
  readonly prefix: string
  readonly sinks: readonly string[]
  /** How long one batch of jobs may take to be stored; a page may be many batches. */
  readonly enqueueTimeoutMs?: number
}

/** `addJobs` is one pipeline: a batch keeps Redis busy for about a millisecond. */
const batchMax = 100
/** The jobs of so many sinks are stored at the same time; each sink waits for three answers of Redis. */
const sinksAtOnce = 10
/** Dead letters wait for a person. */
export const deadLetterKeptMs = 90 * 24 * 3_600_000
/** Given to the workers: each job is stored with all that it is given itself. */
export const deadLetterKept = { age: deadLetterKeptMs / 1_000, count: 1_000_000 }
/** An alert may be enqueued again until its page is marked; its record must still exist then. */
const recordKeptMin = { ageMs: 24 * 3_600_000, count: 10_000 }

export function createQueues(options: QueuesOptions): SinkQueues {
  return viewOf(options, new Map(), new Set())
}

/** `refused`: keys of jobs whose batch Redis refused to store, perhaps in the middle of a script. */
function viewOf(options: QueuesOptions, opened: Map<string, AlertQueue>, refused: Set<string>): SinkQueues {
  const { redis, prefix, sinks, enqueueTimeoutMs = 10_000 } = options
  const namesKey = sinkNamesKey(prefix)
  const fired = createFiredAlerts({ redis, prefix })
  const anyQueue = (sink: string): AlertQueue => {
    const queue = opened.get(sink) ?? openQueue(redis, prefix, sink)
    opened.set(sink, queue)
    return queue
  }
  for (const sink of sinks) anyQueue(sink)
  const queueOf = (sink: string): AlertQueue => {
    if (sinks.includes(sink)) return anyQueue(sink)
    throw new NotFoundError(`There is no sink ${sink}.`)
  }
  const putRefused = async (queue: AlertQueue, batch: readonly StoredJob[]) => {
    for (const { id } of batch.filter((job) => refused.has(queue.toKey(job.id)))) {
      await putIntoQueue(redis, queue, id)
      refused.delete(queue.toKey(id))
    }
  }
  const store = async (queue: AlertQueue, jobs: readonly StoredJob[]) => {
    const inTime = (step: Promise<unknown>) =>
      within(enqueueTimeoutMs, `storing jobs for ${queue.name}`, step)
    const storeNames = () =>
      inTime(Promise.all([redis.sadd(namesKey, queue.name), noteTargets(redis, queue, jobs)]))
    await inTime(queue.waitUntilReady())
    // Before its first alert is stored: if the sink leaves the config, its alerts are found by its name.
    await storeNames()
    for (let from = 0; from < jobs.length; from += batchMax) {
      const batch = jobs.slice(from, from + batchMax)
      try {
        await inTime(queue.getBackend().addJobs(batch.map(toEntry)))
      } catch (error) {
        if (!isRedisAway(error)) for (const { id } of batch) refused.add(queue.toKey(id))
        // Also at once: the next attempt may be made by another process, which does not know these jobs.
        await putRefused(queue, batch).catch(() => {})
        throw error
      }
      await putRefused(queue, batch)
    }
    // And after: a process without this sink may have removed the empty queue and its name in between.
    await storeNames()
  }
  return {
    sinks,
    reconfigured: (next) => viewOf({ ...options, ...next }, opened, refused),
    redis,
    queue: queueOf,
    anyQueue,
    async waiting() {
      const keys = sinks.map(anyQueue).flatMap((queue) => [queue.toKey('wait'), queue.toKey('delayed')])
      const counted = redis.eval(waitingScript, keys.length, ...keys)
      return Number(await within(readTimeoutMs, 'counting what waits', counted))
    },
    async failingSince(sinceMs) {
      if (sinks.length === 0) return new Set()
      const keys = sinks.map((sink) => anyQueue(sink).toKey('failed'))
      const some = await redis.eval(failingScript, keys.length, ...keys, sinceMs)
      return new Set((some as readonly number[]).map((at) => sinks[at - 1] ?? ''))
    },
    failedSince: (sink, sinceMs) => redis.zcount(queueOf(sink).toKey('failed'), sinceMs, '+inf'),
    async endedSince(sink, sinceMs) {
      const keys = ['completed', 'failed'].map((name) => queueOf(sink).toKey(name))
      return (await redis.eval(endedScript, keys.length, ...keys, ...sinceMs)) as [number, number][]
    },
    completedSince: (sink, sinceMs) => redis.zcount(queueOf(sink).toKey('completed'), sinceMs, '+inf'),
    async enqueue(jobs) {
      const bySink = [...Map.groupBy(jobs, (job) => job.sink)]
      for (let from = 0; from < bySink.length; from += sinksAtOnce) {
        const some = bySink.slice(from, from + sinksAtOnce)
        const stored = await Promise.allSettled(
          some.map(async ([sink, own]) => store(queueOf(sink), own.map(storedJob))),
        )
        for (const each of stored) if (each.status === 'rejected') throw each.reason
      }
      await within(enqueueTimeoutMs, 'storing when alerts fired', fired.add(jobs.map(firedAlertOf)))
    },
    async close() {
      await Promise.all([...opened.values()].map((queue) => closeQueue(queue, closeTimeoutMs)))
    },
  }
}

const readTimeoutMs = 10_000
/** KEYS wait, delayed, wait, delayed … */
const waitingScript = `
local sum = 0
for at = 1, #KEYS, 2 do sum = sum + redis.call('LLEN', KEYS[at]) + redis.call('ZCARD', KEYS[at + 1]) end
return sum
`

/** KEYS dead letters of each sink · ARGV since when · Returns the numbers of the keys with some, and of those that are no such set. */
const failingScript = `
local some = {}
for at = 1, #KEYS do
  if redis.pcall('ZCOUNT', KEYS[at], ARGV[1], '+inf') ~= 0 then some[#some + 1] = at end
end
return some
`

/** KEYS what was acknowledged, what was given up on · ARGV since when, any number of times · Returns both counts of each. */
const endedScript = `
local counts = {}
for at, since in ipairs(ARGV) do
  counts[at] = { redis.call('ZCOUNT', KEYS[1], since, '+inf'), redis.call('ZCOUNT', KEYS[2], since, '+inf') }
end
return counts
`

/** The queue of one sink on a connection of the caller, which stays open when the queue is closed. */
export function openQueue(redis: RedisClient, prefix: string, sink: string): AlertQueue {
  const queue: AlertQueue = new Queue(sink, {
    connection: redis,
    prefix: queuePrefix(prefix),
    // The check asks Redis once, when the queue is made, and a connection that breaks at that moment would leave the
    // queue broken for good. The store checks version and eviction policy.
    skipVersionCheck: true,
    streams: { events: { maxLen: 1_000 } },
  })
  // The connection reports its outages itself; without a listener the first one would end the process.
  queue.on('error', () => {})
  return queue
}

/** Within a limit: a queue whose connection was never made would wait for it. */
export async function closeQueue(queue: AlertQueue, limitMs: number): Promise<void> {
  await within(limitMs, 'closing a queue', queue.close()).catch(() => {})
}

/** For a process that knows that it is alone on this Redis: whoever had a lock there has ended. */
export async function dropLocks(redis: RedisClient, prefix: string, sinks: readonly string[]): Promise<void> {
  for (const sink of sinks) {
    const key = (name: string) => `${queuePrefix(prefix)}:${sink}:${name}`
    const jobs = await redis.lrange(key('active'), 0, -1)
    await redis.del(key('stalled-check'), ...jobs.map((id) => `${key(id)}:lock`))
  }
}

const closeTimeoutMs = 1_000

/**
 * For the step beneath BullMQ's `addBulk`, which would store the id once more, among the job's options. No size limit: a row that was
 * refused here would be tried again by every poll, and the page it is on has its own.
 */
function toEntry({ id, data }: StoredJob) {
  const job = { ...newJob, id, name: 'alert', data: JSON.stringify(data), timestamp: Date.now() }
  return { jobId: id, job }
}

const newJob = {
  ...{ opts: {}, progress: 0, failedReason: '', returnvalue: '' },
  ...{ attemptsMade: 0, attemptsStarted: 0, stalledCounter: 0 },
}

/**
 * Stores the tags of the targets, so that an alert is found whose recipient has left the config. To be done before the first
 * of these jobs is stored.
 */
export async function noteTargets(
  redis: RedisClient,
  queue: Pick<AlertQueue, 'toKey'>,
  jobs: readonly Pick<StoredJob, 'tag'>[],
): Promise<void> {
  const tags = new Set(jobs.flatMap(({ tag }) => tag ?? []))
  if (tags.size > 0) await redis.sadd(queue.toKey(targetTagsName), ...tags)
}

interface TargetsOf {
  readonly redis: RedisClient
  readonly queue: AlertQueue
  /** Those of the present config. */
  readonly targets: readonly DeliveryJob['target'][]
}

/** Every id that a job of this alert may have there. */
export async function jobIdsOf(alert: { source: string; id: number }, own: TargetsOf): Promise<string[]> {
  return (await tagsOf(own)).map((tag) => jobId(alert, tag))
}

/** The tags of all targets that alerts of this sink may have; undefined is that of a sink with one target. */
export async function tagsOf({ redis, queue, targets }: TargetsOf): Promise<(string | undefined)[]> {
  await queue.waitUntilReady()
  const tags = await redis.smembers(queue.toKey(targetTagsName))
  return [...new Set([...targets.map(targetTag), undefined, ...tags])]
}

/** How long the record of an acknowledged alert is kept, where the config says `ageMs`. */
export function recordKeptMs(ageMs: number): number {
  return Math.max(ageMs, recordKeptMin.ageMs)
}

/** For how long, and of how many alerts, the records are kept where the config says this. */
export function recordsKept(retention: Retention): { readonly age: number; readonly count: number } {
  const age = Math.ceil(recordKeptMs(retention.ageMs) / 1_000)
  return { age, count: Math.max(retention.count, recordKeptMin.count) }
}

/** How long the records of acknowledged alerts are kept, by the config. */
export interface Retention {
  readonly ageMs: number
  readonly count: number
}
