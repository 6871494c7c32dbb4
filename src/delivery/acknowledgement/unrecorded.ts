import type { Clock } from '../../lib/clock.ts'

/**
 * Acknowledgements that BullMQ has not recorded yet: Redis is away, or the job's lock has expired. As soon as Redis
 * answers, each is stored in a field of its job, for the process that takes the job next; until then this process
 * retries. An acknowledgement that was never stored is lost when the process ends.
 */
export class Unrecorded {
  readonly #clock: Clock
  readonly #entries = new Map<string, Entry>()
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `write` stores the acknowledgement in the job's field, or rejects where Redis refuses that or is away. */
  add(name: string, write: () => Promise<void>): void {
    this.#entries.set(name, { write, fromMs: this.#clock.monotonicMs() + patienceMs })
    this.#lookIn(patienceMs)
  }

  /** Resolves once the acknowledgement is stored, or need not be; rejects as its `write` does. */
  async store(name: string): Promise<void> {
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    await entry.write()
    if (this.#entries.get(name) === entry) this.#entries.delete(name)
  }

  /** Redis has the job's record. */
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
    await Promise.all(due.map(([name]) => this.store(name).catch(() => {})))
    this.#timer = undefined
    this.#lookIn(everyMs)
  }
}

interface Entry {
  readonly write: () => Promise<void>
  /** Until then BullMQ itself may record it. */
  readonly fromMs: number
}

const patienceMs = 500
const everyMs = 250
