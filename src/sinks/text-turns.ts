import { untilTurn } from '../alert/match/turns.ts'
import { settlesWithin } from '../lib/time-limit.ts'
import { SinkError } from './transport/fault.ts'

/**
 * Texts of one sink that take long to write are written one after the other, so that the sink has one place among all that wait for their
 * turn, however many sends it has under way. A sink is known by its last text.
 */
export class TextTurns {
  readonly #waitMsMax: number
  #lastTextMs = 0
  #lastWriting: Promise<unknown> = Promise.resolve()

  /** `waitMsMax`: what has waited for longer is tried again, since its receiver would hardly have the time to answer. */
  constructor(waitMsMax: number) {
    this.#waitMsMax = waitMsMax
  }

  timed<T>(work: () => T): T {
    const since = process.threadCpuUsage()
    try {
      return work()
    } finally {
      const { user, system } = process.threadCpuUsage(since)
      this.#lastTextMs = (user + system) / 1_000
    }
  }

  /** At once while texts are short. `write` uses `timed`. */
  async inTurn<T>(write: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (!this.#takesLong()) return write()
    let isLate = false
    // No fault of the sink: it rests for no such attempt.
    const late = () =>
      new SinkError('aborted', 'too many texts were to be made from templates that take long')
    const writing = this.#lastWriting.then(async () => {
      if (this.#takesLong()) await untilTurn({ readers: true, signal })
      if (isLate) throw late()
      return write()
    })
    this.#lastWriting = writing.catch(() => undefined)
    isLate = !(await settlesWithin(this.#waitMsMax, writing))
    if (isLate) throw late()
    return writing
  }

  #takesLong(): boolean {
    return this.#lastTextMs > longTextMs
  }
}

/** Of the processor. Shorter ones wait for no turn: of a hundred at once, the last would come too late for its receiver. */
const longTextMs = 10
