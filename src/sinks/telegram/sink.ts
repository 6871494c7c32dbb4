import { under } from '../common-config.ts'
import type { Meaning } from '../outcome.ts'
import { createRequestSink, isSuccess, type ResponseDetails } from '../request-sink.ts'
import type { Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import type { AttemptContext } from '../transport/attempt.ts'
import { SinkError } from '../transport/fault.ts'
import type { HttpResponse } from '../transport/http-client.ts'
import { jsonAnswer, secondsIn } from '../transport/json-answer.ts'
import { type TelegramConfig, telegramConfigSchema, tokenProblem } from './config.ts'
import { telegramText } from './message.ts'

export const telegram = { schema: telegramConfigSchema, create: createTelegramSink } as const

/** Posts alerts through a bot of Telegram. Only an answer that says `"ok": true` is an acknowledgement. */
function createTelegramSink(name: string, config: TelegramConfig, tools: SinkTools): Sink {
  return createRequestSink(name, config, tools, (parcel, context) => ({
    url: under(config.baseUrl, `/bot${botToken(config, context)}/sendMessage`),
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      chat_id: config.chatId,
      text: telegramText(parcel, tools.display),
      parse_mode: 'HTML',
      link_preview_options: { is_disabled: true },
      disable_notification: config.silent,
      ...(config.threadId === undefined ? {} : { message_thread_id: config.threadId }),
    }),
    needsBody: true,
    expectsJson: true,
    readBody: sayMore,
  }))
}

function botToken(config: TelegramConfig, context: AttemptContext): string {
  const token = context.reveal(config.token).trim()
  context.hide(token)
  context.hide(token.split(':')[1] ?? '')
  if (tokenProblem(token) === undefined) return token
  throw new SinkError('credentials', `the text in ${config.token.file ?? 'token'} is no token of a bot`)
}

function sayMore(reply: HttpResponse): ResponseDetails {
  const answer = jsonAnswer(reply.body)
  const description = typeof answer['description'] === 'string' ? answer['description'] : undefined
  const text = description ?? reply.body
  if (isSuccess(reply)) return answer['ok'] === true ? { text: 'ok' } : { text, meaning: 'bad_answer' }
  const parameters = answer['parameters']
  const asked =
    typeof parameters === 'object' && parameters !== null && 'retry_after' in parameters
      ? secondsIn(parameters.retry_after)
      : undefined
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
