import { under } from '../common-config.ts'
import { createRequestSink, isSuccess, type ResponseDetails } from '../request-sink.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { AttemptHelpers } from '../transport/attempt.ts'
import type { HttpResponse } from '../transport/exchange.ts'
import { SinkError } from '../transport/fault.ts'
import { ownHeaders } from '../transport/headers.ts'
import { jsonAnswer } from '../transport/json-answer.ts'
import { type NtfyConfig, ntfyConfigSchema, topicProblem } from './config.ts'
import { ntfyMessage } from './message.ts'

export const ntfy = { schema: ntfyConfigSchema, create: createNtfySink } as const

/** Publishes alerts to a topic of ntfy. */
function createNtfySink(name: string, config: NtfyConfig, tools: SinkTools): Sink {
  return createRequestSink(name, config, tools, (parcel, helpers) => ({
    url: under(config.baseUrl, '/'),
    headers: { ...ownHeaders(config, helpers), 'content-type': 'application/json' },
    body: JSON.stringify(
      ntfyMessage(parcel, tools.display, {
        topic: topicOf(config, helpers),
        priority: config.priority,
        tags: config.tags,
      }),
    ),
    expectsJson: true,
    readBody: sayMore,
  }))
}

function topicOf(config: NtfyConfig, helpers: AttemptHelpers): string {
  const topic = helpers.reveal(config.topic).trim()
  helpers.hide(topic)
  if (topicProblem(topic) === undefined) return topic
  throw new SinkError('credentials', `the text in ${config.topic.file ?? 'topic'} is no name of a topic`)
}

/** An acknowledgement repeats the whole message, so its text is left out. */
function sayMore(reply: HttpResponse): ResponseDetails {
  const { error } = jsonAnswer(reply.body)
  if (isSuccess(reply)) return { text: '' }
  return typeof error === 'string' ? { text: error } : {}
}
