import type { AlertContext } from '../alert/context.ts'
import { given } from '../lib/given.ts'
import { isPage } from './transport/json-answer.ts'

/**
 * The outcome of one attempt. Sinks report what happened (`ProtocolResult`); `outcomeOf` is the only place that decides
 * whether that is delivered, to be tried again, or final. The reasons are closed unions: they appear in the log, in the
 * record of an attempt and on the status page.
 */
export type Outcome =
  | {
      readonly kind: 'delivered'
      readonly answer: Answer
      /** Of its context, where the sink left out what it was given. */
      readonly skipped?: AlertContext['skipped']
    }
  | {
      readonly kind: 'retry'
      readonly reason: RetryReason
      /** What the remote asked for (`Retry-After`), in milliseconds. */
      readonly afterMs?: number
      /** The sink as a whole is at fault (down, refusing credentials), not this alert: counts for the breaker. */
      readonly sinkFault: boolean
      /** The receiver has seen nothing of the message, so what the message says is not why. */
      readonly unread?: boolean
      readonly answer: Answer
    }
  | {
      readonly kind: 'dead'
      readonly reason: DeadReason
      readonly sinkFault: boolean
      readonly answer: Answer
    }

/** What people are shown of the receiver's answer; free of secrets, at most `answerTextMax` characters. */
export interface Answer {
  readonly status?: number
  readonly text: string
}

export type RetryReason =
  | 'rate_limited'
  | 'server_error'
  | 'timeout'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'connection_lost'
  | 'bad_answer'
  | 'redirect'
  | 'blocked_address'
  | 'credentials'
  | 'aborted'

export type DeadReason =
  | 'gone'
  | 'rejected'
  | 'redirect'
  | 'blocked_address'
  | 'credentials'
  | 'unrenderable'
  | 'expired'
  | 'attempts_exhausted'

export const answerTextMax = 300

/** What happened, as the protocol describes it. */
export type ProtocolResult =
  | {
      readonly via: 'http'
      readonly status: number
      readonly retryAfterMs?: number | undefined
      readonly text: string
      /** What the body means, where it is more exact than the status. */
      readonly meaning?: Meaning | undefined
    }
  | {
      readonly via: 'slack'
      readonly status: number
      /** Slack's answer: `ok`, or one word that says what is wrong. */
      readonly word: string
      readonly retryAfterMs?: number | undefined
    }
  | { readonly via: 'smtp'; readonly code: number; readonly stage: SmtpStage; readonly text: string }
  | {
      readonly via: 'fault'
      readonly fault: Fault
      readonly text: string
      /** It came before the message began to go out. */
      readonly unread?: boolean | undefined
    }

/**
 * What a body may mean: the receiver does not exist any more, the credentials are wrong, this message is refused, the
 * bridge sends too fast, or something else than the receiver answered.
 */
export type Meaning = 'gone' | 'credentials' | 'rejected' | 'rate_limited' | 'bad_answer'

/** The command that an SMTP server replied to: before any message, the sender, the recipient, the message itself. */
export type SmtpStage = 'session' | 'auth' | 'sender' | 'recipient' | 'message'

/** What went wrong without an answer from the receiver. */
export type Fault =
  | 'aborted'
  | 'bad_answer'
  | 'blocked_address'
  | 'blocked_name' // a name resolves to such an address now, which can change
  | 'connect'
  | 'connection_lost'
  | 'credentials'
  | 'dns'
  | 'timeout'
  | 'tls'
  | 'unrenderable'

export function outcomeOf(result: ProtocolResult): Outcome {
  switch (result.via) {
    case 'http':
      return ofReply(result)
    case 'slack':
      return ofSlack(result)
    case 'smtp':
      return ofSmtp(result)
    case 'fault':
      return ofFault(result)
    default:
      return result satisfies never
  }
}

/** Whether Slack refused the form of a message: a plainer form of the same alert may be accepted. */
export function isSlackMessageFault(word: string): boolean {
  return slackWords.get(word) === 'message'
}

function ofReply(result: Extract<ProtocolResult, { via: 'http' }>): Outcome {
  const { status, retryAfterMs: afterMs, text, meaning } = result
  const answer = { status, text }
  switch (meaning) {
    case undefined:
      return ofHttp(status, afterMs, answer)
    case 'rate_limited':
      return retry('rate_limited', answer, { afterMs, sinkFault: false })
    case 'bad_answer':
      return ofForeignAnswer(ofHttp(status, afterMs, answer))
    case 'rejected':
      return dead('rejected', false, answer)
    case 'gone':
    case 'credentials':
      return dead(meaning, true, answer)
    default:
      return meaning satisfies never
  }
}

/** Something else than the receiver (a proxy, a login page) may ask to wait; it neither accepts an alert nor refuses one. */
function ofForeignAnswer(byStatus: Outcome): Outcome {
  return byStatus.kind === 'retry' ? byStatus : retry('bad_answer', byStatus.answer)
}

function ofHttp(status: number, afterMs: number | undefined, answer: Answer): Outcome {
  if (status >= 200 && status <= 299) return { kind: 'delivered', answer }
  if (status === 429) return retry('rate_limited', answer, { afterMs, sinkFault: false })
  if (status === 408) return retry('timeout', answer, { afterMs })
  if (status === 425 || (status >= 500 && status <= 599)) return retry('server_error', answer, { afterMs })
  // A temporary redirect: a network's login page, a maintenance page.
  if (status === 302 || status === 307) return retry('redirect', answer, { afterMs })
  if (status >= 300 && status <= 399) return dead('redirect', true, answer)
  // A proxy between asks for another login: this is not about the alert or its receiver.
  if (status === 407) return retry('connect', answer, { unread: true })
  if (status === 401 || status === 403) return dead('credentials', true, answer)
  if (status === 410) return dead('gone', true, answer)
  if (status >= 400 && status <= 499) return dead('rejected', false, answer)
  // 1xx as a final answer, or a number that HTTP does not define: it was not the receiver that answered.
  return retry('bad_answer', answer)
}

/** What Slack's error codes mean; for others the status decides. */
const slackWords: ReadonlyMap<string, 'gone' | 'credentials' | 'message'> = new Map([
  ['no_service', 'gone'],
  ['no_service_id', 'gone'],
  ['no_active_hooks', 'gone'],
  ['no_team', 'gone'],
  ['team_disabled', 'gone'],
  ['channel_not_found', 'gone'],
  ['channel_is_archived', 'gone'],
  ['user_not_found', 'gone'],
  ['invalid_token', 'credentials'],
  ['action_prohibited', 'credentials'],
  ['posting_to_general_channel_denied', 'credentials'],
  ['invalid_payload', 'message'],
  ['invalid_blocks', 'message'],
  ['invalid_blocks_format', 'message'],
  ['invalid_attachments', 'message'],
  ['no_text', 'message'],
  ['too_many_attachments', 'message'],
  ['msg_too_long', 'message'],
  ['msg_blocks_too_long', 'message'],
])

function ofSlack(result: Extract<ProtocolResult, { via: 'slack' }>): Outcome {
  const { status, word, retryAfterMs: afterMs } = result
  const answer = { status, text: word }
  const meaning = slackWords.get(word)
  // Slack answers exactly `ok`; any other 2xx comes from something else, such as a proxy.
  if (status >= 200 && status <= 299 && meaning === undefined)
    return word === 'ok' ? { kind: 'delivered', answer } : retry('bad_answer', answer)
  if (meaning === undefined || status === 429 || status >= 500) {
    const byStatus = ofHttp(status, afterMs, answer)
    return isPage(word) ? ofForeignAnswer(byStatus) : byStatus
  }
  return meaning === 'message' ? dead('rejected', false, answer) : dead(meaning, true, answer)
}

function ofSmtp(result: Extract<ProtocolResult, { via: 'smtp' }>): Outcome {
  const { code, stage, text } = result
  const answer = { status: code, text }
  // 221 closes the session and is not about the message; only a message can be acknowledged.
  const isAcknowledged = code >= 200 && code <= 299 && code !== 221 && stage === 'message'
  if (isAcknowledged) return { kind: 'delivered', answer }
  if (!(code >= 400 && code <= 599)) return retry('bad_answer', answer)
  // Wrong or missing credentials (530: the server asks for some first): the operator corrects them, so the alert waits.
  if (stage === 'auth' || code === 530) return retry('credentials', answer, { unread: true })
  // 503 is about the order of commands, not about the message; a refused session says nothing about it either.
  const final = code >= 500 && code <= 599 && code !== 503 && stage !== 'session'
  if (final) return dead('rejected', stage === 'sender', answer)
  return retry('server_error', answer, { sinkFault: stage !== 'recipient', unread: stage !== 'message' })
}

function ofFault({ fault, text, unread }: Extract<ProtocolResult, { via: 'fault' }>): Outcome {
  const answer = { text }
  switch (fault) {
    case 'blocked_address':
      return dead(fault, true, answer)
    case 'blocked_name':
      return retry('blocked_address', answer, { unread })
    // About no message whenever they come: a secret is read before a connection is sought, and a proxy that is to pass a request on
    // asks for another login once it has the request.
    case 'connect':
    case 'credentials':
    case 'dns':
    case 'tls':
      return retry(fault, answer, { unread: true })
    case 'unrenderable':
      return dead(fault, false, answer)
    case 'aborted':
      return retry(fault, answer, { sinkFault: false })
    default:
      return retry(fault, answer, { unread })
  }
}

function retry(
  reason: RetryReason,
  answer: Answer,
  options: { afterMs?: number | undefined; sinkFault?: boolean; unread?: boolean | undefined } = {},
): Outcome {
  const { afterMs, sinkFault = true, unread } = options
  return { kind: 'retry', reason, sinkFault, answer, ...given({ afterMs, unread }) }
}

function dead(reason: DeadReason, sinkFault: boolean, answer: Answer): Outcome {
  return { kind: 'dead', reason, sinkFault, answer }
}
