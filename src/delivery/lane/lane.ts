import type { Clock } from '../../lib/clock.ts'
import { settlesWithin } from '../../lib/time-limit.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { createBreakerStore } from '../../store/sink/breakers.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Acknowledged } from '../acknowledgement/acknowledged.ts'
import type { Unrecorded } from '../acknowledgement/unrecorded.ts'
import { type FindContext, logSinkFault, sendMembers } from '../attempt/deliver.ts'
import { isRenewed, type ProcessorDeps, processJob } from '../attempt/processor.ts'
import type { CircuitState } from '../circuit/breaker.ts'
import { type BreakerChange, Circuit } from '../circuit/circuit.ts'
import { StaleDelays } from '../delays/stale.ts'
import { Batcher } from '../message/batcher.ts'
import { breakerEventOf } from '../message/messenger.ts'
import type { AttemptRecord } from '../queue/attempt-record.ts'
import { createJobFields, type JobFields } from '../queue/job-fields.ts'
import { LockAges } from '../queue/lock-ages.ts'
import { type AlertJob, type AlertQueue, closeQueue, openQueue, type Retention } from '../queue/queues.ts'
import { type JobReplacement, replaceJob } from '../queue/replace-job.ts'
import type { LaneView } from '../queue/view.ts'
import { type QueueSettings, queueSettings, type SinkEntry, type Tuning } from '../settings.ts'
import { abortReserveMs, endMsMax, recordMsMax, stopMsMaxOf } from '../worker/stop-times.ts'
import { type Stuck, Watchdog } from '../worker/watchdog.ts'
import { Workers } from '../worker/workers.ts'
import type { LaneLooks, LooksOfLane } from './looks.ts'
import { RunningJobs } from './running-jobs.ts'

/**
 * The delivery of one sink in this process: its worker, and the circuit that holds its queue. A lane depends on no
 * other, and stops in bounded time whatever Redis and the sink do. A sink whose config changes gets a new lane while the
 * one before still waits for its last sends; the two never send the same alert twice.
 */
export interface LaneOptions extends SinkEntry {
  /** `commands`, which fails fast; the workers have `blocking`. */
  readonly redis: RedisClient
  readonly redisBlocking: RedisClient
  readonly prefix: string
  readonly acknowledged: Acknowledged
  readonly unrecorded: Unrecorded
  readonly looks: LaneLooks
  readonly metrics: Metrics
  readonly log: Logger
  readonly clock: Clock
  readonly tuning: Tuning
  /** By the present config. */
  retention(): Retention
  readonly onBreaker?: (news: BreakerChange) => void
  readonly findContext?: FindContext | undefined
}

export interface LaneState extends CircuitState {
  readonly sink: string
  readonly type: string
  /** How many alerts this process is sending. */
  readonly sending: number
  /** Alerts wait, no pause or hold is the reason, and no worker takes them. */
  readonly stuck?: Stuck
}

export class Lane {
  readonly #options: LaneOptions
  readonly #settings: QueueSettings
  readonly #queue: AlertQueue
  readonly #batcher: Batcher | undefined
  readonly #circuit: Circuit
  readonly #jobFields: JobFields
  readonly #staleDelays: StaleDelays
  readonly #running: RunningJobs
  readonly #lockAges: LockAges
  readonly #workers: Workers
  readonly #watchdog: Watchdog
  readonly #ownLooks: LooksOfLane
  readonly #processorDeps: ProcessorDeps
  #before: Lane | undefined
  readonly #ending = new AbortController()

  /** `before` is the lane of this sink until now: it is being stopped, and kept until it has. */
  constructor(options: LaneOptions, before?: Lane) {
    this.#options = options
    const { redis, prefix, sink, tuning, clock } = options
    const settings = queueSettings(options)
    this.#settings = settings
    this.#queue = openQueue(redis, prefix, sink.name)
    this.#jobFields = createJobFields(redis, this.#queue)
    this.#staleDelays = new StaleDelays({ ...options, queue: this.#queue, signal: this.#ending.signal })
    this.#before = before
    this.#circuit = new Circuit(
      {
        ...options,
        sink: sink.name,
        queue: this.#queue,
        settings,
        breakers: createBreakerStore(redis, prefix),
        onHold: () => this.#staleDelays.noteHold(),
        sending: () => this.#running.sends,
        widthChanged: () => {
          this.#workers.concurrency = this.#concurrency()
        },
      },
      before && { circuit: before.#circuit, sameReceiver: before.#options.receiver === options.receiver },
    )
    this.#lockAges = before ? before.#lockAges : new LockAges(clock, tuning.lockMs)
    this.#running = new RunningJobs({ redis, queue: this.#queue, lockAges: this.#lockAges, clock })
    this.#workers = new Workers({
      ...options,
      redis: options.redisBlocking,
      sink: sink.name,
      settings,
      queue: this.#queue,
      gathers: sink.batch !== undefined,
      process: (job, token) =>
        this.#running.track(() => this.#process(job, token)).finally(() => this.#lockAges.asks(token)),
      asks: (token) => this.#lockAges.asks(token),
      lostLocks: (jobIds) => void this.#running.lostLocks(jobIds),
      recorded: (jobId) => options.unrecorded.recorded(this.#nameOf(jobId)),
      storeAcknowledged: (jobId) => options.unrecorded.store(this.#nameOf(jobId)),
    })
    this.#workers.concurrency = this.#concurrency()
    this.#watchdog = new Watchdog({
      tuning,
      clock,
      own: () =>
        this.#workers.isOpen
          ? { room: this.#running.jobs < this.#workers.concurrency, taken: this.#running.taken }
          : undefined,
      onStuck: (stuck) => this.#onStuck(stuck),
    })
    const { rateLimit } = settings
    this.#ownLooks = {
      request: () => ({ queue: this.#queue, rateLimit, fitsLimiter: this.#workers.isOpen }),
      first: (view) => [this.#circuit.look(view), this.#workers.taken.look(view)],
      each: (view) => this.#look(view),
    }
    this.#batcher =
      sink.batch &&
      new Batcher(
        {
          batch: sink.batch,
          limits: { rateLimit: options.settings.rateLimit, concurrency: options.settings.concurrency },
          clock,
          send: (members, signal) => sendMembers(members, signal, options),
          isOpen: () => this.#circuit.isOpen,
          splitFailed: (error) => logSinkFault(error, 'could not divide alerts into messages', options),
          refused: (sent) => void this.#circuit.observe(breakerEventOf(sent, clock)),
        },
        before === undefined ? undefined : before.#batcher,
      )
    this.#processorDeps = this.#depsOfProcessor()
  }

  #depsOfProcessor(): ProcessorDeps {
    const circuit = this.#circuit
    return {
      ...this.#options,
      lockAges: this.#lockAges,
      batcher: this.#batcher,
      jobFields: this.#jobFields,
      begins: (jobId) => this.#running.begins(jobId),
      takeOverMs: this.#options.tuning.takeOverMs,
      stopping: this.#ending.signal,
      onAcknowledged: (delivery, record) =>
        this.#options.unrecorded.add(this.#nameOf(delivery.id), () =>
          this.#jobFields.acknowledge(delivery, record),
        ),
      observe: (event) => circuit.observe(event),
      hold: (forMs) => circuit.hold(forMs),
      waiting: () => this.#staleDelays.waiting(),
      queueState: () => ({
        emptyMs: this.#workers.emptyMs,
        isFull: this.#running.jobs >= this.#workers.concurrency,
      }),
      replace: (id, token, copies) => this.#replace({ id, state: 'active', token }, copies),
    }
  }

  /** `sends: false`: other processes do, and this one only looks whether they do. */
  start({ sends }: { sends: boolean }): void {
    if (sends) {
      void this.#staleDelays.look()
      this.#workers.open()
      this.#circuit.start()
    }
    this.#options.looks.start(this.#ownLooks, { withFirst: sends })
  }

  /** How long `stop` may take at most: every send that runs has the time that its sink gives it. */
  get stopMsMax(): number {
    return stopMsMaxOf(this.#options.settings)
  }

  /** How many alerts this process is sending. */
  get sending(): number {
    return this.#running.sends
  }

  /**
   * Takes no more jobs and lets running sends finish; those that have not by then are aborted a little before the
   * deadline, so that their jobs still go back to the queue with no attempt counted. Never takes longer than `deadlineMs`, and
   * does not wait for a Redis that is away once nothing is being sent.
   */
  async stop(deadlineMs: number = this.stopMsMax): Promise<void> {
    this.#ending.abort(new Error('stopping'))
    this.#options.looks.stop(this.#ownLooks)
    this.#circuit.stop()
    this.#staleDelays.stop()
    this.#batcher?.stop()
    const endMs = Math.min(endMsMax, deadlineMs / 5)
    const reserveMs = Math.min(abortReserveMs, deadlineMs / 4)
    if (this.#workers.isOpen) {
      const keeping = setInterval(() => this.#running.keepLocks(), this.#options.tuning.watchEveryMs)
      const closed = this.#workers.close()
      // Once no send has run for a while, a Redis that is there has had the time to record them all.
      const ended = Promise.race([closed, this.#running.quiet(recordMsMax, closed)])
      if (!(await settlesWithin(deadlineMs - reserveMs - endMs, ended))) {
        this.#running.abort('shutting down')
        await settlesWithin(reserveMs, closed)
      }
      clearInterval(keeping)
    }
    await Promise.all([
      this.#workers.destroy(endMs),
      closeQueue(this.#queue, endMs),
      settlesWithin(endMs, this.#options.sink.close()),
    ])
  }

  /** That lane has stopped: nothing of it is to be waited for any more. */
  forget(lane: Lane): void {
    if (this.#before === lane) this.#before = lane.#before
  }

  /** Resolves once no send of this job runs, here or in the lane before; false where one did. */
  async #sendOver(jobId: string): Promise<boolean> {
    const none = await this.#running.sendOver(jobId)
    return (!this.#before || (await this.#before.#sendOver(jobId))) && none
  }

  async probe(): Promise<void> {
    await this.#circuit.probeNow()
  }

  state(): LaneState {
    const { name, type } = this.#options.sink
    const { stuck } = this.#watchdog
    return { sink: name, type, sending: this.sending, ...this.#circuit.state(), ...(stuck ? { stuck } : {}) }
  }

  #nameOf(jobId: string): string {
    return `${this.#options.sink.name}/${jobId}`
  }

  /** After an outage, a sink that takes several alerts in one message needs no slow start: it gets few messages. */
  #concurrency(): number {
    const { isOpen, width } = this.#circuit
    const { concurrency } = this.#settings
    if (this.#options.sink.batch !== undefined) return isOpen ? 1 : concurrency
    return Math.min(width, concurrency)
  }

  async #process(job: AlertJob, token: string): Promise<AttemptRecord> {
    const id = job.id ?? ''
    // After an outage BullMQ may hand out a job again while its first send still runs here, or both at the same moment: wait for that
    // send, whose acknowledgement the next step looks up.
    let renewed = true
    do renewed = (await this.#sendOver(id)) && renewed
    while (this.#running.isSending(id))
    const controller = new AbortController()
    // Fetched while the lane was already stopping: it goes back as it came.
    if (this.#ending.signal.aborted) controller.abort(new Error('stopping'))
    const done = processJob(job, token, controller.signal, this.#processorDeps)
    const renew = () => isRenewed(job, token, this.#lockAges)
    return this.#running.run(id, { controller, done, renew, renewed })
  }

  #replace(job: JobReplacement['job'], copies: JobReplacement['copies']): Promise<unknown> {
    const { redis, prefix, clock } = this.#options
    return replaceJob({ redis, prefix, from: this.#queue, to: this.#queue, job, copies, nowMs: clock.now() })
  }

  #look(view: Promise<LaneView>): void {
    void this.#watchdog.look(view)
    if (!this.#workers.isOpen) return
    void this.#workers.taken.look(view)
    const backMs = this.#running.keepLocks()
    void (backMs > 0 ? this.#circuit.clockSetBack(backMs) : this.#circuit.look(view))
    void this.#staleDelays.look()
  }

  #onStuck({ waiting, forMs }: Stuck): void {
    const { sink, log } = this.#options
    if (this.#ending.signal.aborted) return
    const { isOpen } = this.#workers
    const text = isOpen ? 'no waiting job is taken here: new worker' : 'no sender takes the waiting jobs'
    log.error({ sink: sink.name, waiting, stuckMs: forMs }, text)
    if (isOpen) this.#workers.replace(this.#running.running())
  }
}
