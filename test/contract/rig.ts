import { Secret } from '../../src/lib/secret.ts'
import type { RetryReason } from '../../src/sinks/outcome.ts'
import { createSink, type SinkType } from '../../src/sinks/registry.ts'
import type { Attempt, Sink } from '../../src/sinks/sink.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import type { Resolve } from '../../src/sinks/transport/lookup.ts'
import { persianDisplay } from '../sinks/samples.ts'
import { testServer } from '../support/certificates.ts'
import { slackOk } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import {
  type ReceiverAnswer,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts'

/** What the contract suite must know of a sink to put it through its paces. */
export interface Rig {
  readonly type: SinkType
  readonly target?: string
  /** SMTP servers greet before they are asked. */
  readonly speaksFirst: boolean
  readonly secrets: readonly string[]
  /** The start of an answer that a byte now and then never completes. */
  readonly slowStart: string
  /** An answer that never ends, and what reading it to the limit leads to. */
  readonly endless: { readonly start: string; readonly more: string; readonly reason: RetryReason }
  /** What in the config makes it take several alerts as one message, where it can. */
  readonly batching?: Readonly<Record<string, unknown>>
  address(port: number, host?: string): string
  sink(address: string, over?: Record<string, unknown>, resolve?: Resolve): Sink
  sinkWithMissingSecretFile(address: string): Sink
  receiver(options?: { tls?: boolean }): Promise<TestReceiver>
}

interface TestReceiver {
  readonly url: string
  arrived(): number
  connections(): number
  /** Refuses what comes next, with this text. */
  refuseWith(text: string): void
  stop(): Promise<void>
}

export function attemptOf(rig: Rig, signal = new AbortController().signal): Attempt {
  const target = rig.target === undefined ? {} : { target: rig.target }
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

function built(fields: Record<string, unknown>, resolve?: Resolve): Sink {
  const config = sinkConfigSchema.parse({ allowPrivateNetworks: true, ...fields })
  // A picture that is there at once: how one is drawn is tested elsewhere.
  const drawer = { draw: async () => Buffer.from('not looked at') }
  return createSink('test', config, { display: persianDisplay, drawer, ...(resolve ? { resolve } : {}) })
}

/** What sets one sink that speaks HTTP apart from the others. */
interface OverHttp {
  readonly type: SinkType
  readonly path: string
  readonly secrets: readonly string[]
  readonly ok?: ReceiverAnswer
  /** The config for a receiver at this address (with the path where `whole`, its origin otherwise). */
  config(address: string): Record<string, unknown>
  /** The same with one secret in a file that is not there. */
  withMissing(address: string): Record<string, unknown>
  readonly whole: boolean
  readonly batching?: Readonly<Record<string, unknown>>
}

function overHttp(sink: OverHttp): Rig {
  const { type, path, secrets, ok, whole, batching } = sink
  const place = (origin: string) => (whole ? `${origin}${path}` : origin)
  return {
    type,
    speaksFirst: false,
    secrets,
    slowStart: slowHttp,
    endless: endlessHttp,
    ...(batching ? { batching } : {}),
    address: (port, host = '127.0.0.1') => place(`http://${host}:${port}`),
    sink: (address, over = {}, resolve) => built({ type, ...sink.config(address), ...over }, resolve),
    sinkWithMissingSecretFile: (address) => built({ type, ...sink.withMissing(address) }),
    async receiver(options) {
      const receiver = await startWebhookReceiver({
        path,
        ...(ok ? { answer: ok } : {}),
        ...(options?.tls ? { tls: testServer } : {}),
      })
      return { ...httpReceiver(receiver), url: place(new URL(receiver.url).origin) }
    },
  }
}

const webhook = overHttp({
  type: 'webhook',
  path: '/hook',
  whole: true,
  secrets: [signingKey, 'canaryBearerToken', 'canaryHeaderValue'],
  config: (url) => ({
    url,
    secret: `whsec_${signingKey}`,
    auth: { bearer: 'canaryBearerToken' },
    headers: { 'X-Key': 'canaryHeaderValue' },
  }),
  withMissing: (url) => ({ url, secret: missing }),
})

const slack = overHttp({
  type: 'slack',
  path: '/services/T00000000/B00000000/canaryTokenOfSlack',
  whole: true,
  secrets: ['canaryTokenOfSlack', '/services/T00000000/B00000000/canaryTokenOfSlack'],
  ok: slackOk,
  batching: { coalesce: {} },
  config: (url) => ({ url }),
  withMissing: () => ({ url: missing }),
})

const http = overHttp({
  type: 'http',
  path: '/canaryTokenInThePath/alerts?key=canaryTokenInTheQuery',
  whole: true,
  secrets: ['canaryTokenInThePath', 'canaryTokenInTheQuery', 'canaryBearerToken', 'canaryHeaderValue'],
  config: (url) => ({
    url,
    method: 'PUT',
    auth: { bearer: 'canaryBearerToken' },
    headers: { 'X-Key': 'canaryHeaderValue' },
    template: '{ "text": "{{ headline }}", "why": {{ why | json }} }',
  }),
  withMissing: (url) => ({ url, headers: { 'X-Key': missing } }),
})

const botToken = '1234567890:canaryTokenOfTheTelegramBot_-AAAA'

const telegram = overHttp({
  type: 'telegram',
  path: '',
  whole: false,
  secrets: [botToken, 'canaryTokenOfTheTelegramBot_-AAAA', `/bot${botToken}/sendMessage`],
  ok: { status: 200, body: '{"ok":true,"result":{}}' },
  config: (baseUrl) => ({ baseUrl, token: botToken, chatId: -100 }),
  withMissing: (baseUrl) => ({ baseUrl, token: missing, chatId: -100 }),
})

const discord = overHttp({
  type: 'discord',
  path: '/api/webhooks/1234567890/canaryTokenOfDiscord',
  whole: true,
  secrets: ['canaryTokenOfDiscord', '/api/webhooks/1234567890/canaryTokenOfDiscord'],
  ok: { status: 200, body: '{"id":"1"}' },
  config: (url) => ({ url }),
  withMissing: () => ({ url: missing }),
})

const teams = overHttp({
  type: 'teams',
  path: '/workflows/canaryWorkflowOfTeams/triggers/manual/paths/invoke?sp=run&sig=canarySignatureOfTeams',
  whole: true,
  secrets: ['canaryWorkflowOfTeams', 'canarySignatureOfTeams'],
  ok: { status: 202 },
  config: (url) => ({ url }),
  withMissing: () => ({ url: missing }),
})

const routingKey = 'canaryRoutingKeyOfPagerDuty00000'

const pagerduty = overHttp({
  type: 'pagerduty',
  path: '',
  whole: false,
  secrets: [routingKey],
  ok: { status: 202, body: '{"status":"success"}' },
  config: (baseUrl) => ({ baseUrl, routingKey }),
  withMissing: (baseUrl) => ({ baseUrl, routingKey: missing }),
})

const ntfy = overHttp({
  type: 'ntfy',
  path: '',
  whole: false,
  secrets: ['tk_canaryTokenOfNtfy', 'canaryTopicOfNtfy'],
  ok: { status: 200, body: '{"id":"1"}' },
  config: (baseUrl) => ({ baseUrl, topic: 'canaryTopicOfNtfy', auth: { bearer: 'tk_canaryTokenOfNtfy' } }),
  withMissing: (baseUrl) => ({ baseUrl, topic: missing }),
})

const login = { user: 'bridge', password: 'canary/Password' }

const email: Rig = {
  type: 'email',
  target: 'desk@example.com',
  speaksFirst: true,
  secrets: [login.password, encodeURIComponent(login.password)],
  slowStart: '220-',
  batching: { digest: '15m' },
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

/** One for each type: a sink without a rig does not compile. */
const rigOf: Readonly<Record<SinkType, Rig>> = {
  discord,
  email,
  http,
  ntfy,
  pagerduty,
  slack,
  teams,
  telegram,
  webhook,
}

export const rigs: readonly Rig[] = Object.values(rigOf)

function emailConfig(smtp: string | Secret, over: Record<string, unknown> = {}) {
  return {
    type: 'email',
    smtp,
    from: 'Alerts <alerts@example.com>',
    to: ['desk@example.com'],
    ...over,
  }
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
