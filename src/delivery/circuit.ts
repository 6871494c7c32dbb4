import type { Clock } from '../lib/clock.ts'
import { redisErrorText } from '../store/redis.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { pausesMs } from './backoff.ts'
import {
  afterAttempt,
  type Breaker,
  type BreakerEvent,
  type BreakerLimits,
  closedBreaker,
} from './breaker.ts'
import { promoteDelayed, promoteEarliest } from './queue-reading.ts'
import type { AlertQueue } from './queues.ts'
import type { SinkSettings, Tuning } from './settings.ts'
import { within } from './time-limit.ts'
import { noLimit } from './worker.ts'

/**
 * The breaker of one sink in its place: holds the sink's queue over all replicas, lets one alert at a time probe it,
 * and sends what was put off as soon as the sink answers again. A hold stands in Redis and ends by itself, so a process
 * that dies while its breaker is open leaves nothing behind.
 */
export interface CircuitOptions {
  readonly sink: string
  readonly settings: SinkSettings
  readonly tuning: Tuning
  readonly queue: AlertQueue
  readonly metrics: Metrics
  readonly log: Logger
  readonly clock: Clock
  readonly onBreaker?: ((news: BreakerNews) => void) | undefined
  /** How many alerts this process sends to the sink at this moment. */
  sending(): number
  /** One at a time while the breaker is open. */
  changed(open: boolean): void
  /** The sink's circuit until now, before its config changed: what that knew of the sink's trouble goes on here. */
  readonly before?: Circuit | undefined
}

export interface BreakerNews {
  readonly sink: string
  readonly state: 'open' | 'closed'
  /** Why it opened. */
  readonly reason: string
}

export interface CircuitState {
  readonly breaker: 'open' | 'closed'
  readonly reason?: string
  readonly openSinceMs?: number
  /** Until when this process asked for the queue to be held. */
  readonly heldUntilMs?: number
}

export class Circuit {
  readonly #options: CircuitOptions
  readonly #limits: BreakerLimits
  #breaker: Breaker = closedBreaker
  #heldUntilMs = 0
  #probe: NodeJS.Timeout | undefined
  #stopped = false
  #look: ClockLook

  constructor(options: CircuitOptions) {
    this.#options = options
    const { settings, tuning, clock, before } = options
    this.#look = lookAt(clock)
    if (before) {
      this.#breaker = before.#breaker
      this.#heldUntilMs = before.#heldUntilMs
    }
    // As patient as the sink's own policy, so that a quick one still ends quickly.
    const { initialDelayMs } = settings.retry
    const longestMs = pausesMs(settings.retry).at(-1) ?? initialDelayMs
    this.#limits = {
      faultsToOpen: tuning.faultsToOpen,
      firstPauseMs: Math.min(initialDelayMs, tuning.probePauseMsMax),
      pauseMsMax: Math.min(longestMs, tuning.probePauseMsMax),
    }
  }

  /** An open breaker that was taken over goes on probing. */
  start(): void {
    if (this.isOpen) this.#probeIn(Math.max(0, this.#heldUntilMs - this.#options.clock.now()))
  }

  /** From now on it watches only: of two lanes of one sink, the one that goes does not hold the queue of the other. */
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#probe)
  }

  state(): CircuitState {
    const breaker = this.#breaker
    return {
      breaker: breaker.state,
      ...(breaker.state === 'open' ? { reason: breaker.reason, openSinceMs: breaker.sinceMs } : {}),
      ...(this.#heldUntilMs > this.#options.clock.now() ? { heldUntilMs: this.#heldUntilMs } : {}),
    }
  }

  get isOpen(): boolean {
    return this.#breaker.state === 'open'
  }

  async observe(event: BreakerEvent): Promise<void> {
    if (this.#stopped) return
    const step = afterAttempt(this.#breaker, event, this.#limits, this.#options.clock.now())
    this.#breaker = step.breaker
    if (step.change !== undefined) this.#tell(step.change === 'opened' ? 'open' : 'closed', event.reason)
    if (step.change === 'closed') void this.#promoteAll()
    if (step.holdMs === undefined) return
    await this.hold(step.holdMs)
    this.#probeIn(step.holdMs)
  }

  /** Over all replicas; never shortens a hold. It starts the window of the sink's rate limit anew. */
  async hold(forMs: number): Promise<void> {
    const { queue, settings, clock } = this.#options
    const { max } = settings.rateLimit ?? noLimit
    await this.#try('queue not held', async () => {
      const heldMs = await within(commandTimeoutMs, 'reading the hold', queue.getRateLimitTtl(max))
      if (heldMs < forMs) await within(commandTimeoutMs, 'holding', queue.rateLimit(Math.ceil(forMs)))
      this.#heldUntilMs = clock.now() + Math.max(heldMs, forMs)
    })
  }

  /**
   * A clock that was set back would keep delayed alerts waiting for as much longer: they go now instead, at no cost to
   * their attempts if they fail. To be called every few seconds.
   */
  async watchClock(): Promise<void> {
    const { sink, clock, log } = this.#options
    const before = this.#look
    this.#look = lookAt(clock)
    const backMs = setBackMs(before, this.#look)
    if (backMs < setBackMsMin) return
    log.warn({ sink, backMs: Math.round(backMs) }, 'the clock was set back: alerts that wait are tried now')
    await this.#promoteAll()
  }

  #tell(state: 'open' | 'closed', reason: string): void {
    const { sink, metrics, log, onBreaker } = this.#options
    metrics.circuitOpen.set({ sink }, state === 'open' ? 1 : 0)
    this.#options.changed(state === 'open')
    log[state === 'open' ? 'error' : 'info']({ sink, state, reason }, 'delivery.breaker')
    if (state === 'closed') clearTimeout(this.#probe)
    try {
      onBreaker?.({ sink, state, reason })
    } catch (error) {
      log.error({ sink, err: error }, 'telling of the breaker failed')
    }
  }

  #probeIn(forMs: number): void {
    clearTimeout(this.#probe)
    if (this.#stopped || !this.isOpen) return
    this.#probe = setTimeout(() => void this.#seekProbe(), forMs + probeSlackMs)
  }

  /** The pause is over. If nothing waits to go out, the alert that would go next, perhaps in hours, is the probe. */
  async #seekProbe(): Promise<void> {
    const { queue, sending } = this.#options
    if (sending() === 0) await this.#try('no probe', () => promoteEarliest(queue))
    if (this.#breaker.state === 'open') this.#probeIn(this.#breaker.pauseMs)
  }

  /** What the sink refused meanwhile goes now, at no cost to its attempts if it fails. */
  async #promoteAll(): Promise<void> {
    await this.#try('delayed alerts keep their schedule', () => promoteDelayed(this.#options.queue))
  }

  /** What is done here helps; deliveries do not depend on it. */
  async #try(otherwise: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#options.log.debug({ sink: this.#options.sink, reason: redisErrorText(error) }, otherwise)
    }
  }
}

interface ClockLook {
  readonly wallMs: number
  readonly elapsedMs: number
}

function lookAt(clock: Clock): ClockLook {
  return { wallMs: clock.now(), elapsedMs: performance.now() }
}

/** How much less time has passed by the wall clock than in truth. */
function setBackMs(before: ClockLook, now: ClockLook): number {
  return now.elapsedMs - before.elapsedMs - (now.wallMs - before.wallMs)
}

const commandTimeoutMs = 5_000
/** Less is the business of whoever keeps the clock right bit by bit. */
const setBackMsMin = 5_000
const probeSlackMs = 100
