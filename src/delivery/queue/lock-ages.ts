import type { Clock } from '../../lib/clock.ts'

/**
 * How old the locks of a sink's jobs can be at most, in all lanes that this process has of it. BullMQ asks for a job under a
 * token of its own, or under that of the job before, once that one was handled: its lock is younger than that, also where
 * Redis answered late or this process stood still. A lock that cannot have run out needs no question to Redis before the send.
 */
export class LockAges {
  readonly #clock: Pick<Clock, 'now' | 'monotonicMs'>
  readonly lockMs: number
  /** By token, the latest last. */
  readonly #asked = new Map<string, { readonly monotonicMs: number; readonly atMs: number }>()

  constructor(clock: Pick<Clock, 'now' | 'monotonicMs'>, lockMs: number) {
    this.#clock = clock
    this.lockMs = lockMs
  }

  /** BullMQ asks for a job under this token now, or may from now on: the one before was handled. */
  asks(token: string): void {
    this.#asked.delete(token)
    this.#asked.set(token, { monotonicMs: this.#clock.monotonicMs(), atMs: this.#clock.now() })
    const oldest = this.#asked.keys().next()
    if (this.#asked.size > tokensMax && !oldest.done) this.#asked.delete(oldest.value)
  }

  /** Whether this process asked for a job under it. */
  isOurs(token: string): boolean {
    return this.#asked.has(token)
  }

  /** False where it may be old. */
  isYoung(token: string): boolean {
    const asked = this.#asked.get(token)
    if (asked === undefined) return false
    // The monotonic clock of a machine that was asleep stood still; the other one may have been set.
    const ageMs = this.#clock.monotonicMs() - asked.monotonicMs
    return Math.max(ageMs, this.#clock.now() - asked.atMs) < this.lockMs / youngPart
  }
}

/** Of the time for which a lock holds. BullMQ renews it at half of it. */
const youngPart = 4
/** More than its lanes use at a time; BullMQ makes a new one whenever the queue was empty. */
const tokensMax = 1_000
