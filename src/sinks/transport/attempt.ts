import { cut, oneLine } from '../../alert/text/text.ts'
import type { Secret } from '../../lib/secret.ts'
import { onTimeUp } from '../../lib/time-limit.ts'
import { scrub, secretCharsMin } from '../../telemetry/scrub.ts'
import { answerTextMax, type Outcome, outcomeOf, type ProtocolResult } from '../outcome.ts'
import { abortAlong } from './abort-along.ts'
import { bodyBytesMax } from './exchange.ts'
import { type ClassifiedFault, classifyFault, SinkError } from './fault.ts'

/**
 * Runs one attempt, the same way for every sink: reads the secrets, applies one deadline to the whole attempt (also to a
 * receiver that sends one byte a second), turns every throw into a fault, and makes the text that people are shown short,
 * printable and free of the secrets that were read.
 */
interface AttemptLimits {
  /** Aborts at shutdown. */
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

/** What an attempt works with. */
export interface AttemptHelpers {
  /** Aborts at shutdown or when the time is up. */
  readonly signal: AbortSignal
  /** The secret's text, which from now on cannot appear in the outcome; a text of less than `secretCharsMin` can. */
  reveal(secret: Secret): string
  /** Further forms of a secret (a path, an encoding) that must not appear either, of as many characters at least. */
  hide(text: string): void
  /** The same for a password of any length: a short one is hidden where it is a whole word. */
  hideWord(text: string): void
  /** A result that is certain already: it is used if the attempt is aborted later. */
  reportEarly(result: ProtocolResult): void
  /** A connection is sought. Until the message begins to go out, no fault is about what it says. */
  connecting(): void
  /** The message begins to go out. */
  sending(): void
}

export async function runAttempt(
  limits: AttemptLimits,
  send: (helpers: AttemptHelpers) => Promise<ProtocolResult>,
): Promise<Outcome> {
  const hidden = new Set<string>()
  const words = new Set<string>()
  let known: ProtocolResult | undefined
  const { controller, off } = abortAlong(limits.signal)
  const { signal } = controller
  let isLate = false
  let unread: true | undefined
  const call = onTimeUp(limits.timeoutMs, () => {
    isLate = true
    controller.abort()
  })
  const helpers: AttemptHelpers = {
    signal,
    reveal: (secret) => {
      const text = readSecret(secret)
      hidden.add(text)
      return text
    },
    hide: (text) => void hidden.add(text),
    hideWord(text) {
      hidden.add(text)
      if (text === '' || text.length >= secretCharsMin) return
      for (const form of [text, encodeURIComponent(text.toWellFormed())]) words.add(form)
    },
    reportEarly: (result) => {
      known = result
    },
    connecting() {
      unread = true
    },
    sending() {
      unread = undefined
    },
  }
  try {
    signal.throwIfAborted()
    return redacted(outcomeOf(await untilAborted(signal, send(helpers))), hidden, words)
  } catch (error) {
    const result =
      signal.aborted && known !== undefined
        ? known
        : { via: 'fault' as const, ...faultOf(error, limits, isLate), unread }
    return redacted(outcomeOf(result), hidden, words)
  } finally {
    call.off()
    off()
  }
}

function faultOf(error: unknown, limits: AttemptLimits, isLate: boolean): ClassifiedFault {
  if (error instanceof SinkError) return { fault: error.fault, text: error.message }
  if (limits.signal.aborted) return { fault: 'aborted', text: 'the attempt was aborted' }
  if (isLate) return { fault: 'timeout', text: `no complete answer within ${limits.timeoutMs} ms` }
  return classifyFault(error)
}

/** Not every library returns at once when its signal aborts; the attempt does. */
function untilAborted<T>(signal: AbortSignal, sending: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    sending.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

function readSecret(secret: Secret): string {
  let text: string
  try {
    text = secret.reveal()
  } catch {
    throw new SinkError('credentials', `cannot read ${secret.file ?? 'a secret'}`)
  }
  // The file is perhaps being written anew, and a receiver may refuse an empty token for good.
  if (secret.file !== undefined && text.trim() === '')
    throw new SinkError('credentials', `${secret.file} is empty`)
  return text
}

/** How much of an answer is searched for secrets: more than people are shown. */
const lookedAtCharsMax = 2_000

/** Scrubs before it cuts: half a secret is a secret still. */
function redacted(outcome: Outcome, hidden: ReadonlySet<string>, words: ReadonlySet<string>): Outcome {
  const given = outcome.answer.text
  const line = oneLine(given)
  const cutOff = line.length > lookedAtCharsMax || Buffer.byteLength(given) > bodyBytesMax - utf8BytesMax
  let text = scrub(line.slice(0, lookedAtCharsMax), hidden, { cutOff })
  for (const word of words) text = text.replace(asWord(word), '[redacted]')
  return { ...outcome, answer: { ...outcome.answer, text: cut(text, answerTextMax) } }
}

/** The last character of a body may be cut off at the limit. */
const utf8BytesMax = 4

function asWord(text: string): RegExp {
  const literal = text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  return new RegExp(`(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])`, 'gu')
}
