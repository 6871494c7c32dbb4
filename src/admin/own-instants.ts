import { wallTime } from '../lib/zone.ts'

/**
 * The instants (ISO 8601) within sentences of the bridge, which people read on a clock of their own; what others wrote within them
 * stays as it came.
 */
export const isoForm = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?(?:Z|[+-]\d\d:\d\d)`

/** What the bridge writes before one: of a mute, a silence, a throttle, a pause, a lease, a process, a rule, a day, an order, and in `explain`. */
const ownInstants = new RegExp(
  `(?<=(?:\\b(?:muted|throttled|silenced by \\S+|is paused|asked for a pause) until|^as of|^(?:\\S+ )?since|^(?:\\S+ )?(?:since \\S+ )?until|\\brunning since|; its lease ends at|\\blast evaluated|\\bwas due|\\bday starts anew at) )(${isoForm})`,
  'gm',
)

/** The text in parts; each second one is an instant of the bridge's own. */
export function splitAtInstants(text: string): string[] {
  return text.split(ownInstants)
}

/** A text that the bridge has written, with its own instants on the clock of `timeZone`. */
export function localSentences(text: string, timeZone: string): string {
  return splitAtInstants(text)
    .map((part, at) => (at % 2 === 1 ? onClock(part, timeZone) : part))
    .join('')
}

/** Each has its offset, so that commands take it as it is shown. What is no instant stays. */
export function onClock(text: string, timeZone: string): string {
  const atMs = Date.parse(text)
  if (Number.isNaN(atMs)) return text
  const offsetMinutes = Math.round((wallTime(atMs, timeZone) - atMs) / 60_000)
  const two = (count: number) => String(Math.floor(Math.abs(count))).padStart(2, '0')
  const shown = new Date(atMs + offsetMinutes * 60_000).toISOString().replace(/(?:\.000)?Z$/, '')
  return `${shown}${offsetMinutes < 0 ? '-' : '+'}${two(offsetMinutes / 60)}:${two(offsetMinutes % 60)}`
}
