import type { Display } from '../alert/display.ts'
import { version } from '../telemetry/version.ts'
import type { EmailConfig } from './email/config.ts'
import { createEmailSink } from './email/sink.ts'
import { createGuard, type Resolve } from './guard.ts'
import type { Sink } from './sink.ts'
import type { SlackConfig } from './slack/config.ts'
import { createSlackSink } from './slack/sink.ts'
import type { SinkTools } from './tools.ts'
import type { WebhookConfig } from './webhook/config.ts'
import { createWebhookSink } from './webhook/sink.ts'

/** Every type of sink there is: a new one gets a folder, a line in each list here, and passes the contract tests. */
export type SinkConfig = WebhookConfig | SlackConfig | EmailConfig

export const sinkTypes = ['webhook', 'slack', 'email'] as const satisfies readonly SinkConfig['type'][]

export interface SinkContext {
  readonly display: Display
  /** How names become addresses; the system's way unless a test says otherwise. */
  readonly resolve?: Resolve
}

/** Throws a UserError over a file (CA, certificate, proxy) that cannot be read. */
export function createSink(name: string, config: SinkConfig, context: SinkContext): Sink {
  const tools: SinkTools = {
    display: context.display,
    userAgent: `alert-bridge/${version}`,
    guard: (allowed) => createGuard(allowed, context.resolve),
  }
  switch (config.type) {
    case 'webhook':
      return createWebhookSink(name, config, tools)
    case 'slack':
      return createSlackSink(name, config, tools)
    case 'email':
      return createEmailSink(name, config, tools)
    default:
      return config satisfies never
  }
}
