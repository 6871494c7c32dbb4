import type { Meaning } from '../outcome.ts'
import { createRequestSink, isSuccess, type ResponseDetails } from '../request-sink.ts'
import { secretUrl } from '../secret-url.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { HttpResponse } from '../transport/http-client.ts'
import { jsonAnswer, secondsIn } from '../transport/json-answer.ts'
import { type DiscordConfig, discordConfigSchema } from './config.ts'
import { discordMessage } from './message.ts'

export const discord = { schema: discordConfigSchema, create: createDiscordSink } as const

/** Posts alerts to a webhook of Discord and waits until Discord answers that the message is in the channel. */
function createDiscordSink(name: string, config: DiscordConfig, tools: SinkTools): Sink {
  return createRequestSink(name, config, tools, (parcel, context) => {
    const url = secretUrl(config.url, 'the Discord address', context)
    url.searchParams.set('wait', 'true')
    return {
      url: url.href,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(discordMessage(parcel, tools.display, config.username)),
      expectsJson: true,
      readBody: sayMore,
    }
  })
}

function sayMore(reply: HttpResponse): ResponseDetails {
  const { code, message, retry_after: seconds } = jsonAnswer(reply.body)
  if (isSuccess(reply)) return { text: '' }
  // Discord's own pause is exact to the millisecond; its header is rounded.
  const asked = secondsIn(seconds)
  return {
    meaning: meaningOf(code, reply.status),
    ...(typeof message === 'string' ? { text: message } : {}),
    ...(asked === undefined ? {} : { retryAfterMs: asked }),
  }
}

/** 10015: the webhook was deleted; 10003: its channel; 50027: its token is wrong. */
function meaningOf(code: unknown, status: number): Meaning | undefined {
  if (code === 10_015 || code === 10_003) return 'gone'
  if (code === 50_027) return 'credentials'
  return status === 404 ? 'gone' : undefined
}
