import * as z from 'zod'
import { commonSinkFields, proxyField, rateLimitField } from '../common-config.ts'
import { secretUrlField } from '../secret-url.ts'

export type TeamsConfig = z.output<typeof teamsConfigSchema>

export const teamsConfigSchema = z.strictObject({
  ...commonSinkFields,
  type: z.literal('teams'),
  /** The address of a workflow "When a Teams webhook request is received". It is the credential: it contains a signature. */
  url: secretUrlField,
  proxy: proxyField.optional(),
  concurrency: z.int().min(1).max(200).default(2),
  // Teams takes four messages a second.
  rateLimit: rateLimitField().prefault({ max: 4, per: '1s' }),
})
