import type { Clock } from '../../lib/clock.ts'

/** Notices that the wall clock, which BullMQ uses, was set back. To be called every few seconds. */
export class ClockWatch {
  readonly #clock: Clock
  /** How far the wall clock is ahead of the monotonic clock. */
  #aheadMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#aheadMs = aheadMs(clock)
  }

  /**
   * By how much it was set back since the last call; 0 for less than `setBackMsMin`, as time synchronisation does.
   */
  setBackMs(): number {
    const before = this.#aheadMs
    this.#aheadMs = aheadMs(this.#clock)
    const backMs = before - this.#aheadMs
    return backMs < setBackMsMin ? 0 : Math.round(backMs)
  }
}

/** Time synchronisation sets a clock back by less. */
export const setBackMsMin = 5_000

function aheadMs(clock: Clock): number {
  return clock.now() - clock.monotonicMs()
}
