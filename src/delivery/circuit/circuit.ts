import type { Clock } from '../../lib/clock.ts'
import { UserError } from '../../lib/errors.ts'
import { within } from '../../lib/time-limit.ts'
import type { BreakerStore, StoredBreaker } from '../../store/sink/breakers.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { type BestEffort, bestEffortFor } from '../best-effort.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { AlertQueue } from '../queue/queues.ts'
import { promoteDelayed } from '../queue/view.ts'
import type { QueueSettings, Tuning } from '../settings.ts'
import {
  afterAttempt,
  type Breaker,
  type BreakerEvent,
  type BreakerLimits,
  type CircuitState,
  type ClockReading,
  closedBreaker,
  limitsFor,
  openBreaker,
} from './breaker.ts'
import { chooseProbe, ProbeTimer, seekProbe } from './probe.ts'
import { Recovery } from './recovery.ts'

/**
 * Applies the breaker of one sink: holds the sink's queue for all replicas and lets a few alerts probe the sink, one at a
 * time. When the sink answers again, it sends the delayed alerts: one at a time first, twice as many after each answer.
 * Redis stores that a sink is down, for a process that starts during the outage and for one that takes over from a
 * process that ended. A hold expires by itself.
 */
interface CircuitOptions {
  readonly sink: string
  readonly settings: QueueSettings
  readonly tuning: Tuning
  readonly queue: AlertQueue
  readonly breakers: BreakerStore
  readonly metrics: Metrics
  readonly log: Logger
  readonly clock: Clock
  readonly onBreaker?: ((news: BreakerChange) => void) | undefined
  /** Called after this process put a hold on the queue. */
  onHold(): Promise<void>
  /** How many alerts this process sends to the sink at this moment. */
  sending(): number
  /** How many it may send at a time changed. */
  widthChanged(): void
}

/** The sink's circuit until its config changed: the new one continues with its state. */
interface CircuitBefore {
  readonly circuit: Circuit
  /** It sent to the same receiver, so a hold that the receiver asked for still counts. */
  readonly sameReceiver: boolean
}

export interface BreakerChange {
  readonly sink: string
  readonly state: 'open' | 'closed'
  /** Why it opened. */
  readonly reason: string
}

export class Circuit {
  readonly #options: CircuitOptions
  readonly #try: BestEffort
  readonly #limits: BreakerLimits
  #breaker: Breaker = closedBreaker
  /** By the monotonic clock. */
  #heldUntilMs = 0
  /** How many may go at a time: no limit but after an outage, then 1, which doubles with every answer. */
  #width = Number.POSITIVE_INFINITY
  #recovery: Recovery | undefined
  #looked = false
  /** Since the last look the sink has answered, and nothing was its fault after that. */
  #answers = false
  readonly #probe: ProbeTimer
  /** Until the last pause is stored. */
  #pausing = Promise.resolve()
  #stopped = false

  constructor(options: CircuitOptions, before?: CircuitBefore) {
    this.#options = options
    this.#try = bestEffortFor(options.sink, options.log)
    if (before) {
      const { circuit, sameReceiver } = before
      this.#breaker = circuit.#breaker
      if (sameReceiver) this.#heldUntilMs = circuit.#heldUntilMs
      this.#width = circuit.#width
      this.#recovery = circuit.#recovery
      this.#looked = circuit.#looked
    }
    this.#limits = limitsFor(options)
    this.#probe = new ProbeTimer(options.sending, () => this.#seekProbe())
  }

  /** An open breaker that came from `before` or from Redis continues to probe. */
  start(): void {
    if (this.isOpen) this.#probeIn(Math.max(0, this.#heldUntilMs - this.#now().monotonicMs))
  }

  /** From now on it changes nothing: a lane that ends does not hold the queue of the new lane of the same sink. */
  stop(): void {
    this.#stopped = true
    this.#probe.stop()
  }

  state(): CircuitState {
    const breaker = this.#breaker
    const { wallMs, monotonicMs } = this.#now()
    const heldMs = this.#heldUntilMs - monotonicMs
    return {
      breaker: breaker.state,
      lastFault: breaker.lastFault,
      ...(breaker.state === 'open' ? { reason: breaker.reason, openSinceMs: breaker.sinceMs } : {}),
      ...(heldMs > 0 ? { heldUntilMs: Math.round(wallMs + heldMs) } : {}),
    }
  }

  get isOpen(): boolean {
    return this.#breaker.state === 'open'
  }

  /** How many alerts may be on their way at a time. */
  get width(): number {
    return this.isOpen ? 1 : this.#width
  }

  async observe(event: BreakerEvent): Promise<void> {
    if (this.#stopped) return
    const step = afterAttempt(this.#breaker, event, this.#limits, this.#now())
    const failedProbe = this.isOpen && step.breaker !== this.#breaker
    this.#breaker = step.breaker
    if (event.signal !== 'none') this.#answers = event.signal === 'answered'
    if (event.signal === 'answered') this.#width = step.change === 'closed' ? 1 : this.#width * 2
    this.#options.widthChanged()
    if (step.change === 'opened') this.#endRecovery()
    if (step.change === 'opened') void this.#store()
    const failed = failedProbe && step.breaker.state === 'open' ? step.breaker.probes : undefined
    const pausing = this.#pause(step.holdMs, failed)
    if (step.holdMs !== undefined) this.#pausing = pausing
    if (step.change !== undefined) this.#report(event.reason)
    if (step.change === 'closed') this.#beginRecovery()
    await pausing
  }

  async #pause(holdMs: number | undefined, failedProbes: number | undefined): Promise<void> {
    if (holdMs !== undefined) await this.hold(holdMs)
    if (failedProbes !== undefined) await this.#failed(failedProbes)
    if (holdMs !== undefined) this.#probeIn(holdMs)
  }

  /** Over all replicas; never shortens a hold. It starts the window of the sink's rate limit anew. */
  async hold(forMs: number): Promise<void> {
    const { queue, settings, onHold } = this.#options
    const { max } = settings.rateLimit
    await this.#try('queue not held', async () => {
      const heldMs = await within(commandTimeoutMs, 'reading the hold', queue.getRateLimitTtl(max))
      if (heldMs < forMs) {
        await within(commandTimeoutMs, 'holding', queue.rateLimit(Math.ceil(forMs)))
        await onHold()
      }
      this.#heldUntilMs = this.#now().monotonicMs + Math.max(heldMs, forMs)
    })
  }

  /** What other processes know of the sink; to be called when it starts, and every few seconds. */
  async look(view: Promise<{ readonly breaker: StoredBreaker | undefined }>): Promise<void> {
    const { sink, breakers, tuning } = this.#options
    if (this.#stopped) return
    if (this.#recovery) return this.#recover(this.#recovery)
    await this.#try('the breaker was not shared with other processes', async () => {
      if (this.isOpen) await within(commandTimeoutMs, 'storing the breaker', breakers.confirm(sink))
      const { breaker: kept } = await view
      const first = !this.#looked
      this.#looked = true
      const answers = this.#answers
      this.#answers = false
      if (!kept || this.isOpen || this.#recovery || this.#stopped) return
      // Another process has it open, and may get no alert that shows it that the sink is back.
      if (answers && !first) this.#beginRecovery()
      // The process that opened it confirms it every few seconds: without that for so long, the process is gone.
      else if (first || kept.ageMs > looksMissed * tuning.watchEveryMs) this.#takeOver(kept)
    })
  }

  /**
   * After the clock was set back, delayed alerts and the hold (if Redis uses the same clock) would wait for as much
   * longer. So delayed alerts are sent now; if they fail, no attempt is counted.
   */
  async clockSetBack(backMs: number): Promise<void> {
    const { sink, log, queue } = this.#options
    log.warn({ sink, backMs }, 'the clock was set back: alerts that wait are tried now')
    await this.#try('the hold may last longer', async () => {
      await within(commandTimeoutMs, 'ending the hold', queue.removeRateLimitKey())
      const leftMs = Math.ceil(this.#heldUntilMs - this.#now().monotonicMs)
      if (leftMs > 0) await within(commandTimeoutMs, 'holding', queue.rateLimit(leftMs))
    })
    await this.#try('delayed alerts keep their schedule', () => promoteDelayed(queue))
  }

  /** An operator does not want to wait for the next probe, and is told where there is none. Throws what Redis throws. */
  async probeNow(): Promise<void> {
    const { sink, queue, breakers, sending } = this.#options
    await this.#pausing // or it would be stored after it is ended here
    const isKept = this.isOpen || (await within(commandTimeoutMs, 'reading the breaker', breakers.read(sink)))
    if (!isKept) throw new UserError(`Sink ${sink} is not resting.`)
    await within(commandTimeoutMs, 'ending the hold', queue.removeRateLimitKey())
    if (this.isOpen) this.#heldUntilMs = 0
    // What is on its way began before the pause: only then is a probe sought.
    const isFound = sending() > 0 || (await seekProbe(queue, 0))
    // Also where there is none: another process may have found that the sink answers.
    if (this.isOpen && !this.#stopped) this.#probe.order()
    // Others may wait for their digest, or because the sink asked for a pause.
    const why = `No alert for ${sink} is due, so none is sent now: the next one that is due is sent at once.`
    if (!isFound) throw new UserError(why)
  }

  #now(): ClockReading {
    const { clock } = this.#options
    return { wallMs: clock.now(), monotonicMs: clock.monotonicMs() }
  }

  #takeOver(kept: { reason: string; sinceMs: number }): void {
    this.#breaker = openBreaker(kept, this.#limits, this.#now().monotonicMs)
    this.#report(kept.reason)
    this.#probeIn(this.#limits.firstPauseMs)
  }

  #report(reason: string): void {
    const { sink, metrics, log, onBreaker } = this.#options
    const { state } = this.#breaker
    this.#options.widthChanged()
    metrics.circuitOpen.set({ sink }, state === 'open' ? 1 : 0)
    log[state === 'open' ? 'error' : 'info']({ sink, state, reason }, 'delivery.breaker')
    if (state === 'closed') this.#probe.stop()
    try {
      onBreaker?.({ sink, state, reason })
    } catch (error) {
      log.error({ sink, err: error }, 'the listener of the breaker failed')
    }
  }

  /** Another alert is the next probe: this one may be the only one that the sink cannot accept. */
  async #failed(probes: number): Promise<void> {
    void this.#store()
    await this.#try('the same alert may be the next probe', () => chooseProbe(this.#options.queue, probes))
  }

  #probeIn(forMs: number): void {
    if (this.#stopped || !this.isOpen) this.#probe.stop()
    else this.#probe.start(forMs)
  }

  /** The pause is over. If nothing waits to go out, an alert that would go later, perhaps in hours, is the probe. */
  async #seekProbe(): Promise<void> {
    const { queue, sending, breakers, sink } = this.#options
    const { probes } = this.#breaker.state === 'open' ? this.#breaker : { probes: 0 }
    if (sending() === 0)
      await this.#try('no probe', async () => {
        if (await seekProbe(queue, probes)) return
        // No alert is left for a probe, and another process, which sent it, has closed the breaker.
        const kept = await within(commandTimeoutMs, 'reading the breaker', breakers.read(sink))
        if (kept || this.#stopped || !this.isOpen) return
        this.#breaker = closedBreaker
        this.#report('another process found that it answers')
      })
    if (this.#breaker.state === 'open') this.#probeIn(this.#breaker.pauseMs)
  }

  async #store(): Promise<void> {
    const { breakers, sink } = this.#options
    const breaker = this.#breaker
    if (breaker.state === 'closed') return
    await this.#try('the breaker was not stored', () =>
      within(commandTimeoutMs, 'storing the breaker', breakers.write(sink, breaker)),
    )
  }

  #beginRecovery(): void {
    this.#recovery = new Recovery({ ...this.#options, timeoutMs: this.#options.settings.timeoutMs })
    void this.#recover(this.#recovery)
  }

  #endRecovery(): void {
    this.#recovery?.callOff()
    this.#recovery = undefined
  }

  async #recover(recovery: Recovery): Promise<void> {
    await this.#try('delayed alerts keep their schedule', async () => {
      if ((await recovery.step()) && this.#recovery === recovery) this.#recovery = undefined
    })
  }
}

/** After so many looks without a confirmation, the process that opened the breaker is gone. */
const looksMissed = 12
