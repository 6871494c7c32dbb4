import * as z from 'zod'
import { bodyFields, checkBody } from '../body-config.ts'
import { checkedSecret, commonSinkFields, httpUrlProblem, proxyField, tlsField } from '../common-config.ts'
import { headersField } from '../headers-config.ts'
import { replayHeader } from '../replay.ts'
import { authField, checkAuth } from '../transport/headers.ts'
import { webhookSecretProblem } from './secret.ts'

export type WebhookConfig = z.output<typeof webhookConfigSchema>

const signingSecret = checkedSecret(webhookSecretProblem)

export const webhookConfigSchema = z
  .strictObject({
    ...commonSinkFields,
    type: z.literal('webhook'),
    url: z.string().superRefine((text, context) => {
      const problem = httpUrlProblem(text, { userinfo: false })
      if (problem === undefined) return
      context.addIssue({ code: 'custom', message: `${problem}; credentials go to auth` })
    }),
    /** While a secret is being replaced, a list: the first signs first, all sign. */
    secret: z.union([signingSecret, z.array(signingSecret).min(1).max(5)]).optional(),
    auth: authField.optional(),
    headers: headersField((name) => {
      if (name.startsWith('webhook-')) return 'webhook-* headers carry the signature and cannot be set'
      return name === replayHeader ? 'this header says that an operator asked for it' : undefined
    }),
    format: z
      .enum(['standard', 'cloudevents'])
      .default('standard')
      .describe('cloudevents: CloudEvents 1.0 in structured mode, signed all the same.'),
    ...bodyFields,
    tls: tlsField().optional(),
    proxy: proxyField.optional(),
    concurrency: z.int().min(1).max(200).default(20),
  })
  .superRefine((config, context) => {
    checkBody(config, context)
    checkAuth(config, context)
    if (config.template !== undefined && config.format === 'cloudevents')
      context.addIssue({
        code: 'custom',
        path: ['format'],
        message: 'cloudevents leaves no room for a template',
      })
  })
