import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { closeServer, listen, loopback, readBody } from './server/http.ts'

/**
 * The receivers of the demo: a webhook receiver that checks signatures, a Slack-like receiver and an SMTP server, all on
 * loopback. They represent other people's systems, so they share no code with the sinks that send to them.
 */
export interface Receivers {
  readonly webhookUrl: string
  readonly slackUrl: string
  readonly smtpUrl: string
  stop(): Promise<void>
}

export interface Arrival {
  readonly sink: 'webhook' | 'slack' | 'email'
  /** The text by which a person recognises the alert. */
  readonly text: string
  /** `SOURCE.ID` where the message has it. */
  readonly id?: string
  /** Whether it shows the prices of the alert's instrument. */
  readonly hasChart: boolean
  readonly atMs: number
}

export async function startReceivers(
  secret: string,
  onArrival: (arrival: Arrival) => void,
): Promise<Receivers> {
  const webhook = createServer((request, response) => {
    void readBody(request).then((body = '') => {
      const id = String(request.headers['webhook-id'])
      if (!isSigned(secret, id, request, body)) return response.writeHead(401).end('bad signature')
      const { data } = JSON.parse(body) as { data: { delivery: { headline: string }; context?: object } }
      const hasChart = data.context !== undefined && 'chart' in data.context
      onArrival({ sink: 'webhook', text: data.delivery.headline, id, hasChart, atMs: Date.now() })
      return response.writeHead(204).end()
    })
  })
  const slack = createServer((request, response) => {
    void readBody(request).then((body = '') => {
      const { text } = JSON.parse(body) as { text: string }
      onArrival({ sink: 'slack', text, hasChart: /[▁-█]{5}/.test(text), atMs: Date.now() })
      response.writeHead(200, { 'content-type': 'text/html' }).end('ok')
    })
  })
  const smtp = await startSmtp(onArrival)
  const [webhookPort, slackPort] = await Promise.all([webhook, slack].map((server) => listen(server, 0)))
  return {
    webhookUrl: `http://${loopback}:${webhookPort}/alerts`,
    slackUrl: `http://${loopback}:${slackPort}/services/T000/B000/demo`,
    smtpUrl: `smtp://${loopback}:${smtp.port}`,
    async stop() {
      await Promise.all([closeServer(webhook), closeServer(slack), smtp.stop()])
    },
  }
}

/** The check that a receiver does by the Standard Webhooks specification. */
function isSigned(secret: string, id: string, request: IncomingMessage, body: string): boolean {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signed = `${id}.${String(request.headers['webhook-timestamp'])}.${body}`
  const expected = Buffer.from(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  const signatures = String(request.headers['webhook-signature']).split(' ').map(Buffer.from)
  return signatures.some((each) => each.length === expected.length && timingSafeEqual(each, expected))
}

async function startSmtp(onArrival: (arrival: Arrival) => void) {
  const { SMTPServer } = await import('smtp-server')
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    onData(stream, _session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const mail = Buffer.concat(chunks).toString('utf8')
        const id = /^Message-ID: <([^.>]+\.\d+)/im.exec(mail)?.[1]
        onArrival({
          sink: 'email',
          text: subjectOf(mail),
          hasChart: /^Content-Type: image\/png/im.test(mail),
          atMs: Date.now(),
          ...(id === undefined ? {} : { id }),
        })
        done()
      })
    },
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, loopback, resolve)
  })
  return {
    port: (server.server.address() as AddressInfo).port,
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

/** The Subject header, unfolded and its UTF-8 encoded words (RFC 2047) decoded. */
function subjectOf(mail: string): string {
  const header = /^Subject: ((?:.*\r?\n[ \t])*.*)/im.exec(mail)?.[1] ?? ''
  const bytes = (charset: string, text: string) =>
    charset.toUpperCase() === 'B'
      ? Buffer.from(text, 'base64')
      : Buffer.from(
          text
            .replace(/_/g, ' ')
            .replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
          'latin1',
        )
  return header
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([BQ])\?([^?]*)\?=/gi, (_, encoding: string, text: string) =>
      bytes(encoding, text).toString('utf8'),
    )
}
