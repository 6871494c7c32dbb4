import { under } from '../common-config.ts'
import { createHttpSink, isSuccess, type Said } from '../http-sink.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { Work } from '../transport/attempt.ts'
import { SinkError } from '../transport/fault.ts'
import type { HttpReply } from '../transport/http.ts'
import { jsonAnswer } from '../transport/json-answer.ts'
import { type PagerDutyConfig, pagerDutyConfigSchema, routingKeyProblem } from './config.ts'
import { pagerDutyEvent } from './event.ts'

export const pagerduty = { schema: pagerDutyConfigSchema, create: createPagerDutySink } as const

/** Hands alerts to PagerDuty's Events API v2. A 202 is an acknowledgement. */
function createPagerDutySink(name: string, config: PagerDutyConfig, tools: SinkTools): Sink {
  return createHttpSink(name, config, tools, (parcel, work) => ({
    url: under(config.baseUrl, '/v2/enqueue'),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(
      pagerDutyEvent(parcel, tools.display, {
        routingKey: routingKey(config, work),
        severity: config.severity,
        client: 'alert-bridge',
      }),
    ),
    speaksJson: true,
    sayMore,
  }))
}

function routingKey(config: PagerDutyConfig, work: Work): string {
  const key = work.reveal(config.routingKey).trim()
  work.hide(key)
  if (routingKeyProblem(key) === undefined) return key
  throw new SinkError(
    'credentials',
    `the text in ${config.routingKey.file ?? 'routingKey'} is no integration key`,
  )
}

/** A 400 is about the event, but for a key that PagerDuty does not know. */
function sayMore(reply: HttpReply): Said {
  const { message, errors } = jsonAnswer(reply.body)
  if (isSuccess(reply)) return {}
  if (typeof message !== 'string') return {}
  const listed = Array.isArray(errors) ? errors.filter((each) => typeof each === 'string') : []
  const text = [message, ...listed].join('; ')
  return { text, ...(reply.status === 400 && /routing.?key/i.test(text) ? { meaning: 'credentials' } : {}) }
}
