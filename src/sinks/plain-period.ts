import { waits } from '../lib/waits.ts'
import type { Outcome } from './outcome.ts'

/**
 * The time in which a sink sends only plain forms, such as text without a picture, or an alert without a context that was too large:
 * a minute after an attempt that began with another form has failed, from when the receiver takes requests again. It may take fewer of
 * the other form, or none; a 429 costs no attempt, and a sink at fault is tried seldom, so alerts would be sent in that form for long,
 * each by itself.
 */
export class PlainPeriod {
  /** By the monotonic clock. */
  #untilMs = 0

  isOn(): boolean {
    return performance.now() < this.#untilMs
  }

  /** `outcome` is that of an attempt that did not begin with the plain form. */
  note(outcome: Outcome): void {
    if (outcome.kind !== 'retry') return
    const askedMs = Math.min(outcome.afterMs ?? 0, waits.receiverHold.maxMs)
    this.#untilMs = performance.now() + askedMs + plainForMs
  }
}

const plainForMs = 60_000
