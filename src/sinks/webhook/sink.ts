import { alertKey } from '../../alert/alert.ts'
import type { Secret } from '../../lib/secret.ts'
import { bodyWriter } from '../body.ts'
import { replayHeaders } from '../replay.ts'
import { createRequestSink } from '../request-sink.ts'
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
  const signers = signersOf(config)
  return createRequestSink(name, config, tools, (parcel, helpers, attempt) => {
    for (const token of writer.tokens) helpers.hide(token)
    const body = Buffer.from(writer.write(parcel))
    const message = { id: alertKey(parcel.alert), atMs: attempt.nowMs, body }
    return {
      url: config.url,
      headers: {
        ...traceHeaders(name, tools, parcel, attempt),
        ...ownHeaders(config, helpers),
        'content-type': writer.contentType,
        ...signedHeaders(message, signers(helpers)),
        ...replayHeaders(parcel),
      },
      body,
    }
  })
}

/** Reads the secrets anew for each attempt: one in a file may be replaced. The signer of the one before is kept for as long. */
function signersOf({ secret }: WebhookConfig): (helpers: AttemptHelpers) => Signer[] {
  const secrets = secret === undefined || Array.isArray(secret) ? (secret ?? []) : [secret]
  const made = new Map<Secret, { readonly text: string; readonly signer: Signer }>()
  return (helpers) =>
    secrets.map((each) => {
      const text = helpers.reveal(each)
      helpers.hide(text.replace(/^whs(ec|k)_/, '').trim())
      const known = made.get(each)
      if (known?.text === text) return known.signer
      made.delete(each)
      const signer = webhookSigner(text)
      made.set(each, { text, signer })
      return signer
    })
}
