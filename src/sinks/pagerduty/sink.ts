import { under } from '../common-config.ts'
import { createRequestSink, isSuccess, type ResponseDetails } from '../request-sink.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { AttemptHelpers } from '../transport/attempt.ts'
import type { HttpResponse } from '../transport/exchange.ts'
import { SinkError } from '../transport/fault.ts'
import { jsonAnswer } from '../transport/json-answer.ts'
import { type PagerDutyConfig, pagerDutyConfigSchema, routingKeyProblem } from './config.ts'
import { pagerDutyEvent } from './event.ts'

export const pagerduty = { schema: pagerDutyConfigSchema, create: createPagerDutySink } as const

/** Posts alerts to PagerDuty's Events API v2. A 202 is an acknowledgement. */
function createPagerDutySink(name: string, config: PagerDutyConfig, tools: SinkTools): Sink {
  return createRequestSink(name, config, tools, (parcel, helpers) => ({
    url: under(config.baseUrl, '/v2/enqueue'),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(
      pagerDutyEvent(parcel, tools.display, {
        routingKey: routingKey(config, helpers),
        severity: config.severity,
        client: 'alert-bridge',
      }),
    ),
    expectsJson: true,
    readBody: sayMore,
  }))
}

function routingKey(config: PagerDutyConfig, helpers: AttemptHelpers): string {
  const key = helpers.reveal(config.routingKey).trim()
  helpers.hide(key)
  if (routingKeyProblem(key) === undefined) return key
  throw new SinkError(
    'credentials',
    `the text in ${config.routingKey.file ?? 'routingKey'} is no integration key`,
  )
}

/** A 400 is about the event, but for a key that PagerDuty does not know. */
function sayMore(reply: HttpResponse): ResponseDetails {
  const { message, errors } = jsonAnswer(reply.body)
  if (isSuccess(reply) || typeof message !== 'string') return {}
  const listed = Array.isArray(errors) ? errors.filter((each) => typeof each === 'string') : []
  const text = [message, ...listed].join('; ')
  return { text, ...(reply.status === 400 && /routing.?key/i.test(text) ? { meaning: 'credentials' } : {}) }
}
