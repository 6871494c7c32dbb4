import { isNotConnectionError, Job, Worker } from 'bullmq'
import type { JobData } from '../../alert/job.ts'
import { toError } from '../../lib/errors.ts'
import { settlesWithin } from '../../lib/time-limit.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { isRedisAway, redisErrorText } from '../../store/connection/redis-errors.ts'
import { queuePrefix, refusedName } from '../../store/keys.ts'
import type { Logger } from '../../telemetry/log.ts'
import { RetryLater } from '../attempt/processor.ts'
import type { AttemptRecord } from '../queue/attempt-record.ts'
import { putAllIntoQueue, putIntoQueue } from '../queue/jobs-in-no-list.ts'
import { type AlertJob, type AlertQueue, deadLetterKept, type Retention } from '../queue/queues.ts'
import type { QueueSettings, Tuning } from '../settings.ts'
import { jobOptions, trimming } from './job-options.ts'
import { keepingNone } from './unknown-jobs.ts'

/** BullMQ's consumer of one sink's queue, with every option that matters to the promise. */
export type AlertWorker = Worker<JobData, AttemptRecord>

export interface WorkerOptions {
  /** A connection that waits for ever (`blocking`); the worker makes a second one of it for its blocking read. */
  readonly redis: RedisClient
  readonly prefix: string
  readonly sink: string
  /** Of this lane, on another connection. */
  readonly queue: AlertQueue
  readonly settings: QueueSettings
  readonly tuning: Tuning
  readonly log: Logger
  /** Alerts that are taken at the same time may go out as one message: as many as may be are taken before the first is begun with. */
  readonly gathers: boolean
  /** By the present config. */
  retention(): Retention
  process(job: AlertJob, token: string): Promise<AttemptRecord>
  /** A job is about to be asked for under this token, when the worker waited for one. */
  asks(token: string): void
  /** Redis answered that these locks are not ours any more. */
  lostLocks(jobIds: readonly string[]): void
  /** Redis has the acknowledgement of this job. */
  recorded(jobId: string): void
  /** Resolves once any process that takes this job can read that it was acknowledged. */
  storeAcknowledged(jobId: string): Promise<void>
}

export function openWorker(options: WorkerOptions): AlertWorker {
  const { sink, settings, tuning, log } = options
  const { max, per } = settings.rateLimit
  const recordsToKeep = trimming(options.retention, () => options.queue.getCompletedCount())
  const worker: AlertWorker = new Worker(
    sink,
    async (job, token) => {
      Object.assign(job.opts, jobOptions)
      const record = await options.process(job, token ?? '')
      job.opts.removeOnComplete = await recordsToKeep()
      return record
    },
    {
      connection: options.redis,
      prefix: queuePrefix(options.prefix),
      concurrency: settings.concurrency,
      limiter: { max, duration: per },
      // Looks again at a held queue this often: a hold may end early, and delayed jobs are promoted meanwhile.
      maximumRateLimitDelay: 5_000,
      removeOnFail: deadLetterKept,
      // Renewed at half of it, so sends may take longer. Short, because a killed process keeps its jobs for as long.
      lockDuration: tuning.lockMs,
      stalledInterval: tuning.stalledIntervalMs,
      // Every kill, and every lost connection, counts as a stall. BullMQ's default, 1, fails the job at the second one
      // without having run it; only an alert that ends the process each time reaches this.
      maxStalledCount: 100,
      // Its own check would run all the time: see `checkStalled`.
      skipStalledCheck: true,
      // Seconds. A worker whose queue has delayed jobs waits as long; whatever is added ends the wait.
      drainDelay: 10,
      runRetryDelay: retryDelayMs,
      // Without the check BullMQ takes Redis for version 5, which can only wait for whole seconds: every retry would be
      // late by up to one. On this connection the check waits until an outage is over.
      skipVersionCheck: false,
      settings: { backoffStrategy: (_made, _type, error) => pauseAfter(error) },
    },
  )
  watchTaking(worker, options)
  watchEnding(worker, options)
  putAfterRefusals(worker, options)
  worker.on('lockRenewalFailed', options.lostLocks)
  worker.on('completed', (job) => options.recorded(job.id ?? ''))
  worker.on('error', (error) => {
    // The connection logs an outage once; a missing lock follows from one.
    const level =
      isRedisAway(error) || /^(Missing lock|could not renew lock)/.test(error.message) ? 'debug' : 'warn'
    log[level]({ sink, reason: redisErrorText(error) }, 'worker')
  })
  return worker
}

/**
 * Tells before each question for a job. Where jobs wait and Redis refuses to hand one out (full, without its replicas, a right that
 * was taken away), BullMQ asks again at once: 2,000 times a second. Only where it cannot connect does it wait by itself.
 */
function watchTaking(
  worker: AlertWorker,
  { asks, redis, gathers }: Pick<WorkerOptions, 'asks' | 'redis' | 'gathers'>,
): void {
  const take = worker['moveToActive'].bind(worker)
  worker['moveToActive'] = async (token, name) => {
    asks(token)
    try {
      const known = (job: AlertJob | undefined) => [job?.id]
      const job = await keepingNone({ worker, redis, token, known }, () => take(token, name))
      // To BullMQ something is due then. Else it would begin with none before it has taken as many as it may, one question after the other.
      if (job !== undefined && !gathers) worker['blockUntil'] = longAgo
      return job
    } catch (error) {
      if (!worker.closing && isNotConnectionError(toError(error))) await worker.delay(retryDelayMs)
      throw error
    }
  }
}

/** The scripts that end a job take the next one. The worker makes its jobs of this class. */
function watchEnding(worker: AlertWorker, options: WorkerOptions): void {
  const { redis } = options
  const guarded = guardedGivingBack(worker, options)
  const knownAfter = ({ id }: AlertJob, next: unknown) => [
    id,
    Array.isArray(next) ? String(next[1]) : undefined,
  ]
  class WatchedJob extends Job<JobData, AttemptRecord> {
    /** As the library's own, which also writes the record as JSON once more and tells traces that nobody gets. */
    override async moveToCompleted(value: AttemptRecord, token: string, fetchNext = true): Promise<Ended> {
      const known = (ended: { readonly result: unknown } | undefined) => knownAfter(this, ended?.result)
      const { result, finishedOn } = await keepingNone({ worker, redis, token, known }, () =>
        this.backend.moveToCompleted(this, value, this.opts.removeOnComplete ?? false, token, fetchNext),
      )
      this.finishedOn = finishedOn
      this.attemptsMade += 1
      return result
    }

    override moveToFailed<E extends Error>(error: E, token: string, fetchNext?: boolean): Promise<Ended> {
      const known = (next: Ended | undefined) => knownAfter(this, next)
      const fail = () => super.moveToFailed(error, token, fetchNext)
      return guarded(this.id ?? '', () => keepingNone({ worker, redis, token, known }, fail))
    }
  }
  Object.defineProperty(worker, 'Job', { value: WatchedJob })
}

type Ended = Awaited<ReturnType<AlertJob['moveToFailed'] | AlertJob['moveToCompleted']>>

/**
 * When Redis refuses to record an acknowledged job, BullMQ puts it back as one that failed, perhaps much later, and it is due at once.
 * So the acknowledgement is stored first; where that fails, too, nobody takes the job before its lock expires. A script that was
 * refused in its middle has already taken the job from its list.
 */
function guardedGivingBack(worker: AlertWorker, { redis, storeAcknowledged }: WorkerOptions) {
  return async <T>(id: string, giveBack: () => Promise<T>): Promise<T> => {
    try {
      await storeAcknowledged(id)
      return await giveBack()
    } catch (error) {
      if (!isRedisAway(error)) void putUntilTaken(worker, redis, id)
      throw error
    }
  }
}

async function putUntilTaken(worker: AlertWorker, redis: RedisClient, id: string): Promise<void> {
  const isPut = () =>
    putIntoQueue(redis, worker, id).then(
      () => true,
      () => false,
    )
  while (!worker.closing && !(await isPut())) await worker.delay(retryDelayMs)
}

/**
 * A script that was refused in its middle may have taken jobs from their list: one that was to wait or to probe the sink, or those
 * whose delay ended, which nobody knows here. Once nothing is refused any more, all that are in no list are put back; by the next
 * worker where this one ends before.
 */
function putAfterRefusals(worker: AlertWorker, { redis, prefix, queue }: WorkerOptions): void {
  const markKey = worker.toKey(refusedName)
  let [refusals, isLooking, lookedMs] = [0, false, Number.NEGATIVE_INFINITY]
  const look = async (): Promise<void> => {
    for (let seen = -1; seen !== refusals && !worker.closing; ) {
      const before = refusals
      await worker.delay(Math.max(quietMs, lookedMs + looksApartMs - performance.now()))
      if (before !== refusals || worker.closing) continue
      const isDone = await putAllIntoQueue(redis, worker, prefix).then(
        () => true,
        () => false,
      )
      if (isDone) [seen, lookedMs] = [before, performance.now()]
    }
    if (!worker.closing) await redis.del(markKey).catch(() => {})
  }
  const begin = () => {
    if (isLooking) return
    isLooking = true
    void look().finally(() => (isLooking = false))
  }
  const note = (error: Error) => {
    if (error.name !== 'ReplyError' || isRedisAway(error)) return
    refusals += 1
    redis.set(markKey, 1, 'EX', markedSeconds).catch(() => {})
    begin()
  }
  for (const backend of [worker.getBackend(), queue.getBackend()]) tellFailures(backend, note)
  redis.exists(markKey).then(
    (marked) => marked && begin(),
    () => {},
  )
}

/** Tells of each script that failed, also where whoever asked for it continues without. */
function tellFailures(backend: ReturnType<AlertQueue['getBackend']>, told: (error: Error) => void): void {
  const run = backend['execCommand'].bind(backend)
  backend['execCommand'] = (...given) => {
    const answer: unknown = run(...given)
    if (answer instanceof Promise) answer.catch(told)
    return answer
  }
}

const longAgo = 1
const retryDelayMs = 1_000
/** More than a worker waits after a refusal. */
const quietMs = 2_000
/** With 100,000 alerts a look takes about half a second of Redis. */
const looksApartMs = 60_000
const markedSeconds = 24 * 3_600

/**
 * Ends a worker whatever state Redis is in. `close()` alone may wait for ever: for an `end` event that a connection
 * which is away never emits, or for a connection that was never made.
 */
export async function destroyWorker(worker: AlertWorker, limitMs: number): Promise<void> {
  const backend = worker.getBackend()
  void worker.close(true).catch(() => {})
  void backend.close(true).catch(() => {})
  void backend.blockingClient?.then((client) => client.disconnect()).catch(() => {})
  await settlesWithin(limitMs, worker.close())
}

/**
 * `processJob` throws only its own errors; any other error is from Redis, which did not record that a job is done. That
 * is tried again soon: until then only this process and the job's own field know it.
 */
function pauseAfter(error: Error | undefined): number {
  return Math.max(1, error instanceof RetryLater ? error.delayMs : recordAgainMs)
}

const recordAgainMs = 2_000
