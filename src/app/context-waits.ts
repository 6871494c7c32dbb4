import type { Clock } from '../lib/clock.ts'

/**
 * How long alerts wait for their context in this process. A sink that sends one alert after the other keeps those behind waiting too:
 * what it has waited since an alert was put into its queue counts as this alert's own wait. So none goes out later than by one
 * deadline, however many are sent before it, of whichever page or source.
 */
export interface ContextWaits {
  /** An alert of this sink, queued at `queuedAtMs` (wall clock), waits from now until `end`, for `leftMs` at most. */
  begin(
    sink: string,
    queuedAtMs: number,
    deadlineMs: number,
  ): { readonly leftMs: number; readonly end: () => void }
}

/** By the monotonic clock. */
interface SinkWaits {
  running: number
  /** Since when at least one runs. */
  sinceMs: number
  /** Times in which at least one ran, oldest first. */
  readonly ended: { readonly fromMs: number; readonly toMs: number }[]
}

export function createContextWaits(clock: Pick<Clock, 'now' | 'monotonicMs'>): ContextWaits {
  const sinks = new Map<string, SinkWaits>()
  return {
    begin(sink, queuedAtMs, deadlineMs) {
      const waits = sinks.get(sink) ?? { running: 0, sinceMs: 0, ended: [] }
      sinks.set(sink, waits)
      const nowMs = clock.monotonicMs()
      const leftMs = Math.max(0, deadlineMs - waitedSince(waits, nowMs - (clock.now() - queuedAtMs), nowMs))
      if (waits.running === 0) waits.sinceMs = nowMs
      waits.running += 1
      return { leftMs, end: () => end(waits, clock.monotonicMs()) }
    },
  }
}

function waitedSince({ running, sinceMs, ended }: SinkWaits, fromMs: number, nowMs: number): number {
  const all = running === 0 ? ended : [...ended, { fromMs: sinceMs, toMs: nowMs }]
  return all.reduce((sum, each) => sum + Math.max(0, each.toMs - Math.max(each.fromMs, fromMs)), 0)
}

function end(waits: SinkWaits, nowMs: number): void {
  waits.running -= 1
  if (waits.running > 0 || nowMs - waits.sinceMs < shortMs) return
  waits.ended.push({ fromMs: waits.sinceMs, toMs: nowMs })
  if (waits.ended.length > endedMax) waits.ended.shift()
}

/** A look into Redis is shorter; so many that are longer make more than the longest deadline. */
const shortMs = 10
const endedMax = 1_000
