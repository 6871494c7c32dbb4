import { durationText, parseDuration } from '../lib/duration.ts'
import { UserError } from '../lib/errors.ts'
import { parseInstant } from '../lib/instant.ts'

/** A time as operators type it: ISO with an offset, or how long ago (`2h`). ISO in UTC comes back. */
export function instantOf(text: string, option: string, nowMs: number): string {
  const agoMs = parseDuration(text)
  if (agoMs !== undefined && agoMs > agoMsMax)
    throw new UserError(`${option}: expected a span of at most ${durationText(agoMsMax)}.`)
  const atMs = agoMs === undefined ? parseInstant(text) : nowMs - agoMs
  if (atMs !== undefined) return new Date(atMs).toISOString()
  throw new UserError(
    `${option}: "${text}" is neither a time such as 2026-11-21T08:45:00+03:30 nor a span such as 2h.`,
  )
}

/** Longer than anything is kept. */
const agoMsMax = 3_650 * 86_400_000
