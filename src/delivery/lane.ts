import type { Clock } from '../lib/clock.ts'
import { createBreakerStore } from '../store/breakers.ts'
import type { RedisClient } from '../store/redis.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Acknowledged } from './acknowledged.ts'
import type { AttemptRecord } from './attempt-record.ts'
import { Batcher } from './batcher.ts'
import type { BreakerEvent } from './breaker.ts'
import { type BreakerNews, Circuit, type CircuitState } from './circuit.ts'
import { ClockWatch } from './clock-watch.ts'
import { sendMembers, sendMsMax } from './deliver.ts'
import { createJobMarks, type JobMarks } from './job-marks.ts'
import type { Tried } from './messenger.ts'
import { type AlertJob, processJob } from './processor.ts'
import { viewOf } from './queue-reading.ts'
import { type AlertQueue, closeQueue, openQueue } from './queues.ts'
import { queueSettings, type SinkEntry, type SinkSettings, type Tuning } from './settings.ts'
import { settlesWithin, within } from './time-limit.ts'
import { signOf } from './verdict.ts'
import { stuckSince } from './watchdog.ts'
import { type AlertWorker, destroyWorker, noLimit, openWorker } from './worker.ts'

/**
 * The life of one sink's delivery: its worker, and the circuit that holds its queue. Keeps that a lane depends on no
 * other, and that it can be stopped in bounded time whatever Redis and the sink do. A sink whose config changes gets a
 * new lane while the one before still waits for its last sends; between the two no alert is sent twice.
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
  readonly onBreaker?: (news: BreakerNews) => void
  /** The lane of this sink until now: it is being stopped, or about to be. */
  readonly before?: Lane | undefined
}

export interface LaneState extends CircuitState {
  readonly sink: string
  readonly type: string
  /** How many alerts this process is sending. */
  readonly sending: number
}

interface Running {
  readonly controller: AbortController
  readonly done: Promise<unknown>
  /** Renews the job's lock; false when it is not ours any more. */
  renew(): Promise<boolean>
}

export class Lane {
  readonly #options: LaneOptions
  readonly #settings: SinkSettings
  readonly #queue: AlertQueue
  readonly #batcher: Batcher | undefined
  readonly #circuit: Circuit
  readonly #clockWatch: ClockWatch
  readonly #marks: JobMarks
  readonly #running = new Map<string, Running>()
  /** Those that BullMQ keeps no lock of. */
  #unrenewed = new Set<Running>()
  #worker: AlertWorker | undefined
  #watch: NodeJS.Timeout | undefined
  #stuckSinceMs: number | undefined
  #before: Lane | undefined
  #stopping = false

  constructor(options: LaneOptions) {
    this.#options = options
    const { redis, prefix, sink, tuning, metrics, log, clock, onBreaker, before } = options
    const settings = queueSettings(options)
    this.#settings = settings
    this.#queue = openQueue(redis, prefix, sink.name)
    this.#marks = createJobMarks(redis, this.#queue)
    this.#before = before
    this.#circuit = new Circuit({
      sink: sink.name,
      queue: this.#queue,
      settings,
      tuning,
      metrics,
      log,
      clock,
      onBreaker,
      breakers: createBreakerStore(redis, prefix),
      before: before === undefined ? undefined : before.#circuit,
      sending: () => this.#running.size,
      widthChanged: () => {
        if (this.#worker) this.#worker.concurrency = this.#concurrency()
      },
    })
    this.#clockWatch = new ClockWatch(clock)
    const { batch } = sink
    this.#batcher =
      batch &&
      new Batcher({
        batch,
        rateLimit: options.settings.rateLimit,
        clock,
        send: (members, signal) => sendMembers(members, signal, options),
        isOpen: () => this.#circuit.isOpen,
        refused: (tried) => void this.#circuit.observe(eventOf(tried, clock)),
        before: before === undefined ? undefined : before.#batcher,
      })
  }

  start(): void {
    this.#worker = this.#openWorker()
    this.#circuit.start()
    this.#watch = setInterval(() => void this.#lookAfterWorker(), this.#options.tuning.watchEveryMs)
  }

  /** How long `stop` may take at most: every send that runs has the time that its sink gives it. */
  get stopMsMax(): number {
    return stopMsMaxOf(this.#options.settings)
  }

  /** How many alerts this process is sending. */
  get sending(): number {
    return this.#running.size
  }

  /**
   * Takes no more jobs and lets running sends finish; those that have not by then are aborted a little before the
   * deadline, so that their jobs still go back to the queue with nothing burnt. Never takes longer than `deadlineMs`, and
   * does not wait for a Redis that is away once nothing is being sent.
   */
  async stop(deadlineMs: number = this.stopMsMax): Promise<void> {
    this.#stopping = true
    clearInterval(this.#watch)
    this.#circuit.stop()
    this.#batcher?.stop()
    const endMs = Math.min(endMsMax, deadlineMs / 5)
    const reserveMs = Math.min(abortReserveMs, deadlineMs / 4)
    const worker = this.#worker
    if (worker) {
      const closed = worker.close()
      const ended = Promise.race([closed, this.#onlyRedisIsLeft(closed)])
      if (!(await settlesWithin(deadlineMs - reserveMs - endMs, ended))) {
        for (const { controller } of this.#running.values()) controller.abort(new Error('shutting down'))
        await settlesWithin(reserveMs, closed)
      }
    }
    await Promise.all([worker && destroyWorker(worker, endMs), closeQueue(this.#queue, endMs)])
    await settlesWithin(endMs, this.#options.sink.close())
  }

  /** That lane has stopped: nothing of it is to be waited for any more. */
  forget(lane: Lane): void {
    if (this.#before === lane) this.#before = lane.#before
  }

  /** Resolves once no send of this job runs, here or in the lane before. */
  async #sendOver(jobId: string): Promise<void> {
    await this.#running.get(jobId)?.done.catch(() => {})
    if (this.#before) await this.#before.#sendOver(jobId)
  }

  /** Resolves when no send has run for a while: time enough for a Redis that is there to record them all. */
  async #onlyRedisIsLeft(closed: Promise<unknown>): Promise<void> {
    let quietMs = 0
    while (quietMs < recordMsMax && !(await settlesWithin(lookEveryMs, closed)))
      quietMs = this.#running.size === 0 ? quietMs + lookEveryMs : 0
  }

  /** Over all replicas, until resumed. */
  async pause(): Promise<void> {
    await within(commandTimeoutMs, 'pausing the sink', this.#queue.pause())
  }

  async resume(): Promise<void> {
    await within(commandTimeoutMs, 'resuming the sink', this.#queue.resume())
  }

  state(): LaneState {
    const { name, type } = this.#options.sink
    return { sink: name, type, sending: this.sending, ...this.#circuit.state() }
  }

  #openWorker(): AlertWorker {
    const { redisBlocking, prefix, sink, tuning, log } = this.#options
    const worker = openWorker({
      redis: redisBlocking,
      prefix,
      sink: sink.name,
      settings: this.#settings,
      tuning,
      log,
      process: (job, token) => this.#process(job, token),
      lostLocks: (jobIds) => {
        for (const id of jobIds) this.#running.get(id)?.controller.abort(new Error('the lock was lost'))
      },
    })
    worker.concurrency = this.#concurrency()
    return worker
  }

  /** Alerts that go out as one message do not press a sink that has just come back; one at a time they would be many. */
  #concurrency(): number {
    const { isOpen, width } = this.#circuit
    const { concurrency } = this.#settings
    if (this.#options.sink.batch !== undefined) return isOpen ? 1 : concurrency
    return Math.min(width, concurrency)
  }

  async #process(job: AlertJob, token: string): Promise<AttemptRecord> {
    const id = job.id ?? ''
    // After an outage a job may come back while its first send still runs here: what that one brings is waited for,
    // and consulted by the next step.
    await this.#sendOver(id)
    const circuit = this.#circuit
    const controller = new AbortController()
    // Fetched while the lane was already stopping: it goes back as it came.
    if (this.#stopping) controller.abort(new Error('stopping'))
    const done = processJob(job, token, controller.signal, {
      ...this.#options,
      lockMs: this.#options.tuning.lockMs,
      batcher: this.#batcher,
      marks: this.#marks,
      observe: (event) => circuit.observe(event),
      hold: (forMs) => circuit.hold(forMs),
    })
    const renew = async () => (await job.extendLock(token, this.#options.tuning.lockMs)) === 1
    const running = { controller, done, renew }
    this.#running.set(id, running)
    try {
      return await done
    } finally {
      if (this.#running.get(id) === running) this.#running.delete(id)
    }
  }

  /** BullMQ takes the age of a lock from the wall clock: it renews none from before that was set back. */
  async #renewLocks(): Promise<void> {
    for (const running of this.#unrenewed) {
      if (![...this.#running.values()].includes(running)) this.#unrenewed.delete(running)
      else if (!(await running.renew().catch(() => true)))
        running.controller.abort(new Error('the lock was lost'))
    }
  }

  async #lookAfterWorker(): Promise<void> {
    const backMs = this.#clockWatch.setBackMs()
    if (backMs > 0) this.#unrenewed = new Set(this.#running.values())
    void (backMs > 0 ? this.#circuit.clockSetBack(backMs) : this.#circuit.look())
    void this.#renewLocks()
    const { sink, tuning, clock, log } = this.#options
    const { max } = this.#settings.rateLimit ?? noLimit
    const view = await viewOf(this.#queue, max).catch(() => undefined)
    const nowMs = clock.monotonicMs()
    this.#stuckSinceMs = stuckSince(view, this.#stuckSinceMs, nowMs)
    const stuckMs = nowMs - (this.#stuckSinceMs ?? nowMs)
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

/** How long a lane of these settings may take to stop, at most. */
export function stopMsMaxOf(settings: Pick<SinkSettings, 'timeoutMs'>): number {
  return sendMsMax(settings) + recordMsMax + abortReserveMs + endMsMax
}

/** What a message that nobody else tells of says about its sink. */
function eventOf({ members, outcome, durationMs }: Tried, clock: Clock): BreakerEvent {
  const [alert] = members.map(({ alert: { source, id } }) => `${source}.${id}`)
  return {
    sign: signOf(outcome),
    alert: alert ?? '',
    reason: outcome.kind === 'delivered' ? 'delivered' : outcome.reason,
    startedAtMs: clock.monotonicMs() - durationMs,
  }
}

const commandTimeoutMs = 5_000
const abortReserveMs = 3_000
const recordMsMax = 3_000
const lookEveryMs = 100
const endMsMax = 500
