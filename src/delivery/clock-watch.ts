import type { Clock } from '../lib/clock.ts'

/** Notices that the wall clock was set back, which BullMQ goes by. To be asked every few seconds. */
export class ClockWatch {
  readonly #clock: Clock
  /** How far the wall clock is ahead of the one that nobody sets. */
  #aheadMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#aheadMs = aheadMs(clock)
  }

  /**
   * By how much it was set back since the last time this was asked; 0 for less than `setBackMsMin`, as whoever keeps it
   * right does.
   */
  setBackMs(): number {
    const before = this.#aheadMs
    this.#aheadMs = aheadMs(this.#clock)
    const backMs = before - this.#aheadMs
    return backMs < setBackMsMin ? 0 : Math.round(backMs)
  }
}

/** A clock that is kept right goes back by less. */
export const setBackMsMin = 5_000

function aheadMs(clock: Clock): number {
  return clock.now() - clock.monotonicMs()
}
