/**
 * Whether an endpoint is worth waiting for. After a fault, or an answer that came too late, no alert waits for it for a while;
 * then one call tries it again, for which no alert waits either. So an endpoint that is slow for hours delays the alerts of
 * one moment, by their deadline, and nothing else.
 */
export class Standing {
  #faults = 0
  #restsUntilMs = 0
  #trying = false

  /** `trial`: call, but let nobody wait; the caller reports how it ended. By the monotonic clock. */
  at(nowMs: number): 'good' | 'resting' | 'trial' {
    if (this.#faults === 0) return 'good'
    if (nowMs < this.#restsUntilMs || this.#trying) return 'resting'
    this.#trying = true
    return 'trial'
  }

  /** It answered in time. */
  ok(): void {
    this.#faults = 0
    this.#trying = false
  }

  /** Returns how long it rests, in ms; undefined where it rests already. */
  fault(nowMs: number): number | undefined {
    const wasResting = this.#faults > 0 && nowMs < this.#restsUntilMs
    this.#trying = false
    if (wasResting) return undefined
    const restMs = Math.min(restMsMax, restMsMin * 2 ** this.#faults)
    this.#faults = Math.min(this.#faults + 1, faultsMax)
    this.#restsUntilMs = nowMs + restMs
    return restMs
  }

  /** The trial ended without an answer that says anything of the endpoint. */
  endTrial(): void {
    this.#trying = false
  }
}

const restMsMin = 5_000
/** The longest rest of one endpoint. */
export const restMsMax = 300_000
const faultsMax = 10
