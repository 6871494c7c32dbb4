import * as z from 'zod'
import { durationWithin } from '../../lib/fields.ts'
import { checkedSecret, commonSinkFields, tlsField } from '../common-config.ts'
import { addressProblem, parseMailbox } from './address.ts'
import { dkimKeyProblem } from './dkim-key.ts'
import { parseSmtpUrl } from './smtp-url.ts'

export type EmailConfig = z.output<typeof emailConfigSchema>

const dayMs = 86_400_000
const recipientsMax = 50
const addressField = z.string().superRefine((text, context) => {
  const message = addressProblem(text)
  if (message !== undefined) context.addIssue({ code: 'custom', message })
})
const mailboxField = z.string().superRefine((text, context) => {
  if (parseMailbox(text) === undefined)
    context.addIssue({ code: 'custom', message: 'expected name@example.com or Name <name@example.com>' })
})
const domainField = z
  .string()
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$/,
    'expected a domain name',
  )

export const emailConfigSchema = z
  .strictObject({
    ...commonSinkFields,
    type: z.literal('email'),
    smtp: checkedSecret((text) => {
      const parsed = parseSmtpUrl(text)
      return parsed.ok ? undefined : parsed.problem
    }),
    from: mailboxField,
    /** Each gets a message and an outcome of its own. */
    to: z.array(addressField).min(1).max(recipientsMax),
    replyTo: mailboxField.optional(),
    /** For smtp://. Without it: required, but for a server on this host, where there is no wire to protect. */
    startTls: z.enum(['required', 'opportunistic', 'off']).optional(),
    tls: tlsField().optional(),
    dkim: z
      .strictObject({
        domain: domainField,
        selector: domainField,
        key: checkedSecret(dkimKeyProblem),
      })
      .optional(),
    digest: durationWithin(60_000, dayMs, (ms) =>
      dayMs % ms === 0 ? undefined : 'expected a part of a day, such as 15m, 1h or 24h',
    )
      .optional()
      .describe(
        'All alerts since the last time together, at full multiples of this since midnight, at most 40 alerts a mail. Left out: a mail an alert.',
      ),
    concurrency: z.int().min(1).max(50).default(2),
  })
  .superRefine((config, context) => {
    const seen = new Set<string>()
    for (const [index, address] of config.to.entries()) {
      if (seen.has(address.toLowerCase()))
        context.addIssue({
          code: 'custom',
          path: ['to', index],
          message: 'this address is in the list twice',
        })
      seen.add(address.toLowerCase())
    }
    if (config.digest !== undefined && (config.expireAfter ?? Infinity) <= config.digest)
      context.addIssue({
        code: 'custom',
        path: ['expireAfter'],
        message: 'alerts would be too old before their digest goes out: expected more than digest',
      })
    if (config.startTls === 'off' && config.allowPrivateNetworks === false)
      context.addIssue({
        code: 'custom',
        path: ['startTls'],
        message: 'off is only for a relay in your own network: name it in allowPrivateNetworks',
      })
  })
