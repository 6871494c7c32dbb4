import * as z from 'zod'
import { commonSinkFields, proxyField, rateLimitField } from '../common-config.ts'
import { secretUrlField } from '../secret-url.ts'

export type SlackConfig = z.output<typeof slackConfigSchema>

export const slackConfigSchema = z.strictObject({
  ...commonSinkFields,
  type: z.literal('slack'),
  /** The address is the credential: whoever has it can post. */
  url: secretUrlField,
  proxy: proxyField.optional(),
  concurrency: z.int().min(1).max(200).default(2),
  // Slack takes one message a second from an incoming webhook.
  rateLimit: rateLimitField().prefault({ max: 1, per: '1s' }),
})
