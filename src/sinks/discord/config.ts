import * as z from 'zod'
import { commonSinkFields, proxyField, rateLimitField } from '../common-config.ts'
import { secretUrlField } from '../secret-url.ts'

export type DiscordConfig = z.output<typeof discordConfigSchema>

export const discordConfigSchema = z.strictObject({
  ...commonSinkFields,
  type: z.literal('discord'),
  /** The address of the webhook is the credential: whoever has it can post. */
  url: secretUrlField,
  /** The sender's name of the message, instead of the webhook's own. */
  username: z.string().min(1).max(80).optional(),
  proxy: proxyField.optional(),
  concurrency: z.int().min(1).max(200).default(2),
  // Discord takes five messages in two seconds, and 30 a minute in one channel.
  rateLimit: rateLimitField().prefault({ max: 30, per: '1m' }),
})
