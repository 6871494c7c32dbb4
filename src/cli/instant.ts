import { parseDuration } from '../lib/duration.ts'
import { UserError } from '../lib/errors.ts'

/** A time as operators type it: ISO with an offset, or how long ago (`2h`). ISO in UTC comes back. */
export function instantOf(text: string, option: string, nowMs: number): string {
  const agoMs = parseDuration(text)
  if (agoMs !== undefined) return new Date(nowMs - agoMs).toISOString()
  const atMs = Date.parse(text)
  if (/(Z|[+-]\d{2}:?\d{2})$/.test(text) && !Number.isNaN(atMs)) return new Date(atMs).toISOString()
  throw new UserError(
    `${option}: "${text}" is neither a time such as 2026-11-21T08:45:00+03:30 nor a span such as 2h.`,
  )
}
