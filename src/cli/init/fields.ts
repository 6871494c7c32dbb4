import { randomBytes } from 'node:crypto'
import type { SinkType } from '../../sinks/registry.ts'

/** What `init` must know of each type of sink. All else has a default, which config/example.yaml shows. */
export interface Field {
  readonly key: string
  /** The environment variable that is read, and named in the config. Without one the value itself is written. */
  readonly variable?: string
  /** It is never taken from the command line, which other users of the machine can read, nor shown while it is typed. */
  readonly secret?: true
  readonly list?: true
  readonly question: string
  /** What an empty answer stands for. */
  readonly make?: () => string
}

export const tokenQuestion: Field = {
  key: 'token',
  variable: 'MARKET_DATA_TOKEN',
  secret: true,
  question: 'Token with the scope api:alerts',
}

export const baseUrlQuestion: Field = {
  key: 'baseUrl',
  variable: 'MARKET_DATA_URL',
  question: 'Address of the Market Data Read API, without /api/v1',
}

/** `http` is left out: its body and its address are templates, which are written in a file, not typed as answers. */
const offered = {
  webhook: [
    { key: 'url', variable: 'WEBHOOK_URL', question: 'Address that takes the POST' },
    {
      key: 'secret',
      variable: 'WEBHOOK_SECRET',
      secret: true,
      question: 'Secret that signs it (Enter makes one)',
      make: () => `whsec_${randomBytes(32).toString('base64')}`,
    },
  ],
  slack: [
    { key: 'url', variable: 'SLACK_WEBHOOK_URL', secret: true, question: 'Address of the incoming webhook' },
  ],
  email: [
    {
      key: 'smtp',
      variable: 'SMTP_URL',
      secret: true,
      question: 'Mail server, as smtp://user:password@mail.example.com:587',
    },
    { key: 'from', question: 'Sender, as Alerts <alerts@example.com>' },
    { key: 'to', list: true, question: 'Recipients, with commas' },
  ],
  telegram: [
    { key: 'token', variable: 'TELEGRAM_BOT_TOKEN', secret: true, question: 'Token of the bot' },
    { key: 'chatId', question: 'Chat, as -1001234567890 or @channel' },
  ],
  discord: [
    { key: 'url', variable: 'DISCORD_WEBHOOK_URL', secret: true, question: 'Address of the webhook' },
  ],
  teams: [{ key: 'url', variable: 'TEAMS_WEBHOOK_URL', secret: true, question: 'Address of the workflow' }],
  pagerduty: [
    { key: 'routingKey', variable: 'PAGERDUTY_ROUTING_KEY', secret: true, question: 'Integration key' },
  ],
  ntfy: [{ key: 'topic', variable: 'NTFY_TOPIC', secret: true, question: 'Topic' }],
} satisfies Readonly<Partial<Record<SinkType, readonly Field[]>>>

export type OfferedType = keyof typeof offered

export const sinkFields: Readonly<Record<OfferedType, readonly Field[]>> = offered

export const offeredTypes = Object.keys(sinkFields) as readonly OfferedType[]

export function isOffered(type: string): type is OfferedType {
  return Object.hasOwn(sinkFields, type)
}
