import type { Clock } from '../lib/clock.ts'

/**
 * The rate limit of a sink that gets several alerts in one message: what counts there is messages, while BullMQ's
 * limiter counts jobs. First come, first served; over this process alone, by a clock that nobody sets.
 */
export interface Pace {
  /** Resolves when the next message may go out; rejects when the signal aborts first. */
  turn(signal: AbortSignal): Promise<void>
}

export function createPace(limit: { max: number; perMs: number } | undefined, clock: Clock): Pace {
  if (limit === undefined) return { turn: async () => {} }
  const { max, perMs } = limit
  /** When the latest messages went out or will, by the monotonic clock, oldest first, at most `max`. */
  const turns: number[] = []
  return {
    async turn(signal) {
      const nowMs = clock.monotonicMs()
      const oldest = turns.length < max ? undefined : turns.shift()
      const atMs = oldest === undefined ? nowMs : Math.max(nowMs, oldest + perMs)
      turns.push(atMs)
      if (atMs > nowMs) await clock.sleep(atMs - nowMs, signal)
    },
  }
}
