import {
  type ReceivedRequest,
  type ReceiverAnswer,
  type ReceiverOptions,
  startWebhookReceiver,
  type WebhookReceiver,
} from './webhook-receiver.ts'

/** A message as Slack would get it. */
interface ReceivedMessage {
  readonly text?: string
  readonly blocks?: readonly Record<string, unknown>[]
  readonly [key: string]: unknown
}

export interface SlackReceiver extends WebhookReceiver {
  messages(): ReceivedMessage[]
}

/** Answers as an incoming webhook of Slack does: `ok` as text, or one word and a status. */
export async function startSlackReceiver(options: ReceiverOptions = {}): Promise<SlackReceiver> {
  const receiver = await startWebhookReceiver({
    path: '/services/T00000000/B00000000/canaryTokenOfSlack',
    ...options,
    answer: options.answer ?? slackOk,
  })
  return Object.assign(receiver, { messages: () => receiver.requests.map(parseMessage) })
}

export const slackOk: ReceiverAnswer = { status: 200, headers: { 'content-type': 'text/html' }, body: 'ok' }

function parseMessage(request: ReceivedRequest): ReceivedMessage {
  return JSON.parse(request.body) as ReceivedMessage
}
