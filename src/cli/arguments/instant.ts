import { parseInstant } from '../../config/instant.ts'
import { durationText, parseDuration } from '../../lib/duration.ts'
import { UsageError } from './usage.ts'

/** Parses a time as operators type it: ISO with an offset, or how long ago (`2h`). Returns ISO in UTC. */
export function isoInstantOf(text: string, option: string, nowMs: number): string {
  const agoMs = parseDuration(text)
  if (agoMs !== undefined && agoMs > agoMsMax)
    throw new UsageError(`${option}: expected a span of at most ${durationText(agoMsMax)}.`)
  const atMs = agoMs === undefined ? parseInstant(text) : nowMs - agoMs
  if (atMs !== undefined) return new Date(atMs).toISOString()
  throw new UsageError(
    `${option}: "${text}" is neither a time such as 2026-11-21T08:45:00+03:30 nor a span such as 2h.`,
  )
}

/** The same, as the parser of an option. */
export function instantOption(option: string): (text: string) => string {
  return (text) => isoInstantOf(text, option, Date.now())
}

/** Longer than any record is kept. */
const agoMsMax = 3_650 * 86_400_000
