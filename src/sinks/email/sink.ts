import { pictureOf } from '../chart/picture.ts'
import { type Outcome, outcomeOf, type ProtocolResult } from '../outcome.ts'
import { PlainPeriod } from '../plain-period.ts'
import { type BatchAttempt, parcelOf, type Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import { type AttemptHelpers, runAttempt } from '../transport/attempt.ts'
import { SinkError } from '../transport/fault.ts'
import { tlsOptions } from '../transport/tls.ts'
import { parseMailbox } from './address.ts'
import { type EmailConfig, emailConfigSchema } from './config.ts'
import { dkimKey } from './dkim-key.ts'
import { createMailer, type Mailer, type Posting } from './mailer.ts'
import { digestMax, digestMessage, type MailMessage, mailMessage, splitDigest } from './message.ts'
import { smtpErrorReply, smtpReply } from './reply.ts'
import { parseSmtpUrl } from './smtp-url.ts'

export const email = { schema: emailConfigSchema, create: createEmailSink } as const

/**
 * Mails alerts, one message a recipient, so that each has an outcome of its own. The envelope comes from the config
 * alone; an alert cannot add a recipient or a header.
 */
function createEmailSink(name: string, config: EmailConfig, tools: SinkTools): Sink {
  const from = mailbox(config.from)
  const replyTo = config.replyTo === undefined ? undefined : mailbox(config.replyTo)
  const tls = tlsOptions(config.tls)
  const guard = tools.guard(config.allowPrivateNetworks)
  const plainPeriod = new PlainPeriod()
  // The address may be in a file that changes: a new text makes a new pool.
  let current: { readonly smtp: string; readonly mailer: Mailer } | undefined

  function mailerFor(smtp: string, helpers: AttemptHelpers): Mailer {
    const parsed = parseSmtpUrl(smtp)
    if (!parsed.ok) throw new SinkError('credentials', `the SMTP address cannot be used: ${parsed.problem}`)
    const { password, user } = parsed.server
    if (password !== undefined) helpers.hideWord(password)
    if (user !== undefined && password !== undefined) {
      helpers.hide(Buffer.from(`\0${user}\0${password}`).toString('base64'))
      helpers.hide(Buffer.from(password).toString('base64'))
    }
    if (current?.smtp === smtp) return current.mailer
    current?.mailer.close()
    const mailer = createMailer(parsed.server, {
      connections: config.concurrency,
      timeoutMs: config.timeout,
      startTls: config.startTls,
      tls,
      guard,
    })
    current = { smtp, mailer }
    return mailer
  }

  async function send(
    [message, ...plainer]: Forms,
    to: string,
    attempt: BatchAttempt,
    helpers: AttemptHelpers,
  ): Promise<ProtocolResult> {
    const dkim = config.dkim && { ...config.dkim, key: dkimKey(helpers.reveal(config.dkim.key)) }
    const mailer = mailerFor(helpers.reveal(config.smtp), helpers)
    const { signal, connecting, sending: onSending } = helpers
    const posting = { from, to, replyTo, dkim, atMs: attempt.nowMs, signal, onSending }
    connecting()
    let result = await post(mailer, message, posting)
    for (const form of plainer) if (isFormRefusal(result)) result = await post(mailer, form, posting)
    return result
  }

  async function attempted(attempt: BatchAttempt, formsTo: FormsTo): Promise<Outcome> {
    const limits = { signal: attempt.signal, timeoutMs: config.timeout }
    const to = attempt.target ?? ''
    let mayBeItsForm = false
    const outcome = await runAttempt(limits, async (helpers) => {
      if (!config.to.includes(to))
        throw new SinkError('unrenderable', 'the recipient is not in the config any more')
      const forms = await formsTo(to)
      if (forms.length === 1) return send(forms, to, attempt, helpers)
      if (plainPeriod.isOn()) return send([forms.at(-1) ?? forms[0]], to, attempt, helpers)
      mayBeItsForm = true
      const result = await send(forms, to, attempt, helpers)
      // What a server says before the message is not about its form: it may ask everybody to come again, once.
      mayBeItsForm = result.via !== 'smtp' || result.stage === 'message'
      return result
    })
    if (mayBeItsForm) plainPeriod.note(outcome)
    return outcome
  }

  const { display } = tools
  const { digest } = config
  return {
    name,
    type: config.type,
    targets: config.to,
    send(alert, attempt) {
      const parcel = parcelOf(alert, attempt)
      return attempted(attempt, async (to) => {
        const { number } = attempt
        const drawing = { theme: 'both', timeoutMs: config.timeout, attempt: number } as const
        const picture = await pictureOf(parcel, tools, drawing)
        const plain = mailMessage(parcel, { from, to }, display)
        return picture === undefined ? [plain] : [mailMessage(parcel, { from, to }, display, picture), plain]
      })
    },
    ...(digest === undefined
      ? {}
      : {
          batch: {
            plan: { kind: 'digest', max: digestMax, everyMs: digest, timeZone: display.timeZone },
            split: (parcels) => splitDigest(parcels, display),
            send: (parcels, attempt) =>
              attempted(attempt, (to) => [digestMessage(parcels, { from, to }, display)]),
          },
        }),
    async close() {
      current?.mailer.close()
    },
  }
}

/** The same message in several forms: the next goes out where a server refuses the content of the one before. */
type Forms = readonly [MailMessage, ...MailMessage[]]
type FormsTo = (to: string) => Forms | Promise<Forms>

async function post(mailer: Mailer, message: MailMessage, posting: Posting): Promise<ProtocolResult> {
  try {
    return smtpReply(await mailer.send(message, posting))
  } catch (error) {
    const result = smtpErrorReply(error)
    if (result === undefined) throw error
    return result
  }
}

/** Whether the server refused this form of the mail for good, as a server that allows no pictures does. */
function isFormRefusal(result: ProtocolResult): boolean {
  return result.via === 'smtp' && result.stage === 'message' && outcomeOf(result).kind === 'dead'
}

function mailbox(text: string) {
  const parsed = parseMailbox(text)
  if (parsed === undefined) throw new TypeError('a mailbox of a parsed config is no mailbox')
  return parsed
}
