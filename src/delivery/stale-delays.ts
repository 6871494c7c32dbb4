import type { Clock } from '../lib/clock.ts'
import { within } from '../lib/time-limit.ts'
import { waits } from '../lib/waits.ts'
import {
  createDelayOriginStore,
  type DelayOriginStore,
  type DelayOrigins,
  holdCountMin,
} from '../store/delay-origins.ts'
import { type RedisClient, redisErrorText } from '../store/redis.ts'
import type { Logger } from '../telemetry/log.ts'
import { setBackMsMin } from './clock-watch.ts'
import { digestPlanOf } from './digest-wait.ts'
import type { AlertQueue } from './queues.ts'
import { queueSettings, type SinkEntry, type Tuning } from './settings.ts'
import { shortenDelays } from './shorten-delays.ts'
import { noLimit } from './worker.ts'

/**
 * What one config puts off in a queue must not wait by it under the next: for the mark of a digest that is gone or
 * shorter now, for a receiver that alerts do not go to any more, for the end of a window of the rate limit of before. Nor
 * for a time by a clock that was set back before this lane could notice it.
 * Looks when a lane begins, and then again and again, because a process of the config before may still put off more.
 */
export interface StaleDelaysOptions extends SinkEntry {
  readonly redis: RedisClient
  readonly prefix: string
  readonly queue: AlertQueue
  readonly tuning: Pick<Tuning, 'othersEveryMs'>
  readonly clock: Clock
  readonly log: Logger
  /** Nothing is begun from then on. */
  readonly signal: AbortSignal
}

export class StaleDelays {
  readonly #options: StaleDelaysOptions
  readonly #store: DelayOriginStore
  readonly #plan: string | undefined
  readonly #receiver: string
  /** By the monotonic clock. */
  #nextMs = 0
  #looking = false
  #again: NodeJS.Timeout | undefined
  /** How many times it was looked at what others put off. */
  #looks = 0
  /** Until this lane began, alerts went elsewhere. */
  #otherReceiver = false
  #plansBefore: DelayOrigins['plans'] = new Map()

  constructor(options: StaleDelaysOptions) {
    const { redis, prefix, receiver } = options
    this.#options = options
    this.#store = createDelayOriginStore(redis, prefix)
    this.#plan = digestPlanOf(options)
    this.#receiver = receiver ?? ''
  }

  /** To be called when the lane begins, and every few seconds. */
  async look(): Promise<void> {
    if (this.#looking || this.#options.signal.aborted) return
    this.#looking = true
    clearTimeout(this.#again)
    const { redis, queue, clock, tuning } = this.#options
    await this.#try('the limiter may last longer', () =>
      fitLimiter(redis, queue, (queueSettings(this.#options).rateLimit ?? noLimit).per),
    )
    if (clock.monotonicMs() >= this.#nextMs)
      await this.#try('others may put off for longer', async () => {
        await this.#lookAtOthers()
        this.#nextMs = clock.monotonicMs() + tuning.othersEveryMs
      })
    this.#looking = false
    // Not connected yet, perhaps: until then alerts wait as they did.
    if (this.#looks === 0 && !this.#options.signal.aborted)
      this.#again = setTimeout(() => void this.look(), lookAgainMs)
  }

  stop(): void {
    clearTimeout(this.#again)
  }

  /** This receiver asked for a hold. */
  async held(): Promise<void> {
    await this.#try('whose hold it is stays unknown', () =>
      this.#write(this.#store.hold(this.#options.sink.name, this.#receiver)),
    )
  }

  /** An alert is about to wait for the mark of its digest. */
  async waiting(): Promise<void> {
    const plan = this.#plan
    if (plan === undefined) return
    await this.#try('that an alert waits for a mark is not written down', () =>
      this.#write(this.#store.wait(this.#options.sink.name, plan)),
    )
  }

  async #lookAtOthers(): Promise<void> {
    const { sink, queue, clock, log } = this.#options
    const by = await within(readTimeoutMs, 'reading by whom alerts are put off', this.#store.read(sink.name))
    if (by.held !== undefined && by.held !== this.#receiver)
      await this.#write(this.#store.endHold(sink.name, by.held, queue.toKey('limiter')))
    if (this.#looks === 0) this.#otherReceiver = (by.receiver ?? by.held ?? this.#receiver) !== this.#receiver
    // Sends of the lane before may still end after the first look.
    const otherReceiver = this.#otherReceiver && this.#looks < looksAtOther
    // While nobody was there: the watch of a lane that runs notices it by itself.
    const setBack = this.#looks === 0 && (by.clockMs ?? 0) - clock.now() >= setBackMsMin
    const plans = [...by.plans].filter(([plan]) => plan !== this.#plan)
    if (otherReceiver || setBack || plans.length > 0 || by.receiver === undefined) {
      const { looked, shortened: sooner } = await shortenDelays({ ...this.#options, otherReceiver })
      if (sooner > 0)
        log.info({ sink: sink.name, alerts: sooner }, 'alerts go sooner by the config and the clock of now')
      // What was left may wait for a mark of this plan too, and that of before is forgotten below.
      if (looked > sooner) await this.waiting()
    }
    // An alert that was about to wait at the look before has been found by this one.
    for (const [plan, count] of plans)
      if (this.#plansBefore.get(plan) === count)
        await this.#write(this.#store.forgetPlan(sink.name, plan, count))
    this.#plansBefore = by.plans
    if (this.#looks === 0 || by.receiver === undefined)
      await this.#write(this.#store.serve(sink.name, this.#receiver))
    await this.#write(this.#store.looked(sink.name, clock.now()))
    this.#looks += 1
  }

  #write(writing: Promise<unknown>): Promise<unknown> {
    return within(writeTimeoutMs, 'writing down by whom alerts are put off', writing)
  }

  /** What is done here helps; deliveries do not depend on it. */
  async #try(otherwise: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#options.log.debug({ sink: this.#options.sink.name, reason: redisErrorText(error) }, otherwise)
    }
  }
}

const looksAtOther = 2
const lookAgainMs = 100
const readTimeoutMs = 5_000
const writeTimeoutMs = 5_000

/**
 * A window of the rate limit that began by another config may last up to a day: it ends as it would by this one. A hold,
 * which BullMQ keeps in the same key as a count that no limit reaches, lasts as long as a receiver may ask for, also
 * where the clock of Redis was set back since.
 */
async function fitLimiter(redis: RedisClient, queue: AlertQueue, perMs: number): Promise<void> {
  const key = queue.toKey('limiter')
  const fitting = redis.eval(fitScript, 1, key, Math.ceil(perMs), holdCountMin, waits.receiverHold.maxMs)
  await within(writeTimeoutMs, 'fitting the window of the rate limit', fitting)
}

/** KEYS limiter · ARGV the window (ms), the count from which on it is a hold, the longest hold (ms) */
const fitScript = `
local count = tonumber(redis.call('GET', KEYS[1]) or 0)
local longest = tonumber(count < tonumber(ARGV[2]) and ARGV[1] or ARGV[3])
if redis.call('PTTL', KEYS[1]) > longest then redis.call('PEXPIRE', KEYS[1], longest) end
`
