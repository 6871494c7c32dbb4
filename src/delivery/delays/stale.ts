import type { Clock } from '../../lib/clock.ts'
import { within } from '../../lib/time-limit.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import {
  createDelayOriginStore,
  type DelayOriginStore,
  type DelayOrigins,
} from '../../store/sink/delay-origins.ts'
import type { Logger } from '../../telemetry/log.ts'
import { type BestEffort, bestEffortFor } from '../best-effort.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import { digestPlanOf } from '../message/digest.ts'
import type { AlertQueue } from '../queue/queues.ts'
import type { SinkEntry, Tuning } from '../settings.ts'
import { setBackMsMin } from './clock-watch.ts'
import { shortenDelays } from './shorten.ts'

/**
 * Ends delays that an earlier config set in a queue and the present one does not need: for the mark of a digest that is
 * gone or shorter now, for another receiver than the present one, for a longer `retry`. Also delays by
 * a clock that was set back before this lane could notice it.
 * Looks when a lane begins and then repeatedly, because a process with the earlier config may still delay more.
 */
interface StaleDelaysOptions extends SinkEntry {
  readonly redis: RedisClient
  readonly prefix: string
  readonly queue: AlertQueue
  readonly tuning: Pick<Tuning, 'othersEveryMs'>
  readonly clock: Clock
  readonly log: Logger
  /** Once aborted, no look begins. */
  readonly signal: AbortSignal
}

export class StaleDelays {
  readonly #options: StaleDelaysOptions
  readonly #try: BestEffort
  readonly #store: DelayOriginStore
  readonly #plan: string | undefined
  readonly #receiver: string
  readonly #retry: string
  /** By the monotonic clock. */
  #nextMs = 0
  #looking = false
  #again: NodeJS.Timeout | undefined
  /** How many looks at the delays of other configs have ended. */
  #looks = 0
  /** Before this lane began, alerts went to another receiver. */
  #otherReceiver = false
  /** Before this lane began, alerts were tried again by another schedule. */
  #otherRetry = false
  #plansBefore: DelayOrigins['plans'] = new Map()

  constructor(options: StaleDelaysOptions) {
    const { redis, prefix, receiver } = options
    this.#options = options
    this.#try = bestEffortFor(options.sink.name, options.log)
    this.#store = createDelayOriginStore(redis, prefix)
    this.#plan = digestPlanOf(options)
    this.#receiver = receiver ?? ''
    const { initialDelayMs, maxDelayMs } = options.settings.retry
    this.#retry = `${initialDelayMs} ${maxDelayMs}`
  }

  /** To be called when the lane begins, and every few seconds. */
  async look(): Promise<void> {
    if (this.#looking || this.#options.signal.aborted) return
    this.#looking = true
    clearTimeout(this.#again)
    const { clock, tuning } = this.#options
    if (clock.monotonicMs() >= this.#nextMs)
      await this.#try('delays of other configs stay', async () => {
        await this.#lookAtOthers()
        this.#nextMs = clock.monotonicMs() + tuning.othersEveryMs
      })
    this.#looking = false
    // Perhaps not connected yet: until then the delays stay as they are.
    if (this.#looks === 0 && !this.#options.signal.aborted)
      this.#again = setTimeout(() => void this.look(), lookAgainMs)
  }

  stop(): void {
    clearTimeout(this.#again)
  }

  /** Stores that the hold on the queue is for this receiver. */
  async noteHold(): Promise<void> {
    await this.#try('the receiver of the hold was not stored', () =>
      this.#write(this.#store.hold(this.#options.sink.name, this.#receiver)),
    )
  }

  /** An alert is about to wait for the mark of its digest. */
  async waiting(): Promise<void> {
    const plan = this.#plan
    if (plan === undefined) return
    await this.#try('the plan of a waiting alert was not stored', () =>
      this.#write(this.#store.wait(this.#options.sink.name, plan)),
    )
  }

  async #lookAtOthers(): Promise<void> {
    const { sink, queue, clock, log } = this.#options
    const by = await within(commandTimeoutMs, 'reading who delayed alerts', this.#store.read(sink.name))
    if (by.held !== undefined && by.held !== this.#receiver)
      await this.#write(this.#store.endHold(sink.name, by.held, queue.toKey('limiter')))
    if (this.#looks === 0) {
      this.#otherReceiver = (by.receiver ?? by.held ?? this.#receiver) !== this.#receiver
      this.#otherRetry = by.retry !== this.#retry
    }
    // Sends of the lane before may still end after the first look.
    const isEarly = this.#looks < looksAtOther
    const otherReceiver = this.#otherReceiver && isEarly
    const otherRetry = this.#otherRetry && isEarly
    // While no lane ran: a lane that runs notices it by its own clock watch.
    const setBack = this.#looks === 0 && (by.clockMs ?? 0) - clock.now() >= setBackMsMin
    const plans = [...by.plans].filter(([plan]) => plan !== this.#plan)
    if (otherReceiver || otherRetry || setBack || plans.length > 0 || by.receiver === undefined) {
      const { looked, shortened: sooner } = await shortenDelays({ ...this.#options, otherReceiver })
      if (sooner > 0)
        log.info(
          { sink: sink.name, alerts: sooner },
          'delays were shortened to those of the present config and clock',
        )
      // The jobs that stay delayed may wait for a mark of this plan too, and the earlier plan is removed below.
      if (looked > sooner) await this.waiting()
    }
    // An alert that was about to wait at the look before has been found by this one.
    for (const [plan, count] of plans)
      if (this.#plansBefore.get(plan) === count)
        await this.#write(this.#store.forgetPlan(sink.name, plan, count))
    this.#plansBefore = by.plans
    if (this.#looks === 0 || by.receiver === undefined)
      await this.#write(this.#store.serve(sink.name, this.#receiver, this.#retry))
    await this.#write(this.#store.looked(sink.name, clock.now()))
    this.#looks += 1
  }

  #write(writing: Promise<unknown>): Promise<unknown> {
    return within(commandTimeoutMs, 'storing who delayed alerts', writing)
  }
}

const looksAtOther = 2
const lookAgainMs = 100
