import { alertKey } from '../../alert/alert.ts'
import { Secret } from '../../lib/secret.ts'
import { bodyWriter } from '../body.ts'
import { replayHeaders } from '../replay.ts'
import { createRequestSink } from '../request-sink.ts'
import { hideTokens } from '../secret-url.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { AttemptHelpers } from '../transport/attempt.ts'
import { ownHeaders, traceHeaders } from '../transport/headers.ts'
import { type WebhookConfig, webhookConfigSchema } from './config.ts'
import { type Signer, webhookSigner } from './secret.ts'
import { signedHeaders } from './signature.ts'

export const webhook = { schema: webhookConfigSchema, create: createWebhookSink } as const

/** Posts alerts as Standard Webhooks. Any 2xx is an acknowledgement, whatever its body says. */
function createWebhookSink(name: string, config: WebhookConfig, tools: SinkTools): Sink {
  const writer = bodyWriter(config, tools.display)
  return createRequestSink(name, config, tools, (parcel, helpers, attempt) => {
    hideTokens(new URL(config.url), helpers)
    const body = writer.write(parcel)
    const message = { id: alertKey(parcel.alert), atMs: attempt.nowMs, body }
    return {
      url: config.url,
      headers: {
        ...traceHeaders(name, tools, parcel, attempt),
        ...ownHeaders(config, helpers),
        'content-type': writer.contentType,
        ...signedHeaders(message, signersOf(config, helpers)),
        ...replayHeaders(parcel),
      },
      body,
    }
  })
}

function signersOf(config: WebhookConfig, helpers: AttemptHelpers): Signer[] {
  const { secret } = config
  if (secret === undefined) return []
  const secrets = secret instanceof Secret ? [secret] : secret
  return secrets.map((each) => {
    const text = helpers.reveal(each)
    helpers.hide(text.replace(/^whs(ec|k)_/, '').trim())
    return webhookSigner(text)
  })
}
