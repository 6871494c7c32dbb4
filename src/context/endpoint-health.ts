/**
 * Whether alerts wait for an endpoint. After a fault, or an answer that came too late, no alert waits for it for a while; then
 * one call tries it again, and no alert waits for that call either. So an endpoint that is slow for hours delays only the
 * alerts of the first moment, and those by no more than their deadline. A refusal or an answer that cannot be read, in time,
 * may be of one instrument alone: that one rests, and the endpoint only where several fail in a row.
 */
export class EndpointHealth {
  readonly #own = new Rest()
  readonly #instruments = new Map<string, Rest>()
  /** Those that failed since the last good answer. */
  readonly #failed = new Set<string>()
  #trying = false

  /** `trial`: make one call for which no alert waits, and report how it ended. `nowMs` is of the monotonic clock. */
  stateAt(nowMs: number): 'good' | 'resting' | 'trial' {
    if (this.#own.isGood) return 'good'
    if (this.#own.isOverAt(nowMs) && !this.#trying) {
      this.#trying = true
      return 'trial'
    }
    return 'resting'
  }

  /** Whether an alert goes out without it now. `isBusy`: a call of it runs, perhaps the one that failed to answer. */
  isResting(nowMs: number, isBusy: boolean, instrument: string): boolean {
    if (this.#instruments.get(instrument)?.isOverAt(nowMs) === false) return true
    return !this.#own.isGood && (!this.#own.isOverAt(nowMs) || this.#trying || isBusy)
  }

  /** It answered in time. */
  ok(instrument?: string): void {
    this.#own.end()
    this.#failed.clear()
    this.#trying = false
    if (instrument !== undefined) this.#instruments.delete(instrument)
  }

  /** Returns for how many ms the endpoint rests; undefined where it rests already, or where only the instrument does. */
  fault(nowMs: number, instrument?: string): number | undefined {
    const wasTrial = this.#trying
    this.#trying = false
    if (instrument !== undefined) {
      this.#restInstrument(nowMs, instrument)
      if (!wasTrial && this.#failed.size < failedInARowMax) return undefined
    }
    return this.#own.begin(nowMs)
  }

  /** The trial call ended, and its result says nothing about the endpoint. */
  endTrial(): void {
    this.#trying = false
  }

  #restInstrument(nowMs: number, instrument: string): void {
    const rest = this.#instruments.get(instrument) ?? new Rest()
    rest.begin(nowMs)
    this.#instruments.delete(instrument)
    this.#instruments.set(instrument, rest)
    const [oldest] = this.#instruments.keys()
    if (this.#instruments.size > instrumentsMax && oldest !== undefined) this.#instruments.delete(oldest)
    this.#failed.add(instrument)
  }
}

/** Different instruments, without a good answer in between. Each has cost its units, so they are few. */
export const failedInARowMax = 3

class Rest {
  #faults = 0
  #untilMs = 0

  get isGood(): boolean {
    return this.#faults === 0
  }

  isOverAt(nowMs: number): boolean {
    return nowMs >= this.#untilMs
  }

  /** Each is twice as long as the one before. Returns for how many ms; undefined where it runs already. */
  begin(nowMs: number): number | undefined {
    if (!this.isGood && !this.isOverAt(nowMs)) return undefined
    const restMs = Math.min(restMsMax, restMsMin * 2 ** this.#faults)
    this.#faults = Math.min(this.#faults + 1, faultsMax)
    this.#untilMs = nowMs + restMs
    return restMs
  }

  end(): void {
    this.#faults = 0
    this.#untilMs = 0
  }
}

/** Of those that rest by themselves; the one that failed longest ago is tried again. */
const instrumentsMax = 1_000
const restMsMin = 5_000
/** The longest rest of one endpoint. */
const restMsMax = 300_000
const faultsMax = 10
