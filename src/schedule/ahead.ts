import { isFarAhead } from '../lib/waits.ts'
import type { Memory } from './memory.ts'
import { binOf } from './prior.ts'

/**
 * Sets right what a clock that was far ahead left in the memory: a date that lies ahead would never end, and nothing
 * would be learned until then. What was learned of days stays; what was counted of that date goes.
 */
export function mendAhead(
  memory: Memory,
  now: { readonly nowMs: number; readonly wall: number; readonly dateMs: number },
): void {
  if (isFarAhead(memory.dateMs, now.dateMs)) {
    memory.dateMs = now.dateMs
    memory.blindBins = binOf(now.wall)
    memory.counts.fill(0)
  }
  if (memory.sinceMs > memory.dateMs) memory.sinceMs = memory.dateMs
  if (isFarAhead(memory.intensity.atMs, now.nowMs)) memory.intensity.atMs = now.nowMs
  if (isFarAhead(memory.attempts.lastAtMs ?? 0, now.nowMs)) memory.attempts.lastAtMs = null
}
