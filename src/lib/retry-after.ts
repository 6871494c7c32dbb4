/**
 * `Retry-After` (RFC 9110, section 10.2.3) as milliseconds from `nowMs`: whole seconds or an HTTP date in one of its three
 * forms, all of which are GMT. A date in the past is 0; anything else is undefined, and the caller's own pause applies.
 */
export function parseRetryAfter(header: string | undefined | null, nowMs: number): number | undefined {
  const text = header?.trim()
  if (!text) return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000)
  // Date.parse is lenient ("7 apples" is a date to it), and takes a date without a zone for one on the clock of this host.
  if (!/^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d/.test(text)) return undefined
  const dateMs = Date.parse(/([A-Z]|[+-]\d{2}:?\d{2})$/.test(text) ? text : `${text} GMT`)
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs)
}
