import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { given } from '../../lib/given.ts'
import { load } from '../../lib/packages.ts'
import { onTimeUp } from '../../lib/time-limit.ts'
import { type AddressGuard, isLoopbackName, withoutBrackets } from '../transport/guard.ts'
import type { TlsSettings } from '../transport/tls.ts'
import type { Mailbox } from './address.ts'
import type { MailMessage } from './message.ts'
import type { MailPicture } from './page.ts'
import { limitReplies } from './reply-limit.ts'
import type { SmtpServer } from './smtp-url.ts'

/** A pool of SMTP connections to one server. It never retries a message that may have gone out. */
export interface Mailer {
  /** Resolves to the server's reply; throws what nodemailer throws. */
  send(message: MailMessage, posting: Posting): Promise<string>
  /** Ends idle connections now and busy ones when their message is done, or its time is up. */
  close(): void
}

export interface Posting {
  readonly from: Mailbox
  readonly to: string
  readonly replyTo: Mailbox | undefined
  readonly dkim: { readonly domain: string; readonly selector: string; readonly key: string } | undefined
  readonly atMs: number
  readonly signal: AbortSignal
  /** Called when a connection is there, with its login, and the mail begins to go out. */
  onSending(): void
}

interface MailerOptions {
  readonly connections: number
  readonly timeoutMs: number
  readonly startTls: 'required' | 'opportunistic' | 'off' | undefined
  readonly tls: TlsSettings
  readonly guard: AddressGuard
}

const messagesAConnection = 100
const responseBytesMax = 16_384
const idleConnectionMs = 60_000
const addressAttemptMs = 1_000

export function createMailer(server: SmtpServer, options: MailerOptions): Mailer {
  const { createTransport } = load('nodemailer') as typeof import('nodemailer')
  limitReplies()
  const open = () => {
    const transport = createTransport(poolOptions(server, options))
    // The library asks for the text of a mail when it has a connection for it.
    transport.use('stream', ({ data, message }, done) => {
      message.processFunc((text: Readable) => {
        ;(data as PostedMail).onSending()
        return text
      })
      done(null)
    })
    return transport
  }
  let transport = open()
  /** Whatever was sent over it has ended by then; what is left are servers that do not answer RSET or QUIT, or drip. */
  const endLater = (old: typeof transport) => {
    onTimeUp(options.timeoutMs, () => old.close({ force: true }))
  }
  return {
    async send(message, posting) {
      const used = transport
      try {
        const info = await used.sendMail(mailOf(message, posting))
        return info.response
      } catch (thrown) {
        // It may have waited for a connection that no mail has any more, and that would keep its place for ever.
        if (posting.signal.aborted && used === transport) {
          transport = open()
          endLater(used)
        }
        throw thrown
      }
    },
    close() {
      transport.close()
      endLater(transport)
    },
  }
}

function poolOptions(server: SmtpServer, options: MailerOptions) {
  const host = withoutBrackets(server.host)
  const startTls = options.startTls ?? (isLoopbackName(host) ? 'off' : 'required')
  const { user, password } = server
  return {
    pool: true,
    host,
    port: server.port,
    secure: server.implicitTls,
    requireTLS: !server.implicitTls && startTls === 'required',
    ignoreTLS: !server.implicitTls && startTls === 'off',
    tls: { ...options.tls },
    ...given({ servername: options.tls.servername, name: server.name, authMethod: server.authMethod }),
    ...(user === undefined || password === undefined ? {} : { auth: { user, pass: password } }),
    maxConnections: options.connections,
    maxMessages: messagesAConnection,
    // Once: a pooled connection that the server had dropped before a byte of the message went over it.
    maxRequeues: 1,
    idleTimeout: idleConnectionMs,
    connectionTimeout: options.timeoutMs,
    greetingTimeout: options.timeoutMs,
    // The attempt's own limit ends a send and closes its connection. After the process
    // was frozen, this one would end before the data that has arrived is read.
    socketTimeout: silenceMsMax,
    maxResponseSize: responseBytesMax,
    disableFileAccess: true,
    disableUrlAccess: true,
    getSocket: guardedSocket(host, server.port, options),
  } as const
}

/** Opens the connection itself, to an address that was checked; nodemailer would resolve the name again. */
function guardedSocket(host: string, port: number, options: MailerOptions) {
  type Done = (error: Error | null, socket?: { connection: Socket }) => void
  return (_options: unknown, done: Done) => {
    try {
      options.guard.checkLiteral(host)
    } catch (refused) {
      return done(refused as Error)
    }
    const socket = connect({
      host,
      port,
      lookup: options.guard.lookup,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: addressAttemptMs,
      timeout: options.timeoutMs,
    })
    const fail = (error: Error) => {
      socket.destroy()
      done(error)
    }
    socket.once('error', fail)
    socket.once('timeout', () => fail(timeoutError()))
    socket.once('connect', () => {
      socket.removeListener('error', fail).removeAllListeners('timeout').setTimeout(0)
      try {
        options.guard.checkPeer(socket.remoteAddress)
        done(null, { connection: socket })
      } catch (refused) {
        fail(refused as Error)
      }
    })
  }
}

const silenceMsMax = 600_000

function timeoutError(): Error {
  return Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' })
}

function mailOf(message: MailMessage, posting: Posting) {
  const { from, to, replyTo, dkim } = posting
  return {
    from: { ...from },
    to: { name: '', address: to },
    ...(replyTo === undefined ? {} : { replyTo: { ...replyTo } }),
    envelope: { from: from.address, to: [to] },
    subject: message.subject,
    text: message.text,
    html: message.html,
    date: new Date(posting.atMs),
    messageId: message.messageId,
    inReplyTo: message.firstId ?? message.threadId,
    references: [message.threadId, ...(message.firstId === undefined ? [] : [message.firstId])],
    headers: { ...message.headers },
    ...(message.picture === undefined ? {} : { attachments: [inline(message.picture)] }),
    ...(dkim === undefined
      ? {}
      : { dkim: { domainName: dkim.domain, keySelector: dkim.selector, privateKey: dkim.key } }),
    disableFileAccess: true,
    disableUrlAccess: true,
    signal: posting.signal,
    onSending: posting.onSending,
  }
}

type PostedMail = ReturnType<typeof mailOf>

function inline({ png, contentId: cid }: MailPicture) {
  const content = Buffer.from(png.buffer, png.byteOffset, png.byteLength)
  return {
    filename: 'chart.png',
    content,
    cid,
    contentType: 'image/png',
    contentDisposition: 'inline',
  } as const
}
