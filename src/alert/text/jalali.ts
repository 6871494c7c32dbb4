/** The Jalali (Solar Hijri) calendar, as far as a date of it has to be turned into a day. Pure. */

const dayMs = 86_400_000

let known: Intl.DateTimeFormat | undefined
/** Made when a date is first asked for: it takes some 20 ms. */
const calendar = () =>
  (known ??= new Intl.DateTimeFormat('en-u-ca-persian-nu-latn', {
    timeZone: 'UTC',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
  }))

/**
 * The start of that day in UTC; undefined when there is no such day. Intl only converts towards Jalali, so the days
 * around an estimate are asked for the one that reads as wanted.
 */
export function jalaliDay(year: number, month: number, day: number): number | undefined {
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined
  const dayOfYear = Math.min(month - 1, 6) * 31 + Math.max(0, month - 7) * 30 + day - 1
  const estimateMs = Date.UTC(year + 621, 2, 21) + dayOfYear * dayMs
  for (let offset = -2; offset <= 2; offset++) {
    const ms = estimateMs + offset * dayMs
    const parts = new Map(
      calendar()
        .formatToParts(ms)
        .map(({ type, value }) => [type, value]),
    )
    const [y, m, d] = [parts.get('year'), parts.get('month'), parts.get('day')].map(Number)
    if (y === year && m === month && d === day) return ms
  }
  return undefined
}
