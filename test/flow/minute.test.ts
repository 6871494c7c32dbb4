import { expect, it } from 'vitest'
import { sourceKeys } from '../../src/store/keys.ts'
import { startApp } from '../support/app.ts'
import { cli } from '../support/cli.ts'
import { writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()
const slowMs = 600

it('the minute of each call begins when it has ended, whoever made it: a slow way to the API lets no more through', async () => {
  const sandbox = await startSandbox({ history: 3 })
  const hook = await startWebhookReceiver()
  const prefix = freshPrefix()
  const config = `
    redis: { url: "${redis.url}", prefix: ${prefix} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, poll: { every: 1s, historyPages: 0 }, budget: { unitsPerDay: 1000000 } } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ match: { rule: { name: none } }, sinks: [hook] }, { sinks: [hook], context: [price] }]
  `
  sandbox.fault({ kind: 'slow', delayMs: slowMs, times: 0 })
  const { app } = await startApp(config)
  await until('the first poll', () => sandbox.requests.length > 0)
  sandbox.fire({ symbol: 'فولاد', slug: 'foolad' })
  await hook.received(1)
  const file = writeConfig(config)
  expect(await cli(['api', 'GET', '/api/v1/macro', '--config', file])).toMatchObject({ code: 0 })
  await app.stop()
  const paths = sandbox.requests.map(({ path }) => path)
  for (const path of ['/api/v1/alerts/deliveries', '/api/v1/alerts', '/api/v1/board', '/api/v1/macro'])
    expect(paths.filter((each) => each === path)).not.toHaveLength(0)
  const { minute } = sourceKeys(prefix, 'main')
  const counted = (await redis.client().zrange(minute, '0', '-1', 'WITHSCORES')).flatMap((text, at) =>
    at % 2 === 1 ? [Number(text)] : [],
  )
  const asked = sandbox.requests.map(({ atMs }) => atMs).toSorted((a, b) => a - b)
  expect(counted).toHaveLength(asked.length)
  for (const [index, atMs] of asked.entries())
    expect((counted[index] ?? 0) - atMs, `call ${index}`).toBeGreaterThan(slowMs - 50)
}, 30_000)
