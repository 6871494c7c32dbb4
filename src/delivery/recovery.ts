import type { Clock } from '../lib/clock.ts'
import { within } from '../lib/time-limit.ts'
import type { BreakerStore } from '../store/breakers.ts'
import { promoteDelayed } from './queue-view.ts'
import type { AlertQueue } from './queues.ts'

/**
 * A sink has answered after an outage: what was put off meanwhile goes now, at no cost to its attempts if it fails, and
 * once more what was refused just before the answer and put off just after it. Goes on until Redis took both.
 */
export class Recovery {
  readonly #options: RecoveryOptions
  /** By the monotonic clock: by then every send that was on its way at the answer has ended, of all replicas. */
  readonly #endMs: number
  #begun = false
  #running = false
  #called = false

  constructor(options: RecoveryOptions) {
    this.#options = options
    this.#endMs = options.clock.monotonicMs() + options.timeoutMs + landingMs
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
      if (!this.#begun) await within(commandTimeoutMs, 'ending the breaker', breakers.clear(sink))
      this.#begun = true
      return ends
    } finally {
      this.#running = false
    }
  }
}

export interface RecoveryOptions {
  readonly sink: string
  readonly queue: AlertQueue
  readonly breakers: BreakerStore
  readonly clock: Clock
  /** Of one send. */
  readonly timeoutMs: number
}

const commandTimeoutMs = 5_000
/** From the end of a send until its job is put off, and more. */
const landingMs = 3_000
