import { IncomingWebhook, type IncomingWebhookDefaultArguments, SlackWebhookError } from '@slack/webhook'
import { type Happened, isSlackMessageFault, type Outcome } from '../outcome.ts'
import { revealProxy, secretUrl } from '../secret-url.ts'
import { type BatchAttempt, parcelOf, type Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import { runAttempt, type Work } from '../transport/attempt.ts'
import { SinkError } from '../transport/fault.ts'
import { createHttpTransport, type HttpReply } from '../transport/http.ts'
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
  const transport = createHttpTransport({
    guard: tools.guard(config.allowPrivateNetworks),
    connections: config.concurrency,
    timeoutMs: config.timeout,
  })

  async function post(message: SlackMessage, attempt: BatchAttempt, work: Work): Promise<Reply> {
    const proxy = revealProxy(config.proxy, work)
    const url = secretUrl(config.url, 'the Slack address', work).href
    let reply: HttpReply | undefined
    // The package forgets Retry-After and reads answers of any size: the exchange itself is ours.
    const fetch: Fetch = async (_address, init) => {
      const { signal } = work
      const body = typeof init?.body === 'string' ? init.body : ''
      reply = await transport.post({
        url,
        headers: { ...init?.headers },
        body,
        signal,
        nowMs: attempt.nowMs,
        proxy,
        // A refusal is one whatever its body says; a 2xx is none yet.
        onStatus: (early) => isOk(early) || work.know(happenedOf(early)),
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
    return happenedOf(reply)
  }

  /** Slack's refusal of a message is the reason to say the same more plainly. */
  function send(whole: SlackMessage, plain: SlackMessage, attempt: BatchAttempt): Promise<Outcome> {
    return runAttempt({ signal: attempt.signal, timeoutMs: config.timeout }, async (work) => {
      const reply = await post(whole, attempt, work)
      return isSlackMessageFault(reply.word) ? post(plain, attempt, work) : reply
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

type Reply = Extract<Happened, { via: 'slack' }>

function happenedOf(reply: HttpReply): Reply {
  return { via: 'slack', status: reply.status, retryAfterMs: reply.retryAfterMs, word: reply.body.trim() }
}

function isOk(reply: HttpReply): boolean {
  return reply.status >= 200 && reply.status <= 299
}

function asResponse(reply: HttpReply): Awaited<ReturnType<Fetch>> {
  return {
    ok: isOk(reply),
    status: reply.status,
    statusText: '',
    url: '',
    headers: { get: () => null, entries: () => [] },
    text: async () => reply.body,
    json: async () => JSON.parse(reply.body) as unknown,
    arrayBuffer: async () => new TextEncoder().encode(reply.body).buffer,
  }
}
