import * as z from 'zod'
import { secretField } from '../../lib/fields.ts'
import { checkedSecret, commonSinkFields, httpUrlProblem, proxyField, tlsField } from '../common-config.ts'
import { webhookSecretProblem } from './secret.ts'

export type WebhookConfig = z.output<typeof webhookConfigSchema>

const signingSecret = checkedSecret(webhookSecretProblem)

const auth = z
  .strictObject({
    bearer: checkedSecret(headerValueProblem).optional(),
    basic: z.strictObject({ username: z.string().min(1), password: secretField }).optional(),
  })
  .superRefine((given, context) => {
    if ((given.bearer === undefined) === (given.basic === undefined))
      context.addIssue({ code: 'custom', message: 'expected exactly one of bearer and basic' })
    if (given.basic?.username.includes(':'))
      context.addIssue({ code: 'custom', path: ['basic', 'username'], message: 'must not contain a colon' })
  })

export const webhookConfigSchema = z.strictObject({
  ...commonSinkFields,
  type: z.literal('webhook'),
  url: z.string().superRefine((text, context) => {
    const problem = httpUrlProblem(text, { userinfo: false })
    if (problem === undefined) return
    context.addIssue({ code: 'custom', message: `${problem}; credentials go to auth` })
  }),
  /** While a secret is being replaced, a list: the first signs first, all sign. */
  secret: z.union([signingSecret, z.array(signingSecret).min(1).max(5)]).optional(),
  auth: auth.optional(),
  headers: z
    .record(z.string(), checkedSecret(headerValueProblem))
    .superRefine((headers, context) => {
      for (const name of Object.keys(headers)) {
        const message = headerNameProblem(name)
        if (message !== undefined) context.addIssue({ code: 'custom', path: [name], message })
      }
    })
    .default({}),
  tls: tlsField().optional(),
  proxy: proxyField.optional(),
  concurrency: z.int().min(1).max(200).default(20),
})

/** Names that belong to the connection or to the sink itself. */
const reservedHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'content-type',
  'content-encoding',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function headerNameProblem(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return 'is no valid name of a header'
  const lower = name.toLowerCase()
  if (lower.startsWith('webhook-')) return 'webhook-* headers carry the signature and cannot be set'
  if (reservedHeaders.has(lower)) return 'this header belongs to the connection and cannot be set'
  return undefined
}

export function headerValueProblem(value: string): string | undefined {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
    ? undefined
    : 'a header cannot carry line breaks, control characters or letters beyond Latin-1'
}
