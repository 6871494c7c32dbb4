import { afterEach } from 'vitest'
import type { Alert } from '../../src/alert/alert.ts'
import type { AlertContext } from '../../src/alert/context.ts'
import type { Display } from '../../src/alert/text/display.ts'
import { given } from '../../src/lib/given.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { createSink } from '../../src/sinks/registry.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import {
  type ReceivedRequest,
  type ReceiverAnswer,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts'
import { englishDisplay, persian } from './samples.ts'

/** One send of a sink to a receiver that answers so; what came back, and what arrived. */
interface Served {
  readonly outcome: Outcome
  readonly request: ReceivedRequest
  readonly body: Record<string, unknown>
}

interface Serving {
  /** The fields of the config, given the receiver's origin. */
  config(origin: string): Record<string, unknown>
  readonly answer?: ReceiverAnswer
  readonly alert?: Alert
  readonly display?: Display
  readonly context?: AlertContext
}

/** What stands in a service's place may answer: the login of a network, or a web application that knows every address. */
export const page: ReceiverAnswer = {
  status: 200,
  headers: { 'content-type': 'text/html' },
  body: '\n<!DOCTYPE html><html><body>Please log in</body></html>',
}

/** With whatever status: only one that asks for patience is heard. */
export const refusalPages = [400, 403, 404, 413, 429, 503].map(
  (status): [ReceiverAnswer, Record<string, unknown>] => [
    { ...page, status },
    {
      kind: 'retry',
      reason: status === 429 ? 'rate_limited' : status === 503 ? 'server_error' : 'bad_answer',
    },
  ],
)

const receivers: WebhookReceiver[] = []

afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()))
})

export async function serve(serving: Serving): Promise<Served> {
  const { config, answer, alert = persian, display = englishDisplay, context } = serving
  const receiver = await startWebhookReceiver(answer ? { answer } : {})
  receivers.push(receiver)
  const fields = { allowPrivateNetworks: true, ...config(new URL(receiver.url).origin) }
  const sink = createSink('test', sinkConfigSchema.parse(fields), { display })
  try {
    const { signal } = new AbortController()
    const attempt = { number: 1, nowMs: Date.now(), signal, ...given({ context }) }
    const outcome = await sink.send(alert, attempt)
    const [request] = receiver.requests
    if (request === undefined) throw new Error(`nothing arrived: ${JSON.stringify(outcome)}`)
    return { outcome, request, body: jsonOf(request.body) }
  } finally {
    await sink.close()
  }
}

function jsonOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}
