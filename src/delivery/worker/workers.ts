import type { Clock } from '../../lib/clock.ts'
import { settlesWithin } from '../../lib/time-limit.ts'
import { duplicateRedis, type RedisClient } from '../../store/connection/redis.ts'
import type { AlertJob } from '../queue/queues.ts'
import { checkStalled, TakenJobs } from './stalled-check.ts'
import { endMsMax, recordMsMax } from './stop-times.ts'
import { type AlertWorker, destroyWorker, openWorker, type WorkerOptions } from './worker.ts'

/**
 * The worker of one lane, and those that it replaced. A replaced worker takes no more jobs, but may still be sending and
 * renew the locks of its jobs: it is closed only when these sends have ended.
 */
export class Workers {
  readonly #options: WorkersOptions
  readonly #replaced = new Set<OpenWorker>()
  #current: OpenWorker | undefined
  readonly taken = new TakenJobs()
  #concurrency: number
  /** When (wall clock, which BullMQ uses) Redis said that the queue is empty; undefined once a job was taken since. */
  #emptyAtMs: number | undefined
  #emptyMs = Number.NEGATIVE_INFINITY

  constructor(options: WorkersOptions) {
    this.#options = options
    this.#concurrency = options.settings.concurrency
  }

  get isOpen(): boolean {
    return this.#current !== undefined
  }

  /** When the queue was last empty, by the monotonic clock: every job taken since came into it later. Known once one is taken. */
  get emptyMs(): number {
    return this.#emptyMs
  }

  get concurrency(): number {
    return this.#concurrency
  }

  set concurrency(jobs: number) {
    this.#concurrency = jobs
    if (this.#current) this.#current.worker.concurrency = jobs
  }

  open(): void {
    this.#current = this.#open(this.#options.redis)
  }

  /** A new worker on a connection of its own: the one that all lanes share may be the cause. */
  replace(runningSends: readonly Promise<unknown>[]): void {
    const before = this.#current
    const own = duplicateRedis(this.#options.redis)
    this.#current = { ...this.#open(own), own }
    if (before) void this.#retire(before, runningSends)
  }

  /** Takes no more jobs; resolves when all that were taken have been recorded. */
  async close(): Promise<void> {
    this.#current?.endCheck()
    await Promise.all(this.#all().map(({ worker }) => worker.close()))
  }

  /** Within the limit, whatever state Redis is in. */
  async destroy(limitMs: number): Promise<void> {
    await Promise.all(this.#all().map((each) => this.#end(each, limitMs)))
  }

  #all(): OpenWorker[] {
    return [...(this.#current ? [this.#current] : []), ...this.#replaced]
  }

  #open(redis: RedisClient): OpenWorker {
    const worker = openWorker({
      ...this.#options,
      redis,
      process: (job, token) => {
        this.taken.take()
        this.#noteTaken(job)
        return this.#options.process(job, token)
      },
    })
    worker.concurrency = this.#concurrency
    let hasJustFailed = false
    worker.on('failed', () => {
      hasJustFailed = true
      queueMicrotask(() => (hasJustFailed = false))
    })
    worker.on('drained', () => {
      // BullMQ says so too where the rate limit is reached. After a failed attempt the worker does not know whether it is.
      if (hasJustFailed) void this.#lookIfEmpty(redis, worker.toKey('wait')).catch(() => {})
      else if (!worker['isRateLimited']()) void this.#noteDrained(redis, worker).catch(() => {})
    })
    const { stalledIntervalMs } = this.#options.tuning
    return { worker, endCheck: checkStalled(worker, stalledIntervalMs, () => this.taken.may) }
  }

  /**
   * Empty, unless what waits is kept by an operator's pause. Noted before Redis is asked: the next alert may come meanwhile. But
   * not before an alert is taken that was fetched earlier, perhaps in the same millisecond.
   */
  async #noteDrained(redis: RedisClient, worker: AlertWorker): Promise<void> {
    const atMs = Date.now()
    await new Promise((resolve) => setImmediate(resolve))
    this.#emptyAtMs = atMs
    const isPaused = (await redis.hexists(worker.toKey('meta'), 'paused')) === 1
    if (!isPaused || (await redis.llen(worker.toKey('wait'))) === 0) return
    if (this.#emptyAtMs === atMs) this.#emptyAtMs = undefined
  }

  async #lookIfEmpty(redis: RedisClient, waitKey: string): Promise<void> {
    if ((await redis.llen(waitKey)) === 0) this.#emptyAtMs = Date.now()
  }

  /** Several are fetched before the first one is processed: one that was fetched before the queue was empty may be old. */
  #noteTaken({ processedOn }: AlertJob): void {
    if (this.#emptyAtMs === undefined || (processedOn ?? 0) < this.#emptyAtMs) return
    this.#emptyMs = this.#options.clock.monotonicMs()
    this.#emptyAtMs = undefined
  }

  async #retire(before: OpenWorker, runningSends: readonly Promise<unknown>[]): Promise<void> {
    this.#replaced.add(before)
    before.endCheck()
    const closed = before.worker.close()
    await Promise.allSettled(runningSends)
    await settlesWithin(recordMsMax, closed)
    await this.#end(before, endMsMax)
  }

  async #end(opened: OpenWorker, limitMs: number): Promise<void> {
    opened.endCheck()
    await destroyWorker(opened.worker, limitMs)
    opened.own?.disconnect()
    this.#replaced.delete(opened)
  }
}

interface WorkersOptions extends WorkerOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
}

interface OpenWorker {
  readonly worker: AlertWorker
  readonly endCheck: () => void
  readonly own?: RedisClient
}
