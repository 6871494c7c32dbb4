import * as z from 'zod'
import {
  checkedSecret,
  commonSinkFields,
  proxyField,
  rateLimitField,
  serviceUrlField,
} from '../common-config.ts'

export type TelegramConfig = z.output<typeof telegramConfigSchema>

export const telegramConfigSchema = z.strictObject({
  ...commonSinkFields,
  type: z.literal('telegram'),
  /** As BotFather gives it out. */
  token: checkedSecret(botTokenProblem),
  /** A person, group or channel by number, or a public channel by name. The bot must be a member. */
  chatId: z.union([
    z.int(),
    z
      .string()
      .regex(/^(-?\d{1,20}|@[A-Za-z]\w{3,31})$/, 'expected a number such as -1001234567890, or @channel'),
  ]),
  /** A topic of a forum group. */
  threadId: z.int().positive().optional(),
  /** Without sound. */
  silent: z.boolean().default(false),
  /** For a Bot API server of your own. */
  baseUrl: serviceUrlField('https://api.telegram.org'),
  proxy: proxyField.optional(),
  concurrency: z.int().min(1).max(200).default(2),
  // Telegram takes one message a second in one chat, 20 a minute in a group.
  rateLimit: rateLimitField().prefault({ max: 20, per: '1m' }),
})

/** Why `text` is no token of a bot; never quotes it. */
export function botTokenProblem(text: string): string | undefined {
  return /^\d{1,20}:[A-Za-z0-9_-]{20,100}$/.test(text.trim())
    ? undefined
    : 'expected the token of a bot, such as 123456:ABC-DEF…'
}
