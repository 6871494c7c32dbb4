import { type Alert, alertKey } from '../../alert/alert.ts'
import { Secret } from '../../lib/secret.ts'
import { runAttempt, type Work } from '../attempt.ts'
import { SinkError } from '../fault.ts'
import { createHttpTransport, type HttpReply } from '../http.ts'
import type { Happened } from '../outcome.ts'
import type { Attempt, Sink } from '../sink.ts'
import type { SinkTools } from '../tools.ts'
import { webhookBody } from './body.ts'
import { headerValueProblem, type WebhookConfig } from './config.ts'
import { webhookKey } from './secret.ts'
import { signedHeaders } from './signature.ts'

/** The status line is the answer; a body is only read for people, so it is not waited for long. */
const bodyWaitMs = 2_000

/** Posts alerts as Standard Webhooks. Any 2xx is an acknowledgement, whatever its body says. */
export function createWebhookSink(name: string, config: WebhookConfig, tools: SinkTools): Sink {
  const transport = createHttpTransport({
    guard: tools.guard(config.allowPrivateNetworks),
    connections: config.concurrency,
    timeoutMs: config.timeout,
    tls: config.tls,
    proxy: config.proxy?.reveal(),
  })

  async function post(alert: Alert, attempt: Attempt, work: Work): Promise<Happened> {
    const id = alertKey(alert)
    const body = webhookBody(alert)
    const headers = {
      'user-agent': tools.userAgent,
      ...ownHeaders(config, work),
      'content-type': 'application/json',
      ...signedHeaders({ id, atMs: attempt.nowMs, body }, signingKeys(config, work)),
    }
    const { signal } = work
    const reply = await transport.post({
      url: config.url,
      headers,
      body,
      signal,
      nowMs: attempt.nowMs,
      bodyWaitMs,
      onStatus: (status) => work.know(happenedOf(status)),
    })
    return happenedOf(reply)
  }

  return {
    name,
    type: config.type,
    targets: [undefined],
    send: (alert, attempt) =>
      runAttempt({ signal: attempt.signal, timeoutMs: config.timeout }, (work) => post(alert, attempt, work)),
    close: () => transport.close(),
  }
}

function happenedOf(reply: HttpReply): Happened {
  return { via: 'http', status: reply.status, retryAfterMs: reply.retryAfterMs, text: reply.body }
}

function signingKeys(config: WebhookConfig, work: Work): Buffer[] {
  const { secret } = config
  if (secret === undefined) return []
  const secrets = secret instanceof Secret ? [secret] : secret
  return secrets.map((each) => {
    const text = work.reveal(each)
    work.hide(text.replace(/^whsec_/, '').trim())
    return webhookKey(text)
  })
}

/** What the config adds, lower case so that nothing is sent twice. */
function ownHeaders(config: WebhookConfig, work: Work): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(config.headers))
    headers[name.toLowerCase()] = headerValue(value, work)
  const { bearer, basic } = config.auth ?? {}
  if (bearer !== undefined) headers['authorization'] = `Bearer ${headerValue(bearer, work)}`
  if (basic !== undefined) {
    const encoded = Buffer.from(`${basic.username}:${work.reveal(basic.password)}`, 'utf8').toString('base64')
    work.hide(encoded)
    headers['authorization'] = `Basic ${encoded}`
  }
  return headers
}

/** A file may hold anything by now, so the value is checked again. */
function headerValue(secret: Secret, work: Work): string {
  const text = work.reveal(secret)
  if (headerValueProblem(text) === undefined) return text
  throw new SinkError('credentials', `the text in ${secret.file ?? 'a header'} cannot be sent as a header`)
}
