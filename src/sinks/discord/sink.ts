import { type Picture, pictureOf } from '../chart/picture.ts'
import type { Meaning } from '../outcome.ts'
import { createRequestSink, isSuccess, type ResponseDetails, type SinkRequest } from '../request-sink.ts'
import { secretUrl } from '../secret-url.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { HttpResponse } from '../transport/exchange.ts'
import { jsonAnswer, secondsIn } from '../transport/json-answer.ts'
import { multipart } from '../transport/multipart.ts'
import { type DiscordConfig, discordConfigSchema } from './config.ts'
import { discordMessage, pictureName } from './message.ts'

export const discord = { schema: discordConfigSchema, create: createDiscordSink } as const

/** Posts alerts to a webhook of Discord and waits until Discord answers that the message is in the channel. */
function createDiscordSink(name: string, config: DiscordConfig, tools: SinkTools): Sink {
  return createRequestSink(name, config, tools, async (parcel, context, { number }): Promise<SinkRequest> => {
    const url = secretUrl(config.url, 'the Discord address', context)
    url.searchParams.set('wait', 'true')
    const drawing = { theme: 'dark', timeoutMs: config.timeout, attempt: number } as const
    const picture = await pictureOf(parcel, tools, drawing)
    const messageWith = (shown?: Picture) =>
      JSON.stringify(discordMessage(parcel, tools.display, config.username, shown))
    const to = { url: url.href, expectsJson: true, readBody: sayMore }
    const plain = {
      ...to,
      headers: { 'content-type': 'application/json' },
      body: messageWith(),
    }
    if (picture === undefined) return plain
    const { contentType, body } = multipart([
      { name: 'payload_json', value: messageWith(picture) },
      { name: 'files[0]', value: { fileName: pictureName, contentType: 'image/png', content: picture.png } },
    ])
    return { ...to, headers: { 'content-type': contentType }, body, plain }
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
