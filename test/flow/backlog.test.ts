import { expect, it } from 'vitest'
import { startApp, until } from '../support/app.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('a backlog that takes more than the minute allows leaves the head of the feed fresh', async () => {
  const sandbox = await startSandbox({ history: 4_000 })
  const hook = await startWebhookReceiver()
  await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, budget: { unitsPerDay: 5000, requestsPerMinute: 20 } } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  await until('the walk has spent what it may of the minute', () => sandbox.requests.length >= 18)
  const startMs = performance.now()
  const { id } = sandbox.fire()
  // Until the walk has room again, most of a minute passes.
  await until(
    'what fires now arrives',
    () => hook.requests.some(({ body }) => body.includes(`"id":${id},`)),
    15_000,
  )
  expect(performance.now() - startMs).toBeLessThan(12_000)
  expect(sandbox.requests.length).toBeLessThanOrEqual(20)
}, 40_000)

it('a backlog that takes more than the budget leaves half of it to what fires', async () => {
  const sandbox = await startSandbox({ history: 9_000 })
  const hook = await startWebhookReceiver()
  await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, poll: { every: 500ms, minInterval: 500ms }, budget: { unitsPerDay: 40 } } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  await until('the walk has spent what it may of the day', () => sandbox.requests.length >= 20)
  const [walked, startMs] = [sandbox.requests.length, performance.now()]
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const { id } = sandbox.fire()
  await until('what fires now arrives', () => hook.requests.some(({ body }) => body.includes(`"id":${id},`)))
  const pages = sandbox.requests.map(({ page }) => page ?? 1)
  expect(pages.filter((page) => page > 1).length).toBeLessThanOrEqual(20)
  // At the pace that was set, however long a busy machine takes to send the backlog before it: the other half is to last.
  const polls = (performance.now() - startMs) / 500
  expect(sandbox.requests.length - walked).toBeLessThanOrEqual(polls + 2)
  expect(sandbox.requests.length).toBeLessThanOrEqual(40)
}, 40_000)
