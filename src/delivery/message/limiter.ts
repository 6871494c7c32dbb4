import type { Clock } from '../../lib/clock.ts'
import type { RateLimit } from '../../sinks/common-config.ts'

/**
 * Which message of a sink may go out when, where several alerts share one: as many at a time as the sink's concurrency,
 * and by its rate limit. What counts is messages, while BullMQ's worker and limiter count jobs. First come, first served;
 * for this process alone, by the monotonic clock.
 */
export interface MessageLimiter {
  /**
   * Resolves when the next message may go out, to what is to be called when its send is over; rejects when the signal
   * aborts first.
   */
  turn(signal: AbortSignal): Promise<() => void>
  /** When the latest messages went out, by the monotonic clock, oldest first, as many as a window may have. */
  sentAtMs(): readonly number[]
}

export interface MessageLimits {
  readonly concurrency: number
  readonly rateLimit: RateLimit | undefined
}

/** `before`: that of the same sink until its config changed. */
export function createMessageLimiter(
  { concurrency, rateLimit }: MessageLimits,
  clock: Clock,
  before?: MessageLimiter,
): MessageLimiter {
  const enter = createPlaces(concurrency)
  const pace = rateLimit === undefined ? undefined : createPace(rateLimit, clock, before)
  return {
    sentAtMs: () => pace?.sentAtMs() ?? [],
    async turn(signal) {
      const leave = await enter(signal)
      try {
        await pace?.wait(signal)
        return leave
      } catch (thrown) {
        leave()
        throw thrown
      }
    },
  }
}

/** Returns what waits for one of `count` places, and resolves to what is to be called when it is left. */
function createPlaces(count: number): (signal: AbortSignal) => Promise<() => void> {
  let free = count
  const waiting = new Set<() => void>()
  const leave = () => {
    const [next] = waiting
    if (next === undefined) free += 1
    else next()
  }
  return (signal) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted()
      const enter = () => {
        waiting.delete(enter)
        signal.removeEventListener('abort', giveUp)
        resolve(leave)
      }
      const giveUp = () => {
        waiting.delete(enter)
        reject(signal.reason)
      }
      if (free === 0) {
        waiting.add(enter)
        signal.addEventListener('abort', giveUp, { once: true })
      } else {
        free -= 1
        resolve(leave)
      }
    })
}

function createPace({ max, per: perMs }: RateLimit, clock: Clock, before: MessageLimiter | undefined) {
  let past = (before?.sentAtMs() ?? []).slice(-max)
  /** When the latest messages went out or will, oldest first, at most `max`. */
  const turns = [...past]
  return {
    sentAtMs: (): readonly number[] => past,
    async wait(signal: AbortSignal) {
      const nowMs = clock.monotonicMs()
      const oldest = turns.length < max ? undefined : turns.shift()
      const atMs = oldest === undefined ? nowMs : Math.max(nowMs, oldest + perMs)
      turns.push(atMs)
      if (atMs > nowMs) await clock.sleep(atMs - nowMs, signal)
      past = [...past, atMs].slice(-max)
    },
  }
}
