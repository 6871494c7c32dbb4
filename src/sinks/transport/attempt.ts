import { cut, oneLine } from '../../alert/text.ts'
import type { Secret } from '../../lib/secret.ts'
import { scrub, secretCharsMin } from '../../telemetry/scrub.ts'
import { answerTextMax, type Happened, type Outcome, outcomeOf } from '../outcome.ts'
import { classifyFault, SinkError } from './fault.ts'
import { bodyBytesMax } from './http.ts'

/**
 * The frame of one attempt, the same for every sink: the secrets are read, the work runs under one deadline for all of
 * it (a receiver that drips a byte a second meets it too), whatever is thrown becomes a fault, and what people are told
 * is short, printable and free of the secrets that were read.
 */
export interface Frame {
  /** Aborts at shutdown. */
  readonly signal: AbortSignal
  readonly timeoutMs: number
}

/** What an attempt works with. */
export interface Work {
  /** Aborts at shutdown or when the time is up. */
  readonly signal: AbortSignal
  /** The secret's text, which from now on cannot appear in the outcome; a text of less than `secretCharsMin` can. */
  reveal(secret: Secret): string
  /** Further forms of a secret (a path, an encoding) that must not appear either, of as many characters at least. */
  hide(text: string): void
  /** The same for a password of any length: a short one where it stands as a word. */
  hideWord(text: string): void
  /** What is certain already: it stands when the attempt is cut short later. */
  know(happened: Happened): void
}

export async function runAttempt(frame: Frame, work: (tools: Work) => Promise<Happened>): Promise<Outcome> {
  const hidden = new Set<string>()
  const words = new Set<string>()
  let known: Happened | undefined
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), frame.timeoutMs)
  const signal = AbortSignal.any([frame.signal, deadline.signal])
  const tools: Work = {
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
    know: (happened) => {
      known = happened
    },
  }
  try {
    signal.throwIfAborted()
    return told(outcomeOf(await untilAborted(signal, work(tools))), hidden, words)
  } catch (error) {
    const happened = signal.aborted && known !== undefined ? known : faultOf(error, frame, deadline.signal)
    return told(outcomeOf(happened), hidden, words)
  } finally {
    clearTimeout(timer)
  }
}

function faultOf(error: unknown, frame: Frame, deadline: AbortSignal): Happened {
  if (error instanceof SinkError) return { via: 'fault', fault: error.fault, text: error.message }
  if (frame.signal.aborted) return { via: 'fault', fault: 'aborted', text: 'the attempt was called off' }
  if (deadline.aborted)
    return { via: 'fault', fault: 'timeout', text: `no complete answer within ${frame.timeoutMs} ms` }
  return { via: 'fault', ...classifyFault(error) }
}

/** Not every library lets go at once when its signal aborts; the attempt does. */
function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

function readSecret(secret: Secret): string {
  try {
    return secret.reveal()
  } catch {
    throw new SinkError('credentials', `cannot read ${secret.file ?? 'a secret'}`)
  }
}

/** So much of an answer is looked at: people are shown less. */
const lookedAtCharsMax = 2_000

/** Scrubs before it cuts: half a secret is a secret still. */
function told(outcome: Outcome, hidden: ReadonlySet<string>, words: ReadonlySet<string>): Outcome {
  const given = outcome.answer.text
  const line = oneLine(given)
  const cutOff = line.length > lookedAtCharsMax || Buffer.byteLength(given) > bodyBytesMax - utf8BytesMax
  let text = scrub(line.slice(0, lookedAtCharsMax), hidden, { cutOff })
  for (const word of words) text = text.replace(asWord(word), '[redacted]')
  return { ...outcome, answer: { ...outcome.answer, text: cut(text, answerTextMax) } }
}

/** A body is read up to its limit, but for a character that does not fit. */
const utf8BytesMax = 4

function asWord(text: string): RegExp {
  const literal = text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  return new RegExp(`(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])`, 'gu')
}
