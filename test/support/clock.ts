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

/**
 * The clock of this machine, and a test that lets more time pass than there was: whatever sleeps by it wakes when its
 * time is over. What goes by the timers of the machine or by the clock of Redis is not touched by it. Time that passes while
 * nobody sleeps wakes nobody: `sleepers` says how many do.
 */
export function passingClock(): Clock & { pass(ms: number): void; sleepers(): number } {
  let passedMs = 0
  let sleepers = 0
  let passing = new AbortController()
  const monotonicMs = () => performance.now() + passedMs
  return {
    now: () => Date.now() + passedMs,
    monotonicMs,
    async sleep(ms, signal) {
      const endMs = monotonicMs() + ms
      sleepers += 1
      try {
        do {
          const signals = [passing.signal, ...(signal === undefined ? [] : [signal])]
          await systemClock.sleep(endMs - monotonicMs(), AbortSignal.any(signals)).catch(() => {})
          signal?.throwIfAborted()
        } while (monotonicMs() < endMs)
      } finally {
        sleepers -= 1
      }
    },
    sleepers: () => sleepers,
    pass(ms) {
      passedMs += ms
      passing.abort()
      passing = new AbortController()
    },
  }
}

/** Lets time pass by this clock; in the long form of the tests, the time as it is. */
export async function letPass(clock: { pass(ms: number): void }, ms: number): Promise<void> {
  if (process.env['LONG'] === '1') await systemClock.sleep(ms)
  else clock.pass(ms)
}

/** A clock that jumps: a sleep ends at once, and moves the time. After `sleeps` of them, one never ends. */
export function jumpingClock(sleeps: number): Clock {
  let nowMs = Date.UTC(2026, 4, 3, 9, 0, 0)
  let left = sleeps
  return {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    async sleep(ms: number, signal?: AbortSignal) {
      if (left-- <= 0) return systemClock.sleep(2 ** 31, signal)
      nowMs += Math.max(0, ms)
    },
  }
}
