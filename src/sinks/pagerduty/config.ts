import * as z from 'zod'
import { checkedSecret, commonSinkFields, proxyField, serviceUrlField } from '../common-config.ts'

export type PagerDutyConfig = z.output<typeof pagerDutyConfigSchema>

export const pagerDutyConfigSchema = z.strictObject({
  ...commonSinkFields,
  type: z.literal('pagerduty'),
  /** The integration key of a service, for the Events API v2. */
  routingKey: checkedSecret(routingKeyProblem),
  severity: z.enum(['critical', 'error', 'warning', 'info']).default('warning'),
  /** For the European service: https://events.eu.pagerduty.com */
  baseUrl: serviceUrlField('https://events.pagerduty.com'),
  proxy: proxyField.optional(),
})

/** Why `text` is no integration key; never quotes it. */
export function routingKeyProblem(text: string): string | undefined {
  return /^[A-Za-z0-9]{32}$/.test(text.trim())
    ? undefined
    : 'expected the 32 characters of an integration key'
}
