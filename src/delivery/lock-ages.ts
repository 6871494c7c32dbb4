import type { Clock } from '../lib/clock.ts'

/**
 * How old the locks of a lane's jobs can be at most. BullMQ asks for the next job under the token of the one before, once
 * that one was handled: the lock of the next is younger than that, also where Redis answered late or this process stood
 * still. A lock that cannot have run out needs no question to Redis before the send.
 */
export class LockAges {
  readonly #clock: Pick<Clock, 'now' | 'monotonicMs'>
  readonly lockMs: number
  /** By token, the latest last. */
  readonly #handled = new Map<string, { readonly monotonicMs: number; readonly atMs: number }>()

  constructor(clock: Pick<Clock, 'now' | 'monotonicMs'>, lockMs: number) {
    this.#clock = clock
    this.lockMs = lockMs
  }

  /** The job under this token was handled: from now on BullMQ may ask for another. */
  handled(token: string): void {
    this.#handled.delete(token)
    this.#handled.set(token, { monotonicMs: this.#clock.monotonicMs(), atMs: this.#clock.now() })
    const oldest = this.#handled.keys().next()
    if (this.#handled.size > tokensMax && !oldest.done) this.#handled.delete(oldest.value)
  }

  /** False where it may be old, as with the first job under a token. */
  isYoung(token: string): boolean {
    const handled = this.#handled.get(token)
    if (handled === undefined) return false
    // The monotonic clock of a machine that was asleep stood still; the other one may have been set.
    const ageMs = this.#clock.monotonicMs() - handled.monotonicMs
    return Math.max(ageMs, this.#clock.now() - handled.atMs) < this.lockMs / youngPart
  }
}

/** Of the time for which a lock holds. BullMQ renews it at half of it. */
const youngPart = 4
/** More than one lane uses at a time; BullMQ makes a new one whenever the queue was empty. */
const tokensMax = 1_000
