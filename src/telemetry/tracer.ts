import { toError } from '../lib/errors.ts'
import { Agent } from '../lib/packages.ts'
import type { Secret } from '../lib/secret.ts'
import type { Logger } from './log.ts'
import { attemptSpanIdOf, firstSpanIdOf, type TracedAttempt, traceIdOf } from './trace-ids.ts'
import { version } from './version.ts'

/**
 * Spans of alerts, sent to a collector by OTLP over HTTP as JSON. The protocol is small; the packages that speak it would
 * make the bridge a third larger. Nothing waits for a collector: spans that it does not take are lost, and counted in the log.
 */
export interface Tracer {
  /** From firing to the poll that found it. */
  found(alert: TracedAttempt['alert'], times: { readonly firedAtMs: number; readonly nowMs: number }): void
  attempted(attempt: FinishedAttempt): void
  /** Sends what is left, within a limit. */
  close(): Promise<void>
}

interface FinishedAttempt extends TracedAttempt {
  readonly result: string
  readonly reason?: string | undefined
  readonly status?: number | undefined
  readonly durationMs: number
  readonly nowMs: number
}

interface TracerOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, Secret>>
}

const spansMax = 2_048
const sendEveryMs = 5_000
const sendTimeoutMs = 5_000
/** The longest that a process that stops waits for the collector. */
const closeTimeoutMs = 1_000

export function createTracer({ url, headers }: TracerOptions, log: Logger): Tracer {
  const { origin, pathname, search } = new URL(url)
  // Set here, so that even with NODE_TLS_REJECT_UNAUTHORIZED=0 no server without a valid certificate gets the headers.
  const agent = new Agent({ pipelining: 0, connect: { rejectUnauthorized: true } })
  let spans: object[] = []
  let lost = 0
  let away = false
  let sending: Promise<void> = Promise.resolve()
  const closing = new AbortController()

  const add = (span: object) => {
    if (spans.length < spansMax) spans.push(span)
    else lost += 1
  }
  async function send(): Promise<void> {
    if (spans.length === 0) return
    const batch = spans
    spans = []
    try {
      const { statusCode, body } = await agent.request({
        origin,
        path: `${pathname}${search}`,
        method: 'POST',
        headers: { 'content-type': 'application/json', ...revealed(headers) },
        body: JSON.stringify(requestOf(batch)),
        signal: AbortSignal.any([AbortSignal.timeout(sendTimeoutMs), closing.signal]),
      })
      body.on('error', () => {}).destroy()
      if (statusCode < 200 || statusCode > 299) throw new Error(`HTTP ${statusCode}`)
      if (lost > 0) log.warn({ lost }, 'traces: the collector accepts spans again; some were lost meanwhile')
      lost = 0
      away = false
    } catch (thrown) {
      // The text of the error may repeat the address: only its kind is logged.
      const { name, message } = toError(thrown)
      const reason = message.startsWith('HTTP ') ? message : name
      if (!away) log.warn({ reason }, 'traces: the collector does not accept spans')
      away = true
      lost += batch.length
    }
  }
  const sendInTurn = () => {
    sending = sending.then(send)
    return sending
  }
  const timer = setInterval(sendInTurn, sendEveryMs).unref()

  return {
    found: (alert, { firedAtMs, nowMs }) =>
      add(
        spanOf('found', {
          traceId: traceIdOf(alert),
          spanId: firstSpanIdOf(alert),
          fromMs: firedAtMs,
          toMs: nowMs,
          attributes: { 'alert_bridge.source': alert.source, 'alert_bridge.alert': alert.id },
        }),
      ),
    attempted: (attempt) => {
      const { alert, sink, target, number, result, reason, status, durationMs, nowMs } = attempt
      const span = spanOf(`send ${sink}`, {
        traceId: traceIdOf(alert),
        spanId: attemptSpanIdOf(attempt),
        fromMs: nowMs - durationMs,
        toMs: nowMs,
        attributes: {
          'alert_bridge.source': alert.source,
          'alert_bridge.alert': alert.id,
          'alert_bridge.sink': sink,
          'alert_bridge.attempt': number,
          'alert_bridge.result': result,
          'alert_bridge.reason': reason,
          ...(target === undefined ? {} : { 'alert_bridge.to_one_of_several': true }),
          'http.response.status_code': status,
        },
      })
      add({ ...span, kind: kinds.client, parentSpanId: firstSpanIdOf(alert), status: statusOf(result) })
    },
    async close() {
      clearInterval(timer)
      const late = setTimeout(() => closing.abort(), closeTimeoutMs)
      await sendInTurn()
      clearTimeout(late)
      await agent.destroy()
    },
  }
}

/** Numbers of the protocol's enumerations. */
const kinds = { internal: 1, client: 3 } as const
const statusOf = (result: string) => ({ code: result === 'delivered' ? 1 : 2 })

interface SpanParts {
  readonly traceId: string
  readonly spanId: string
  readonly fromMs: number
  readonly toMs: number
  readonly attributes: Readonly<Record<string, string | number | boolean | undefined>>
}

function spanOf(name: string, { traceId, spanId, fromMs, toMs, attributes }: SpanParts) {
  return {
    traceId,
    spanId,
    name,
    kind: kinds.internal,
    startTimeUnixNano: nanosOf(fromMs),
    endTimeUnixNano: nanosOf(Math.max(fromMs, toMs)),
    attributes: attributesOf(attributes),
  }
}

function attributesOf(values: SpanParts['attributes']): object[] {
  return Object.entries(values).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [{ key, value: { [valueKeys[typeof value as keyof typeof valueKeys]]: value } }],
  )
}

const valueKeys = { string: 'stringValue', number: 'intValue', boolean: 'boolValue' } as const

/** Beyond what a number can hold exactly, so it is text. */
function nanosOf(ms: number): string {
  return `${BigInt(Math.round(ms)) * 1_000_000n}`
}

function requestOf(spans: readonly object[]): object {
  const resource = {
    attributes: attributesOf({ 'service.name': 'alert-bridge', 'service.version': version }),
  }
  return { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'alert-bridge', version }, spans }] }] }
}

function revealed(headers: TracerOptions['headers']): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()]))
}
