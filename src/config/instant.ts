const form = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:?\d{2})$/

/**
 * An ISO 8601 time with its offset to milliseconds; undefined for anything else. `Date.parse` alone takes almost any text
 * with a number in it, and makes March of the 31st of February.
 */
export function parseInstant(text: string): number | undefined {
  const [, day = '', time = '', offset = ''] = form.exec(text) ?? []
  const dayMs = Date.parse(`${day}T00:00:00Z`)
  if (Number.isNaN(dayMs) || !new Date(dayMs).toISOString().startsWith(day)) return undefined
  const ms = Date.parse(`${day}T${time}${offset}`)
  return Number.isNaN(ms) ? undefined : ms
}
