import type { Clock } from '../lib/clock.ts'
import type { RedisClient } from '../store/redis.ts'
import { redisErrorText } from '../store/redis.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Acknowledged } from './acknowledged.ts'
import type { AttemptRecord } from './attempt-record.ts'
import {
  afterAttempt,
  type Breaker,
  type BreakerEvent,
  type BreakerLimits,
  closedBreaker,
} from './breaker.ts'
import { type AlertJob, processJob } from './processor.ts'
import { delayedDues, promoteDelayed, promoteEarliest, viewOf } from './queue-reading.ts'
import { type AlertQueue, closeQueue, openQueue } from './queues.ts'
import type { SinkEntry, Tuning } from './settings.ts'
import { settlesWithin, within } from './time-limit.ts'
import { stuckSince } from './watchdog.ts'
import { type AlertWorker, destroyWorker, noLimit, openWorker } from './worker.ts'

/**
 * The life of one sink's delivery: its worker, its breaker and the queue that both hold. Keeps that a lane depends on
 * no other, and that it can be stopped in bounded time whatever Redis and the sink do.
 */
export interface LaneOptions extends SinkEntry {
  readonly redis: RedisClient
  readonly redisBlocking: RedisClient
  readonly prefix: string
  readonly acknowledged: Acknowledged
  readonly metrics: Metrics
  readonly log: Logger
  readonly clock: Clock
  readonly tuning: Tuning
  readonly onBreaker?: (event: BreakerNews) => void
}

export interface BreakerNews {
  readonly sink: string
  readonly state: 'open' | 'closed'
  /** Why it opened. */
  readonly reason: string
}

export interface LaneState {
  readonly sink: string
  readonly type: string
  readonly breaker: 'open' | 'closed'
  readonly reason?: string
  readonly openSinceMs?: number
  /** Until when this process asked the queue to be held. */
  readonly heldUntilMs?: number
  readonly sending: number
}

interface Running {
  readonly controller: AbortController
  readonly done: Promise<unknown>
}

export class Lane {
  readonly #options: LaneOptions
  readonly #queue: AlertQueue
  readonly #limits: BreakerLimits
  readonly #running = new Map<string, Running>()
  /** Alerts that were promoted before their time, and when that would be. */
  readonly #dueAtMs = new Map<string, number>()
  #worker: AlertWorker | undefined
  #breaker: Breaker = closedBreaker
  #heldUntilMs = 0
  #stopping = false
  #watch: NodeJS.Timeout | undefined
  #probe: NodeJS.Timeout | undefined
  #stuckSinceMs: number | undefined

  constructor(options: LaneOptions) {
    this.#options = options
    const { redis, prefix, sink, settings, tuning } = options
    this.#queue = openQueue(redis, prefix, sink.name)
    const { initialDelayMs, maxDelayMs } = settings.retry
    this.#limits = {
      faultsToOpen: tuning.faultsToOpen,
      firstPauseMs: Math.min(initialDelayMs, tuning.probePauseMsMax),
      pauseMsMax: Math.min(maxDelayMs, tuning.probePauseMsMax),
    }
  }

  start(): void {
    this.#worker = this.#openWorker()
    this.#watch = setInterval(() => void this.#lookAfterWorker(), this.#options.tuning.watchEveryMs)
  }

  /**
   * Takes no more jobs and lets running sends finish; those that have not by then are aborted a little before the
   * deadline, so that their jobs still go back to the queue with nothing burnt. Never takes longer than `deadlineMs`.
   */
  async stop(deadlineMs: number): Promise<void> {
    this.#stopping = true
    clearInterval(this.#watch)
    clearTimeout(this.#probe)
    const endMs = Math.min(endMsMax, deadlineMs / 5)
    const reserveMs = Math.min(abortReserveMs, deadlineMs / 4)
    const worker = this.#worker
    if (worker) {
      const closed = worker.close()
      if (!(await settlesWithin(deadlineMs - reserveMs - endMs, closed))) {
        for (const { controller } of this.#running.values()) controller.abort(new Error('shutting down'))
        await settlesWithin(reserveMs, closed)
      }
    }
    await Promise.all([worker && destroyWorker(worker, endMs), closeQueue(this.#queue, endMs)])
  }

  /** Over all replicas, until resumed. */
  async pause(): Promise<void> {
    await within(commandTimeoutMs, 'pausing the sink', this.#queue.pause())
  }

  async resume(): Promise<void> {
    await within(commandTimeoutMs, 'resuming the sink', this.#queue.resume())
  }

  state(): LaneState {
    const { sink, clock } = this.#options
    const breaker = this.#breaker
    return {
      sink: sink.name,
      type: sink.type,
      breaker: breaker.state,
      ...(breaker.state === 'open' ? { reason: breaker.reason, openSinceMs: breaker.sinceMs } : {}),
      ...(this.#heldUntilMs > clock.now() ? { heldUntilMs: this.#heldUntilMs } : {}),
      sending: this.#running.size,
    }
  }

  #openWorker(): AlertWorker {
    const { redisBlocking, prefix, sink, settings, tuning, log } = this.#options
    const worker = openWorker({
      redis: redisBlocking,
      prefix,
      sink: sink.name,
      settings,
      tuning,
      log,
      process: (job, token) => this.#process(job, token),
      lostLocks: (jobIds) => {
        for (const id of jobIds) this.#running.get(id)?.controller.abort(new Error('the lock was lost'))
      },
    })
    if (this.#breaker.state === 'open') worker.concurrency = 1
    return worker
  }

  async #process(job: AlertJob, token: string): Promise<AttemptRecord> {
    const id = job.id ?? ''
    // After an outage a job may come back while its first send still runs here: what that one brings is waited for,
    // and consulted by the next step.
    await this.#running.get(id)?.done.catch(() => {})
    const controller = new AbortController()
    const { lockMs } = this.#options.tuning
    const done = processJob(job, token, controller.signal, {
      ...this.#options,
      lockMs,
      takeDueAt: (jobId) => this.#takeDueAt(jobId),
      observe: (event) => this.#observe(event),
      hold: (forMs) => this.#hold(forMs),
    })
    const running = { controller, done }
    this.#running.set(id, running)
    try {
      return await done
    } finally {
      if (this.#running.get(id) === running) this.#running.delete(id)
    }
  }

  #takeDueAt(jobId: string): number | undefined {
    const dueAtMs = this.#dueAtMs.get(jobId)
    this.#dueAtMs.delete(jobId)
    return dueAtMs
  }

  async #observe(event: BreakerEvent): Promise<void> {
    const { clock } = this.#options
    const step = afterAttempt(this.#breaker, event, this.#limits, clock.now())
    this.#breaker = step.breaker
    if (step.change !== undefined) this.#tell(step.change === 'opened' ? 'open' : 'closed', event.reason)
    if (step.holdMs !== undefined) await this.#hold(step.holdMs)
    if (step.change === 'closed') void this.#promoteAll()
    if (this.#breaker.state === 'open' && step.holdMs !== undefined) this.#probeIn(step.holdMs)
  }

  #tell(state: 'open' | 'closed', reason: string): void {
    const { sink, settings, metrics, log, onBreaker } = this.#options
    metrics.circuitOpen.set({ sink: sink.name }, state === 'open' ? 1 : 0)
    if (this.#worker) this.#worker.concurrency = state === 'open' ? 1 : settings.concurrency
    log[state === 'open' ? 'error' : 'info']({ sink: sink.name, state, reason }, 'delivery.breaker')
    if (state === 'closed') clearTimeout(this.#probe)
    try {
      onBreaker?.({ sink: sink.name, state, reason })
    } catch (error) {
      log.error({ sink: sink.name, err: error }, 'telling of the breaker failed')
    }
  }

  /** Over all replicas; never shortens a hold. It starts the window of the sink's rate limit anew. */
  async #hold(forMs: number): Promise<void> {
    const { sink, settings, clock, log } = this.#options
    try {
      const max = (settings.rateLimit ?? noLimit).max
      const heldMs = await within(commandTimeoutMs, 'reading the hold', this.#queue.getRateLimitTtl(max))
      if (heldMs < forMs)
        await within(commandTimeoutMs, 'holding the queue', this.#queue.rateLimit(Math.ceil(forMs)))
      this.#heldUntilMs = clock.now() + Math.max(heldMs, forMs)
    } catch (error) {
      log.debug({ sink: sink.name, reason: redisErrorText(error) }, 'queue not held')
    }
  }

  /** When the pause is over and nothing waits, the alert that would be next in hours is the probe. */
  #probeIn(forMs: number): void {
    clearTimeout(this.#probe)
    if (this.#stopping) return
    this.#probe = setTimeout(() => void this.#seekProbe(), forMs + probeSlackMs)
  }

  async #seekProbe(): Promise<void> {
    if (this.#stopping || this.#breaker.state !== 'open') return
    const { sink, log } = this.#options
    try {
      const due = this.#running.size === 0 && (await promoteEarliest(this.#queue))
      if (due) this.#dueAtMs.set(due.jobId, due.atMs)
    } catch (error) {
      log.debug({ sink: sink.name, reason: redisErrorText(error) }, 'no probe')
    }
    if (this.#breaker.state === 'open') this.#probeIn(this.#breaker.pauseMs)
  }

  /** The sink answers again: what it refused meanwhile goes now, at no cost to its attempts if it fails. */
  async #promoteAll(): Promise<void> {
    const { sink, log } = this.#options
    try {
      this.#dueAtMs.clear()
      for (const { jobId, atMs } of await delayedDues(this.#queue)) this.#dueAtMs.set(jobId, atMs)
      await promoteDelayed(this.#queue)
    } catch (error) {
      log.debug({ sink: sink.name, reason: redisErrorText(error) }, 'delayed alerts keep their schedule')
    }
  }

  async #lookAfterWorker(): Promise<void> {
    const { sink, settings, tuning, clock, log } = this.#options
    const max = (settings.rateLimit ?? noLimit).max
    const view = await viewOf(this.#queue, max).catch(() => undefined)
    this.#stuckSinceMs = stuckSince(view, this.#stuckSinceMs, clock.now())
    const stuckMs = clock.now() - (this.#stuckSinceMs ?? clock.now())
    if (this.#stopping || stuckMs < tuning.stuckMs) return
    this.#stuckSinceMs = undefined
    log.error(
      { sink: sink.name, waiting: view?.waiting, stuckMs },
      'nobody takes the waiting jobs: new worker',
    )
    const dead = this.#worker
    this.#worker = this.#openWorker()
    if (dead) await destroyWorker(dead, endMsMax)
  }
}

const commandTimeoutMs = 5_000
const abortReserveMs = 3_000
const endMsMax = 500
const probeSlackMs = 100
