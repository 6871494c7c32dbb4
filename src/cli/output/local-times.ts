import { isoForm, localSentences, onClock } from '../../admin/own-instants.ts'
import { isMapping } from '../../alert/json/json.ts'

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

/** Whether the bridge wrote this field of `answer`; in other answers a field of this name may be what a receiver said. */
function isSentence(name: string, answer: Readonly<Record<string, unknown>>): boolean {
  if (name === 'text') return ['silence', 'decisions', 'code', 'name'].some((other) => other in answer)
  if (name === 'reason') return answer['state'] === 'held' || 'nextPollAt' in answer
  if (name === 'subject') return 'action' in answer
  if (name === 'note') return 'resetsAt' in answer
  return ['notes', 'polledBy', 'silent'].includes(name)
}

function inSentences(value: unknown, timeZone: string): unknown {
  if (Array.isArray(value)) return value.map((each) => inSentences(each, timeZone))
  return typeof value === 'string' ? localSentences(value, timeZone) : value
}

const wholeForm = new RegExp(`^${isoForm}$`)
