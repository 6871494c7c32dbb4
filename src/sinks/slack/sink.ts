import type { IncomingWebhookDefaultArguments } from '@slack/webhook'
import { load } from '../../lib/packages.ts'
import { isSlackMessageFault, type Outcome, type ProtocolResult } from '../outcome.ts'
import { isSuccess } from '../request-sink.ts'
import { revealProxy, secretUrl } from '../secret-url.ts'
import { type BatchAttempt, parcelOf, type Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import { type AttemptHelpers, runAttempt } from '../transport/attempt.ts'
import type { HttpResponse } from '../transport/exchange.ts'
import { SinkError } from '../transport/fault.ts'
import { createHttpClient } from '../transport/http-client.ts'
import {
  listMax,
  plainList,
  plainMessage,
  type SlackMessage,
  slackList,
  slackMessage,
  splitList,
} from './blocks.ts'
import { type SlackConfig, slackConfigSchema } from './config.ts'

type Fetch = NonNullable<IncomingWebhookDefaultArguments['fetch']>

export const slack = { schema: slackConfigSchema, create: createSlackSink } as const

/**
 * Posts alerts to a Slack incoming webhook. Only a 2xx answer that says `ok` is an acknowledgement. A message that Slack
 * cannot take goes out once more as plain text, within the same attempt.
 */
function createSlackSink(name: string, config: SlackConfig, tools: SinkTools): Sink {
  const { IncomingWebhook, SlackWebhookError } = load('@slack/webhook') as typeof import('@slack/webhook')
  const transport = createHttpClient({
    guard: tools.guard(config.allowPrivateNetworks),
    connections: config.concurrency,
    timeoutMs: config.timeout,
  })

  async function post(
    message: SlackMessage,
    attempt: BatchAttempt,
    helpers: AttemptHelpers,
  ): Promise<SlackResult> {
    const proxy = revealProxy(config.proxy, helpers)
    const url = secretUrl(config.url, 'the Slack address', helpers).href
    let reply: HttpResponse | undefined
    // The package drops Retry-After and reads answers of any size: so the request is made by our own client.
    const fetch: Fetch = async (_address, init) => {
      const { signal } = helpers
      const body = typeof init?.body === 'string' ? init.body : ''
      helpers.connecting()
      reply = await transport.post({
        url,
        headers: { ...init?.headers },
        body,
        signal,
        nowMs: attempt.nowMs,
        proxy,
        // The status alone shows a refusal; a 2xx needs its body.
        onSending: () => helpers.sending(),
        onStatus: (early) => isSuccess(early) || helpers.reportEarly(resultOf(early)),
      })
      return asResponse(reply)
    }
    // The time limit is the attempt's; the retries are delivery's.
    const hook = new IncomingWebhook(url, { fetch, timeout: 0, retryConfig: { retries: 0 } })
    try {
      await hook.send(message)
    } catch (error) {
      if (reply === undefined) throw error instanceof SlackWebhookError ? (error.cause ?? error) : error
    }
    if (reply === undefined) throw new SinkError('bad_answer', 'the Slack client returned without an answer')
    return resultOf(reply)
  }

  /** Where Slack refuses the form of a message, it is sent once more as plain text. */
  function send(whole: SlackMessage, plain: SlackMessage, attempt: BatchAttempt): Promise<Outcome> {
    return runAttempt({ signal: attempt.signal, timeoutMs: config.timeout }, async (helpers) => {
      const reply = await post(whole, attempt, helpers)
      return isSlackMessageFault(reply.word) ? post(plain, attempt, helpers) : reply
    })
  }

  const { coalesce } = config
  const { display } = tools
  return {
    name,
    type: config.type,
    targets: [undefined],
    send(alert, attempt) {
      const parcel = parcelOf(alert, attempt)
      return send(slackMessage(parcel, display), plainMessage(parcel, display), attempt)
    },
    ...(coalesce && {
      batch: {
        plan: { kind: 'burst', max: listMax, after: coalesce.after, windowMs: coalesce.window },
        split: (parcels) => splitList(parcels, display),
        send: (parcels, attempt) => send(slackList(parcels, display), plainList(parcels, display), attempt),
      },
    }),
    close: () => transport.close(),
  }
}

type SlackResult = Extract<ProtocolResult, { via: 'slack' }>

function resultOf(reply: HttpResponse): SlackResult {
  return { via: 'slack', status: reply.status, retryAfterMs: reply.retryAfterMs, word: reply.body.trim() }
}

function asResponse(reply: HttpResponse): Awaited<ReturnType<Fetch>> {
  return {
    ok: isSuccess(reply),
    status: reply.status,
    statusText: '',
    url: '',
    headers: { get: () => null, entries: () => [] },
    text: async () => reply.body,
    json: async () => JSON.parse(reply.body) as unknown,
    arrayBuffer: async () => new TextEncoder().encode(reply.body).buffer,
  }
}
