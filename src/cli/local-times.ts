import { isMapping } from '../alert/value.ts'
import { wallTime } from '../lib/zone.ts'

/**
 * An answer of the bridge for people, with its instants on the clock of `timeZone`: whole values, and those within sentences of the
 * bridge, but not within other texts. Each has its offset, so that commands take it as it is shown.
 */
export function localTimes(answer: unknown, timeZone: string): unknown {
  if (typeof answer === 'string') return wholeForm.test(answer) ? onClock(answer, timeZone) : answer
  if (Array.isArray(answer)) return answer.map((each) => localTimes(each, timeZone))
  if (!isMapping(answer)) return answer
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [
      name,
      localTimes(isSentence(name, answer) ? inSentences(value, timeZone) : value, timeZone),
    ]),
  )
}

/** A text that the bridge has written, with its own instants on the clock of `timeZone`. */
export function localSentences(text: string, timeZone: string): string {
  return text.replace(ownInstants, (_all, before, instant) => before + onClock(instant, timeZone))
}

/** Whether the bridge wrote this field of `answer`; in other answers a field of this name may be what a receiver said. */
function isSentence(name: string, answer: Readonly<Record<string, unknown>>): boolean {
  if (name === 'text') return ['silence', 'decisions', 'code', 'name'].some((other) => other in answer)
  if (name === 'reason') return answer['state'] === 'held' || 'nextPollAt' in answer
  return ['notes', 'polledBy', 'silent'].includes(name)
}

function inSentences(value: unknown, timeZone: string): unknown {
  if (Array.isArray(value)) return value.map((each) => inSentences(each, timeZone))
  return typeof value === 'string' ? localSentences(value, timeZone) : value
}

const instant = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?(?:Z|[+-]\d\d:\d\d)`
const wholeForm = new RegExp(`^${instant}$`)
/** What the bridge writes before an instant, of a mute, a silence, a throttle, a pause, a lease, a process, a rule, and in `explain`. */
const ownInstants = new RegExp(
  `((?:\\b(?:muted|throttled|silenced by \\S+|is paused) until|^as of|\\brunning since|; its lease ends at|\\blast evaluated|\\bwas due) )(${instant})`,
  'gm',
)

function onClock(text: string, timeZone: string): string {
  const atMs = Date.parse(text)
  if (Number.isNaN(atMs)) return text
  const offsetMinutes = Math.round((wallTime(atMs, timeZone) - atMs) / 60_000)
  const two = (count: number) => String(Math.floor(Math.abs(count))).padStart(2, '0')
  const shown = new Date(atMs + offsetMinutes * 60_000).toISOString().replace(/(?:\.000)?Z$/, '')
  return `${shown}${offsetMinutes < 0 ? '-' : '+'}${two(offsetMinutes / 60)}:${two(offsetMinutes % 60)}`
}
