import * as z from 'zod'

/** What a receiver of a `webhook` sink gets, unless the sink has a template of its own. */
const data = z.object({
  source: z.string(),
  heldBack: z.int().min(1).optional().describe('How many alerts like it a throttle held back before it.'),
  delivery: z.looseObject({ id: z.int() }).describe('The row of the market API, every field as it came.'),
  context: z
    .looseObject({ skipped: z.array(z.object({ what: z.string(), why: z.string() })) })
    .optional()
    .describe('What was bought for it, by its name, and what was not.'),
})

export const alertFired = z.object({
  type: z.literal('alert.fired'),
  timestamp: z.string().describe('When it fired.'),
  data,
})

export const alertFiredCloudEvent = z.object({
  specversion: z.literal('1.0'),
  id: z.string(),
  source: z.string(),
  type: z.literal('alert.fired'),
  time: z.iso.datetime({ offset: true }).optional(),
  subject: z.string().optional(),
  datacontenttype: z.literal('application/json'),
  data,
})

/** The headers of each attempt, and what each means. */
export const webhookHeaders: Readonly<Record<string, string>> = {
  'webhook-id': 'SOURCE.ID of the alert, the same for every attempt',
  'webhook-timestamp': 'when this attempt was made, in seconds since 1970',
  'webhook-signature': 'by the Standard Webhooks specification, one for each secret; absent without a secret',
  'alert-bridge-replay': 'when an operator asked for it to be sent again; absent where nobody did',
}
