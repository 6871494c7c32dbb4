import * as z from 'zod'
import { checkedSecret, commonSinkFields, proxyField, serviceUrlField } from '../common-config.ts'
import { authField } from '../transport/headers.ts'

export type NtfyConfig = z.output<typeof ntfyConfigSchema>

export const ntfyConfigSchema = z.strictObject({
  ...commonSinkFields,
  type: z.literal('ntfy'),
  /** On a server that is open to all, whoever knows the topic can read it: so it is a secret. */
  topic: checkedSecret(topicProblem),
  auth: authField.optional().describe('bearer: an access token (tk_…); basic: a user of the server.'),
  priority: z.enum(['min', 'low', 'default', 'high', 'max']).default('default'),
  /** A tag that is the name of an emoji is shown as the emoji. */
  tags: z
    .array(z.string().regex(/^[^,\s]{1,40}$/, 'expected one word'))
    .max(10)
    .default([]),
  /** For a server of your own. */
  baseUrl: serviceUrlField('https://ntfy.sh'),
  proxy: proxyField.optional(),
})

/** Why `text` is no name of a topic; never quotes it. */
export function topicProblem(text: string): string | undefined {
  return /^[-_A-Za-z0-9]{1,64}$/.test(text.trim())
    ? undefined
    : 'expected at most 64 of A-Z, a-z, 0-9, - and _'
}
