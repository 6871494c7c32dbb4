/**
 * Whether alerts wait for an endpoint. After a fault, or an answer that came too late, no alert waits for it for a while; then
 * one call tries it again, and no alert waits for that call either. So an endpoint that is slow for hours delays only the
 * alerts of the first moment, and those by no more than their deadline.
 */
export class EndpointHealth {
  #faults = 0
  #restsUntilMs = 0
  #trying = false

  /** `trial`: make one call for which no alert waits, and report how it ended. `nowMs` is of the monotonic clock. */
  stateAt(nowMs: number): 'good' | 'resting' | 'trial' {
    if (this.#faults === 0) return 'good'
    if (nowMs < this.#restsUntilMs || this.#trying) return 'resting'
    this.#trying = true
    return 'trial'
  }

  /** Whether an alert goes out without it now. `isBusy`: a call of it runs, perhaps the one that failed to answer. */
  isResting(nowMs: number, isBusy: boolean): boolean {
    return this.#faults > 0 && (nowMs < this.#restsUntilMs || this.#trying || isBusy)
  }

  /** It answered in time. */
  ok(): void {
    this.#faults = 0
    this.#trying = false
  }

  /** Returns for how many ms it rests; undefined where it rests already. */
  fault(nowMs: number): number | undefined {
    const wasResting = this.#faults > 0 && nowMs < this.#restsUntilMs
    this.#trying = false
    if (wasResting) return undefined
    const restMs = Math.min(restMsMax, restMsMin * 2 ** this.#faults)
    this.#faults = Math.min(this.#faults + 1, faultsMax)
    this.#restsUntilMs = nowMs + restMs
    return restMs
  }

  /** The trial call ended, and its result says nothing about the endpoint. */
  endTrial(): void {
    this.#trying = false
  }
}

const restMsMin = 5_000
/** The longest rest of one endpoint. */
const restMsMax = 300_000
const faultsMax = 10
