import { isMapping } from '../alert/value.ts'
import { wallTime } from '../lib/zone.ts'

/**
 * An answer of the bridge with its instants on the clock of `timeZone`, for people. Only whole values are changed, not what is
 * within a text; each says its offset, so that commands take it as it is shown.
 */
export function localTimes(answer: unknown, timeZone: string): unknown {
  if (typeof answer === 'string') return instantForm.test(answer) ? onClock(answer, timeZone) : answer
  if (Array.isArray(answer)) return answer.map((each) => localTimes(each, timeZone))
  if (!isMapping(answer)) return answer
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [name, localTimes(value, timeZone)]),
  )
}

const instantForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?(?:Z|[+-]\d\d:\d\d)$/

function onClock(text: string, timeZone: string): string {
  const atMs = Date.parse(text)
  if (Number.isNaN(atMs)) return text
  const offsetMinutes = Math.round((wallTime(atMs, timeZone) - atMs) / 60_000)
  const two = (count: number) => String(Math.floor(Math.abs(count))).padStart(2, '0')
  const shown = new Date(atMs + offsetMinutes * 60_000).toISOString().replace(/(?:\.000)?Z$/, '')
  return `${shown}${offsetMinutes < 0 ? '-' : '+'}${two(offsetMinutes / 60)}:${two(offsetMinutes % 60)}`
}
