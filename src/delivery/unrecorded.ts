import type { Clock } from '../lib/clock.ts'

/**
 * Acknowledgements that BullMQ has not recorded yet: Redis is away, or took the lock from the job meanwhile. As soon as
 * Redis answers, each is written beside its job, where whichever process takes that job next finds it; until then this
 * process asks again and again. What it never gets through is lost with the process.
 */
export class Unrecorded {
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `write` marks the job as acknowledged, or rejects while Redis does not take it. */
  add(name: string, write: () => Promise<void>): void {
    this.#entries.set(name, { write, fromMs: this.#clock.monotonicMs() + patienceMs })
    this.#lookIn(patienceMs)
  }

  /** The job's record stands in Redis. */
  recorded(name: string): void {
    this.#entries.delete(name)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #lookIn(ms: number): void {
    if (this.#stopped || this.#entries.size === 0) return
    this.#timer ??= setTimeout(() => void this.#look(), ms)
  }

  async #look(): Promise<void> {
    const due = [...this.#entries].filter(([, { fromMs }]) => fromMs <= this.#clock.monotonicMs())
    await Promise.all(
      due.map(async ([name, entry]) => {
        const written = await entry.write().then(
          () => true,
          () => false,
        )
        if (written && this.#entries.get(name) === entry) this.#entries.delete(name)
      }),
    )
    this.#timer = undefined
    this.#lookIn(everyMs)
  }
}

interface Entry {
  readonly write: () => Promise<void>
  /** Before that BullMQ itself is given the time to record it. */
  readonly fromMs: number
}

const patienceMs = 500
const everyMs = 250
