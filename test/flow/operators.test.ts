import { expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { buildApp, startApp, until } from '../support/app.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { api, readiness } from '../support/scene.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()
const quick = { operatorsLookEveryMs: 200 }

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

it('a recovery that a restart falls into is told, and so is the next outage', async () => {
  const sandbox = await startSandbox()
  const sick = await startWebhookReceiver({ answer: { status: 503 } })
  const desk = await startWebhookReceiver()
  const text = configText(sandbox.url, { sick: sick.url, desk: desk.url })
  const kinds = () => desk.requests.map((request) => (noticeOf(request) as { kind: string }).kind)
  const first = await startApp(text, quick)
  sandbox.fireMany(8)
  await desk.received(1, 15_000)
  await first.app.stop()
  sick.answerWith({ status: 204 })
  await startApp(text, quick)
  await desk.received(2, 20_000)
  sick.answerWith({ status: 503 })
  sandbox.fireMany(8)
  await desk.received(3, 15_000)
  expect(kinds()).toEqual(['bridge.sink_down', 'bridge.sink_up', 'bridge.sink_down'])
}, 60_000)

it('operators are told once of rows that could not be read, and of a feed that fails for good', async () => {
  const sandbox = await startSandbox()
  const [hook, desk] = [await startWebhookReceiver(), await startWebhookReceiver()]
  let aheadMs = 0
  const clock = { ...systemClock, now: () => Date.now() + aheadMs }
  const { app } = buildApp(configText(sandbox.url, { sick: hook.url, desk: desk.url }), { clock, ...quick })
  sandbox.insert({ id: 'seven' }, 0)
  sandbox.insert({ id: 'eight' }, 0)
  const url = await app.start()
  await desk.received(1, 15_000)
  expect(noticeOf(desk.requests[0])).toMatchObject({
    kind: 'bridge.rows_set_aside',
    headline: expect.stringContaining('2 rows of source main'),
  })
  sandbox.fault({ kind: 'shape', shape: 'noMeta', times: 0 })
  const source = async () =>
    (await api<{ sources: { state: string; reason: string | null }[] }>(url, '/api/v1/status')).sources[0]
  await until('a poll fails', async () => (await source())?.state === 'retrying')
  expect((await source())?.reason).toContain('meta: expected object, found nothing')
  expect(await readiness(url)).toBe('ok')
  aheadMs = 16 * 60_000
  await desk.received(2, 15_000)
  expect(noticeOf(desk.requests[1])).toMatchObject({
    kind: 'bridge.source_failing',
    why: expect.stringMatching(/no poll has gone well for 16m.*meta: expected object, found nothing/),
  })
  expect(await readiness(url)).toContain('no poll has gone well')
  expect(await source()).toMatchObject({ state: 'failing', reason: expect.stringContaining('found nothing') })
  expect(await (await fetch(url)).text()).toContain('Source main fails at every poll')
  sandbox.clearFaults()
  await desk.received(3, 20_000)
  expect(noticeOf(desk.requests[2])).toMatchObject({ kind: 'bridge.source_resumed' })
  expect(await readiness(url)).toBe('ok')
}, 60_000)

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
