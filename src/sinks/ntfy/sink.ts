import { under } from '../common-config.ts'
import { createHttpSink, isSuccess, type Said } from '../http-sink.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { Work } from '../transport/attempt.ts'
import { SinkError } from '../transport/fault.ts'
import { ownHeaders } from '../transport/headers.ts'
import type { HttpReply } from '../transport/http.ts'
import { jsonAnswer } from '../transport/json-answer.ts'
import { type NtfyConfig, ntfyConfigSchema, topicProblem } from './config.ts'
import { ntfyMessage } from './message.ts'

export const ntfy = { schema: ntfyConfigSchema, create: createNtfySink } as const

/** Publishes alerts to a topic of ntfy. */
function createNtfySink(name: string, config: NtfyConfig, tools: SinkTools): Sink {
  return createHttpSink(name, config, tools, (parcel, work) => ({
    url: under(config.baseUrl, '/'),
    headers: { ...ownHeaders(config, work), 'content-type': 'application/json' },
    body: JSON.stringify(
      ntfyMessage(parcel, tools.display, {
        topic: topicOf(config, work),
        priority: config.priority,
        tags: config.tags,
      }),
    ),
    speaksJson: true,
    sayMore,
  }))
}

function topicOf(config: NtfyConfig, work: Work): string {
  const topic = work.reveal(config.topic).trim()
  work.hide(topic)
  if (topicProblem(topic) === undefined) return topic
  throw new SinkError('credentials', `the text in ${config.topic.file ?? 'topic'} is no name of a topic`)
}

/** An acknowledgement repeats the whole message: that it came is enough. */
function sayMore(reply: HttpReply): Said {
  const { error } = jsonAnswer(reply.body)
  if (isSuccess(reply)) return { text: '' }
  return typeof error === 'string' ? { text: error } : {}
}
