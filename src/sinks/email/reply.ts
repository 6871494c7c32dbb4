import { errorCode } from '../../lib/errors.ts'
import type { ProtocolResult, SmtpStage } from '../outcome.ts'

/** The SMTP reply to a whole message. */
export function smtpReply(text: string): ProtocolResult {
  const code = Number.parseInt(text, 10)
  return { via: 'smtp', code, stage: 'message', text: withoutCode(text, code) }
}

/** The SMTP reply in an error of nodemailer; undefined when the server did not reply. */
export function smtpErrorReply(error: unknown): ProtocolResult | undefined {
  if (!(error instanceof Error)) return undefined
  // A server that refuses STARTTLS did reply, but the fault is the missing TLS.
  if (errorCode(error) === 'ETLS') return undefined
  const reply = error as { responseCode?: unknown; response?: unknown; command?: unknown }
  if (typeof reply.responseCode !== 'number') return undefined
  const text = typeof reply.response === 'string' ? reply.response : error.message
  const command = typeof reply.command === 'string' ? reply.command : ''
  // An error is no acknowledgement, whatever its number: a greeting with 221, a login that is answered with 250.
  if (reply.responseCode < 400) return { via: 'fault', fault: 'bad_answer', text }
  const { responseCode: code } = reply
  return { via: 'smtp', code, stage: stageOf(command, errorCode(error)), text: withoutCode(text, code) }
}

/** Each line of a reply begins with the code, which is shown beside the text. */
function withoutCode(text: string, code: number): string {
  return text.replace(new RegExp(`^${code}(?:[ -]|$)`, 'gm'), '')
}

/** nodemailer gives a refused sender and a refused recipient the same code, so the command decides. */
function stageOf(command: string, code: string | undefined): SmtpStage {
  if (code === 'EAUTH' || command.startsWith('AUTH')) return 'auth'
  switch (command.split(' ')[0]) {
    case 'MAIL':
      return 'sender'
    case 'RCPT':
      return 'recipient'
    case 'DATA':
      return 'message'
    default:
      return 'session'
  }
}
