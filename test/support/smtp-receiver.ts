import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { type Arrivals, createArrivals } from './arrivals.ts'
import { testServer } from './certificates.ts'

/** A mail as it came over the wire. */
interface ReceivedMail {
  readonly envelope: { readonly from: string; readonly to: readonly string[] }
  /** The raw message as UTF-8. */
  readonly raw: string
  /** Whether it came over TLS. */
  readonly secure: boolean
  /** Who logged in, if somebody did. */
  readonly user: string | undefined
  readonly atMs: number
}

/** A scripted reply: a code and its text; `hang` never replies; `drop` ends every connection; undefined lets the command pass. */
export type SmtpReply = { readonly code: number; readonly text: string } | 'hang' | 'drop' | undefined

export interface SmtpScript {
  readonly connect?: () => SmtpReply
  readonly mailFrom?: (address: string) => SmtpReply
  readonly rcptTo?: (address: string) => SmtpReply
  /** With the raw message. */
  readonly data?: (raw: string) => SmtpReply
}

export interface SmtpReceiver {
  readonly url: string
  readonly port: number
  readonly mails: readonly ReceivedMail[]
  /** From the next command on. */
  script(script: SmtpScript): void
  readonly received: Arrivals<ReceivedMail>['received']
  connections(): number
  stop(): Promise<void>
}

export interface SmtpReceiverOptions {
  /** `none` offers no TLS, `starttls` (by the test certificate) the upgrade, `implicit` speaks it from the start. */
  readonly tls?: 'none' | 'starttls' | 'implicit'
  /** The only login that is taken; without it, none is asked for. */
  readonly login?: { readonly user: string; readonly password: string }
}

export async function startSmtpReceiver(options: SmtpReceiverOptions = {}): Promise<SmtpReceiver> {
  const { tls = 'none', login } = options
  const mails = createArrivals<ReceivedMail>('mails')
  let script: SmtpScript = {}
  let connections = 0

  const server = new SMTPServer({
    secure: tls === 'implicit',
    ...(tls === 'none' ? {} : testServer),
    disabledCommands: [...(tls === 'none' ? ['STARTTLS'] : []), ...(login ? [] : ['AUTH'])],
    authOptional: login === undefined,
    allowInsecureAuth: true,
    disableReverseLookup: true,
    closeTimeout: 200,
    logger: false,
    onConnect(_session, done) {
      connections += 1
      reply(script.connect?.(), done)
    },
    onAuth(auth, _session, done) {
      if (auth.username === login?.user && auth.password === login?.password)
        done(null, { user: auth.username })
      else done(Object.assign(new Error('authentication failed'), { responseCode: 535 }))
    },
    onMailFrom(address, _session, done) {
      reply(script.mailFrom?.(address.address), done)
    },
    onRcptTo(address, _session, done) {
      reply(script.rcptTo?.(address.address), done)
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const raw = Buffer.concat(chunks).toString('utf8')
        const scripted = script.data?.(raw)
        if (scripted === 'drop') return dropAll(server)
        if (scripted !== undefined) return reply(scripted, done)
        const { mailFrom, rcptTo } = session.envelope
        mails.add({
          envelope: {
            from: mailFrom === false ? '' : mailFrom.address,
            to: rcptTo.map((recipient) => recipient.address),
          },
          raw,
          secure: session.secure === true,
          user: typeof session.user === 'string' ? session.user : undefined,
          atMs: Date.now(),
        })
        done(null, `queued as ${mails.all.length}`)
      })
    },
  })
  // A client that breaks off is what some tests are about.
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo
  const credentials = login ? `${encodeURIComponent(login.user)}:${encodeURIComponent(login.password)}@` : ''

  return {
    url: `${tls === 'implicit' ? 'smtps' : 'smtp'}://${credentials}127.0.0.1:${port}`,
    port,
    mails: mails.all,
    script(next) {
      script = next
    },
    received: mails.received,
    connections: () => connections,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** As a server that dies: no goodbye. Its connections are no part of what the library's types tell. */
function dropAll(server: SMTPServer): void {
  const { connections } = server as unknown as { connections: Set<{ _socket: Socket }> }
  for (const connection of connections) connection._socket.destroy()
}

function reply(scripted: SmtpReply, done: (error?: Error | null) => void): void {
  if (scripted === 'hang' || scripted === 'drop') return
  if (scripted === undefined) done()
  else done(Object.assign(new Error(scripted.text), { responseCode: scripted.code }))
}
