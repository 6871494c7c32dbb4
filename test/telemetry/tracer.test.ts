import { expect, it } from 'vitest'
import { Secret } from '../../src/lib/secret.ts'
import { firstSpanIdOf, traceIdOf, traceparentOf } from '../../src/telemetry/trace-ids.ts'
import { createTracer } from '../../src/telemetry/tracer.ts'
import { captureLog } from '../support/log.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const alert = { source: 'main', id: 4711 }
const attempt = { alert, sink: 'hook', number: 2 }
const firedAtMs = Date.parse('2026-11-21T05:30:00Z')

async function rig() {
  const collector = await startWebhookReceiver({ path: '/v1/traces', answer: { status: 200, body: '{}' } })
  const captured = captureLog()
  const headers = { authorization: new Secret('canaryOfTheCollector') }
  return { collector, tracer: createTracer({ url: collector.url, headers }, captured.log), captured }
}

it('one trace an alert: from firing to found, and each attempt beneath', async () => {
  const { collector, tracer } = await rig()
  tracer.found(alert, { firedAtMs, nowMs: firedAtMs + 4_000 })
  tracer.attempted({
    ...attempt,
    result: 'retry',
    reason: 'timeout',
    status: 503,
    durationMs: 250,
    nowMs: firedAtMs + 5_000,
  })
  await tracer.close()
  const [request] = collector.requests
  expect(request?.headers).toMatchObject({
    authorization: 'canaryOfTheCollector',
    'content-type': 'application/json',
  })
  const body = JSON.parse(request?.body ?? '')
  const [found, sent] = body.resourceSpans[0].scopeSpans[0].spans
  expect(found).toEqual({
    ...{ traceId: traceIdOf(alert), spanId: firstSpanIdOf(alert), name: 'found', kind: 1 },
    ...{ startTimeUnixNano: '1795239000000000000', endTimeUnixNano: '1795239004000000000' },
    attributes: [
      { key: 'alert_bridge.source', value: { stringValue: 'main' } },
      { key: 'alert_bridge.alert', value: { intValue: 4711 } },
    ],
  })
  expect(sent).toMatchObject({
    ...{
      traceId: found.traceId,
      parentSpanId: found.spanId,
      name: 'send hook',
      kind: 3,
      status: { code: 2 },
    },
    ...{ startTimeUnixNano: '1795239004750000000', endTimeUnixNano: '1795239005000000000' },
  })
  expect(sent.attributes).toContainEqual({ key: 'alert_bridge.reason', value: { stringValue: 'timeout' } })
  expect(traceparentOf(attempt)).toBe(`00-${found.traceId}-${sent.spanId}-01`)
  await collector.stop()
})

it('ids are those of W3C, the same for the same attempt, and others for every other', () => {
  expect(traceparentOf(attempt)).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  expect(traceparentOf({ ...attempt })).toBe(traceparentOf(attempt))
  const others = [{ number: 3 }, { sink: 'other' }, { target: 'a' }, { requestedAtMs: 1 }]
  expect(new Set(others.map((other) => traceparentOf({ ...attempt, ...other }))).size).toBe(4)
})

it('a collector that is away costs spans and one line of the log, which does not repeat its address', async () => {
  const { collector, tracer, captured } = await rig()
  await collector.stop()
  for (let number = 0; number < 5_000; number++)
    tracer.attempted({ ...attempt, number, result: 'delivered', durationMs: 1, nowMs: firedAtMs })
  await tracer.close()
  expect(captured.lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
  expect(captured.text()).not.toContain(String(collector.port))
})

it('a collector that hangs keeps no process from stopping', async () => {
  const { collector, tracer } = await rig()
  collector.answerWith({ kind: 'hang' })
  tracer.found(alert, { firedAtMs, nowMs: firedAtMs })
  const beganMs = performance.now()
  await tracer.close()
  expect(performance.now() - beganMs).toBeLessThan(4_000)
  await collector.stop()
})
