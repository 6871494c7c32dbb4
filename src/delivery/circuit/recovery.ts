import type { Clock } from '../../lib/clock.ts'
import { within } from '../../lib/time-limit.ts'
import type { BreakerStore } from '../../store/sink/breakers.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { AlertQueue } from '../queue/queues.ts'
import { promoteDelayed } from '../queue/view.ts'

/**
 * After an outage a sink has answered: promotes the delayed alerts now (if they fail, no attempt is counted), and later
 * once more those that were refused just before the answer and delayed just after it. Repeats until Redis did both. The second time
 * the stored breaker is ended again where it is back: Redis came back without its last second, or another master is in its place.
 */
export class Recovery {
  readonly #options: RecoveryOptions
  /** By the monotonic clock: by then every send that ran at the time of the answer has ended, in all replicas. */
  readonly #endMs: number
  readonly #fromMs: number
  #begun = false
  #running = false
  #called = false

  constructor(options: RecoveryOptions) {
    this.#options = options
    this.#fromMs = options.clock.monotonicMs()
    this.#endMs = this.#fromMs + options.timeoutMs + landingMs
  }

  /** The sink is down again. */
  callOff(): void {
    this.#called = true
  }

  /** To be called at once, and then every few seconds; true when nothing is left to be done. Throws what Redis throws. */
  async step(): Promise<boolean> {
    const { queue, breakers, sink, clock } = this.#options
    const ends = clock.monotonicMs() >= this.#endMs
    if (this.#running || (this.#begun && !ends)) return false
    this.#running = true
    try {
      await promoteDelayed(queue)
      if (this.#called) return true
      const oldMs = this.#begun ? clock.monotonicMs() - this.#fromMs : 0
      await within(commandTimeoutMs, 'ending the breaker', breakers.clear(sink, oldMs))
      this.#begun = true
      return ends
    } finally {
      this.#running = false
    }
  }
}

interface RecoveryOptions {
  readonly sink: string
  readonly queue: AlertQueue
  readonly breakers: BreakerStore
  readonly clock: Clock
  /** Of one send. */
  readonly timeoutMs: number
}

/** More than it takes from the end of a send until its job is delayed. */
const landingMs = 3_000
