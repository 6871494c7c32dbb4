import { expect, it } from 'vitest'
import { startApp, until } from '../support/app.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { api, metric } from '../support/scene.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('two sources of one account spend its budget once, and each has its part of it', async () => {
  const sandbox = await startSandbox({ tokens: [{ value: 'one' }, { value: 'two' }] })
  const hook = await startWebhookReceiver()
  const source = (token: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, account: desk, startFrom: beginning, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: 12 } }`
  const { url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: ${source('one')}, spare: ${source('two')} }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  interface Source {
    readonly name: string
    readonly state: string
    readonly budget: { readonly unitsUsed: number; readonly unitsPerDay: number } | null
  }
  const sources = async () => (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources
  await until('the budget is spent', async () =>
    (await sources()).every(({ state }) => state === 'budget_spent'),
  )
  expect(sandbox.requests).toHaveLength(12)
  for (const name of ['main', 'spare'])
    expect(
      await metric(url, `alert_bridge_budget_units_total{source="${name}",purpose="poll"}`),
    ).toBeGreaterThan(2)
  for (const { budget } of await sources()) expect(budget).toMatchObject({ unitsUsed: 12, unitsPerDay: 12 })
}, 30_000)
