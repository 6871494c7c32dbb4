import * as z from 'zod'
import { durationWithin } from '../../lib/fields.ts'
import { commonSinkFields, proxyField, rateLimitField } from '../common-config.ts'
import { secretUrlField } from '../secret-url.ts'

export type SlackConfig = z.output<typeof slackConfigSchema>

export const slackConfigSchema = z.strictObject({
  ...commonSinkFields,
  type: z.literal('slack'),
  /** The address is the credential: whoever has it can post. */
  url: secretUrlField,
  coalesce: z
    .strictObject({
      after: z.int().min(1).max(100).default(5),
      window: durationWithin(1_000, 60_000).prefault('10s'),
    })
    .optional()
    .describe(
      'After so many messages within the window, alerts wait for up to a window and go out as a list, at most 20 alerts a message. Left out: never.',
    ),
  proxy: proxyField.optional(),
  concurrency: z.int().min(1).max(200).default(2),
  // Slack takes one message a second from an incoming webhook.
  rateLimit: rateLimitField().prefault({ max: 1, per: '1s' }),
})
