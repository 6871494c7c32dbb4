import { expect, it } from 'vitest'
import { startApp, until } from '../support/app.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('operators are told once when a sink fails, once when it recovers, and never through the sink itself', async () => {
  const sandbox = await startSandbox()
  const sick = await startWebhookReceiver({ answer: { status: 503 } })
  const desk = await startWebhookReceiver()
  await startApp(configText(sandbox.url, { sick: sick.url, desk: desk.url }))
  sandbox.fireMany(12)
  const [down] = await desk.received(1, 15_000)
  expect(noticeOf(down)).toMatchObject({
    kind: 'bridge.sink_down',
    headline: expect.stringContaining('sick'),
  })
  sick.answerWith({ status: 204 })
  const [, up] = await desk.received(2, 15_000)
  expect(noticeOf(up)).toMatchObject({ kind: 'bridge.sink_up' })
  await until(
    'all alerts arrive',
    () => idsOf(sick.requests).filter((id) => id.startsWith('main.')).length === 12,
    15_000,
  )
  expect(desk.requests).toHaveLength(2)
  expect(idsOf(sick.requests).filter((id) => id.startsWith('alert-bridge.'))).toEqual([])
}, 60_000)

it('operators get one notice of many dead letters, and one of a source that a person must mend', async () => {
  const sandbox = await startSandbox()
  const gone = await startWebhookReceiver({ answer: { status: 410 } })
  const desk = await startWebhookReceiver()
  sandbox.fireMany(7)
  await startApp(configText(sandbox.url, { sick: gone.url, desk: desk.url }))
  await gone.received(7)
  await desk.received(1, 30_000)
  expect(noticeOf(desk.requests[0])).toMatchObject({
    kind: 'bridge.dead_letters',
    headline: expect.stringContaining('7 alerts'),
  })
  sandbox.setTokenState('revoked')
  await desk.received(2, 30_000)
  expect(noticeOf(desk.requests[1])).toMatchObject({ kind: 'bridge.source_stopped' })
  expect(desk.requests).toHaveLength(2)
}, 80_000)

function configText(feed: string, urls: { sick: string; desk: string }): string {
  return `
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${feed}", token: sandbox-token, startFrom: beginning, budget: { unitsPerDay: 80000 }, poll: { every: 2s } } }
    sinks:
      sick: { type: webhook, url: "${urls.sick}", allowPrivateNetworks: true, retry: { initialDelay: 500ms } }
      desk: { type: webhook, url: "${urls.desk}", allowPrivateNetworks: true }
    routes: [{ sinks: [sick] }]
    operators: [desk, sick]
  `
}

function noticeOf(request: { body: string } | undefined): unknown {
  return (JSON.parse(request?.body ?? '{}') as { data: { delivery: unknown } }).data.delivery
}

function idsOf(requests: readonly { headers: Record<string, unknown> }[]): string[] {
  return [...new Set(requests.map(({ headers }) => String(headers['webhook-id'])))]
}
