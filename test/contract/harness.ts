import { Secret } from '../../src/lib/secret.ts'
import { emailConfigSchema } from '../../src/sinks/email/config.ts'
import type { Resolve } from '../../src/sinks/guard.ts'
import type { RetryReason } from '../../src/sinks/outcome.ts'
import { createSink, type SinkConfig, type sinkTypes } from '../../src/sinks/registry.ts'
import type { Attempt, Sink } from '../../src/sinks/sink.ts'
import { slackConfigSchema } from '../../src/sinks/slack/config.ts'
import { webhookConfigSchema } from '../../src/sinks/webhook/config.ts'
import { persianDisplay } from '../sinks/samples.ts'
import { testServer } from '../support/certificates.ts'
import { startSlackReceiver } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

/** What the contract suite must know of a sink to put it through its paces. */
export interface Harness {
  readonly type: (typeof sinkTypes)[number]
  readonly target?: string
  /** SMTP servers greet before they are asked. */
  readonly speaksFirst: boolean
  readonly secrets: readonly string[]
  /** The start of an answer that a byte now and then never completes. */
  readonly slowStart: string
  /** An answer that never ends, and what reading it to the limit leads to. */
  readonly endless: { readonly start: string; readonly more: string; readonly reason: RetryReason }
  address(port: number, host?: string): string
  sink(address: string, over?: Record<string, unknown>, resolve?: Resolve): Sink
  sinkWithMissingSecretFile(address: string): Sink
  receiver(options?: { tls?: boolean }): Promise<TestReceiver>
}

export interface TestReceiver {
  readonly url: string
  arrived(): number
  connections(): number
  /** Refuses what comes next, with this text. */
  refuseWith(text: string): void
  stop(): Promise<void>
}

export function attemptOf(harness: Harness, signal = new AbortController().signal): Attempt {
  const target = harness.target === undefined ? {} : { target: harness.target }
  return { number: 1, signal, nowMs: Date.now(), ...target }
}

const signingKey = Buffer.from('canary key of the webhook sink!!').toString('base64')
const slowHttp = 'HTTP/1.1 200 OK\r\nx-slow: '
const endlessHttp = {
  start: 'HTTP/1.1 500 Oh\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n',
  more: '1\r\n.\r\n',
  reason: 'server_error',
} as const
const missing = Secret.fromFile('/nowhere/secret')

function built(config: SinkConfig, resolve?: Resolve): Sink {
  return createSink('test', config, { display: persianDisplay, ...(resolve ? { resolve } : {}) })
}

const webhook: Harness = {
  type: 'webhook',
  speaksFirst: false,
  secrets: [signingKey, 'canaryBearerToken', 'canaryHeaderValue'],
  slowStart: slowHttp,
  endless: endlessHttp,
  address: (port, host = '127.0.0.1') => `http://${host}:${port}/hook`,
  sink: (url, over = {}, resolve) =>
    built(
      webhookConfigSchema.parse({
        type: 'webhook',
        url,
        secret: `whsec_${signingKey}`,
        auth: { bearer: 'canaryBearerToken' },
        headers: { 'X-Key': 'canaryHeaderValue' },
        allowPrivateNetworks: true,
        ...over,
      }),
      resolve,
    ),
  sinkWithMissingSecretFile: (url) =>
    built(webhookConfigSchema.parse({ type: 'webhook', url, secret: missing, allowPrivateNetworks: true })),
  receiver: async (options) =>
    httpReceiver(await startWebhookReceiver(options?.tls ? { tls: testServer } : {})),
}

const slack: Harness = {
  type: 'slack',
  speaksFirst: false,
  secrets: ['canaryTokenOfSlack', '/services/T00000000/B00000000/canaryTokenOfSlack'],
  slowStart: slowHttp,
  endless: endlessHttp,
  address: (port, host = '127.0.0.1') =>
    `http://${host}:${port}/services/T00000000/B00000000/canaryTokenOfSlack`,
  sink: (url, over = {}, resolve) =>
    built(slackConfigSchema.parse({ type: 'slack', url, allowPrivateNetworks: true, ...over }), resolve),
  sinkWithMissingSecretFile: () =>
    built(slackConfigSchema.parse({ type: 'slack', url: missing, allowPrivateNetworks: true })),
  receiver: async (options) =>
    httpReceiver(await startSlackReceiver(options?.tls ? { tls: testServer } : {})),
}

const login = { user: 'bridge', password: 'canary/Password' }

const email: Harness = {
  type: 'email',
  target: 'desk@example.com',
  speaksFirst: true,
  secrets: [login.password, encodeURIComponent(login.password)],
  slowStart: '220-',
  endless: { start: '220-', more: 'wait\r\n220-', reason: 'bad_answer' },
  address: (port, host = '127.0.0.1') =>
    `smtp://bridge:${encodeURIComponent(login.password)}@${host}:${port}`,
  sink: (smtp, over = {}, resolve) => built(emailConfig(smtp, over), resolve),
  sinkWithMissingSecretFile: () => built(emailConfig(missing)),
  async receiver(options) {
    const receiver = await startSmtpReceiver({ login, tls: options?.tls ? 'implicit' : 'none' })
    return {
      url: receiver.url,
      arrived: () => receiver.mails.length,
      connections: receiver.connections,
      refuseWith: (text) => receiver.script({ rcptTo: () => ({ code: 550, text }) }),
      stop: receiver.stop,
    }
  },
}

export const harnesses: readonly Harness[] = [webhook, slack, email]

function emailConfig(smtp: string | Secret, over: Record<string, unknown> = {}) {
  return emailConfigSchema.parse({
    type: 'email',
    smtp,
    from: 'Alerts <alerts@example.com>',
    to: ['desk@example.com'],
    allowPrivateNetworks: true,
    ...over,
  })
}

function httpReceiver(receiver: WebhookReceiver): TestReceiver {
  return {
    url: receiver.url,
    arrived: () => receiver.requests.length,
    connections: receiver.connections,
    refuseWith: (body) => receiver.answerWith({ status: 400, body }),
    stop: receiver.stop,
  }
}
