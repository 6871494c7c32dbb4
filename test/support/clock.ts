import { type Clock, systemClock } from '../../src/lib/clock.ts'

/** A clock that the test moves: its wall and its monotonic time go together, and no sleep takes any time. */
export function clockAt(now: () => number): Clock {
  return { now, monotonicMs: now, sleep: () => Promise.resolve() }
}

/** The clock of this machine, whose wall time the test sets while timers and monotonic time go on as ever. */
export function wallClock(): Clock & { turn(byMs: number): void } {
  let aheadMs = 0
  return {
    ...systemClock,
    now: () => Date.now() + aheadMs,
    turn(byMs) {
      aheadMs += byMs
    },
  }
}
