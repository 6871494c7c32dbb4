import type { Clock } from '../lib/clock.ts'
import type { RateLimit } from '../sinks/common-config.ts'

/**
 * The rate limit of a sink that gets several alerts in one message: what counts there is messages, while BullMQ's
 * limiter counts jobs. First come, first served; for this process alone, by the monotonic clock.
 */
export interface MessageLimiter {
  /** Resolves when the next message may go out; rejects when the signal aborts first. */
  wait(signal: AbortSignal): Promise<void>
  /** When the latest messages went out, by the monotonic clock, oldest first, as many as a window may have. */
  sentAtMs(): readonly number[]
}

/** `before`: that of the same sink until its config changed. */
export function createMessageLimiter(
  limit: RateLimit | undefined,
  clock: Clock,
  before?: MessageLimiter,
): MessageLimiter {
  if (limit === undefined) return { wait: async () => {}, sentAtMs: () => [] }
  const { max, per: perMs } = limit
  let past = (before?.sentAtMs() ?? []).slice(-max)
  /** When the latest messages went out or will, oldest first, at most `max`. */
  const turns = [...past]
  return {
    sentAtMs: () => past,
    async wait(signal) {
      const nowMs = clock.monotonicMs()
      const oldest = turns.length < max ? undefined : turns.shift()
      const atMs = oldest === undefined ? nowMs : Math.max(nowMs, oldest + perMs)
      turns.push(atMs)
      if (atMs > nowMs) await clock.sleep(atMs - nowMs, signal)
      past = [...past, atMs].slice(-max)
    },
  }
}
