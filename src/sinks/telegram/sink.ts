import { property } from '../../alert/json/json.ts'
import { pictureOf } from '../chart/picture.ts'
import { under } from '../common-config.ts'
import type { Meaning } from '../outcome.ts'
import { createRequestSink, isSuccess, type ResponseDetails, type SinkRequest } from '../request-sink.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { AttemptHelpers } from '../transport/attempt.ts'
import type { HttpResponse } from '../transport/exchange.ts'
import { SinkError } from '../transport/fault.ts'
import { jsonAnswer, secondsIn } from '../transport/json-answer.ts'
import { multipart } from '../transport/multipart.ts'
import { botTokenProblem, type TelegramConfig, telegramConfigSchema } from './config.ts'
import { telegramCaption, telegramText } from './message.ts'

export const telegram = { schema: telegramConfigSchema, create: createTelegramSink } as const

/** Posts alerts through a bot of Telegram. Only an answer that says `"ok": true` is an acknowledgement. */
function createTelegramSink(name: string, config: TelegramConfig, tools: SinkTools): Sink {
  return createRequestSink(name, config, tools, async (parcel, helpers, { number }): Promise<SinkRequest> => {
    const bot = under(config.baseUrl, `/bot${botToken(config, helpers)}`)
    const reading = { needsBody: true, expectsJson: true, readBody: sayMore }
    const message = {
      chat_id: config.chatId,
      parse_mode: 'HTML',
      disable_notification: config.silent,
      ...(config.threadId === undefined ? {} : { message_thread_id: config.threadId }),
    }
    const plain = {
      ...reading,
      url: `${bot}/sendMessage`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        ...message,
        text: telegramText(parcel, tools.display),
        link_preview_options: { is_disabled: true },
      }),
    }
    const caption = telegramCaption(parcel, tools.display)
    if (caption === undefined) return plain
    const drawing = { theme: 'light', timeoutMs: config.timeout, attempt: number } as const
    const picture = await pictureOf(parcel, tools, drawing)
    if (picture === undefined) return plain
    const { contentType, body } = multipart([
      ...Object.entries({ ...message, caption, show_caption_above_media: true }).map(([field, value]) => ({
        name: field,
        value: String(value),
      })),
      { name: 'photo', value: { fileName: 'chart.png', contentType: 'image/png', content: picture.png } },
    ])
    // A group may let its bots write and send no pictures.
    return { ...reading, url: `${bot}/sendPhoto`, headers: { 'content-type': contentType }, body, plain }
  })
}

function botToken(config: TelegramConfig, helpers: AttemptHelpers): string {
  const token = helpers.reveal(config.token).trim()
  helpers.hide(token)
  helpers.hide(token.split(':')[1] ?? '')
  if (botTokenProblem(token) === undefined) return token
  throw new SinkError('credentials', `the text in ${config.token.file ?? 'token'} is no token of a bot`)
}

function sayMore(reply: HttpResponse): ResponseDetails {
  const answer = jsonAnswer(reply.body)
  const description = typeof answer['description'] === 'string' ? answer['description'] : undefined
  const text = description ?? reply.body
  if (isSuccess(reply)) return answer['ok'] === true ? { text: 'ok' } : { text, meaning: 'bad_answer' }
  const asked = secondsIn(property(answer['parameters'], 'retry_after'))
  return {
    text,
    meaning: meaningOf(reply.status, text),
    ...(asked === undefined ? {} : { retryAfterMs: asked }),
  }
}

/** Telegram answers 400 both for a message that it refuses and for a chat that does not exist. */
function meaningOf(status: number, text: string): Meaning | undefined {
  if (status === 400 && missingChat.test(text)) return 'gone'
  if (status === 403) return 'gone'
  // The token is part of the address, so a wrong one is an address that does not exist.
  return status === 404 ? 'credentials' : undefined
}

const missingChat =
  /chat not found|upgraded to a supergroup|thread not found|group is deactivated|PEER_ID_INVALID|not enough rights|need administrator rights|have no rights|CHAT_WRITE_FORBIDDEN|TOPIC_(CLOSED|DELETED)/i
