import type { Clock } from '../lib/clock.ts'

/**
 * How long alerts wait for their context in this process. A sink that sends one alert after the other keeps those behind waiting
 * too. So the time for which the sink has waited since its queue was last empty counts as this alert's own wait: the alert came into
 * the queue later than that. None goes out later than by one deadline, however many are sent before it, of whichever page or source.
 */
interface ContextWaits {
  /** An alert of this sink, whose queue was last empty at `emptyMs`, waits from now until `end`, for `leftMs` at most. */
  begin(
    sink: string,
    emptyMs: number,
    deadlineMs: number,
  ): { readonly leftMs: number; readonly end: () => void }
}

/** All by the monotonic clock: those of other machines differ from this one's. */
interface SinkWaits {
  emptyMs: number
  running: number
  /** Since when at least one runs. */
  sinceMs: number
  /** In how much of the time from `emptyMs` to `sinceMs` at least one ran. */
  waitedMs: number
}

export function createContextWaits(clock: Pick<Clock, 'monotonicMs'>): ContextWaits {
  const sinks = new Map<string, SinkWaits>()
  return {
    begin(sink, emptyMs, deadlineMs) {
      const nowMs = clock.monotonicMs()
      const waits = sinks.get(sink) ?? { emptyMs, running: 0, sinceMs: nowMs, waitedMs: 0 }
      sinks.set(sink, waits)
      if (emptyMs > waits.emptyMs)
        Object.assign(waits, { emptyMs, sinceMs: Math.max(waits.sinceMs, emptyMs), waitedMs: 0 })
      if (waits.running === 0) waits.sinceMs = nowMs
      waits.running += 1
      const leftMs = Math.max(0, deadlineMs - waits.waitedMs - (nowMs - waits.sinceMs))
      return { leftMs, end: () => end(waits, clock.monotonicMs()) }
    },
  }
}

function end(waits: SinkWaits, nowMs: number): void {
  waits.running -= 1
  if (waits.running === 0) waits.waitedMs += nowMs - waits.sinceMs
}
