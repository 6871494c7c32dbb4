import { expect, it } from 'vitest'
import { startApp } from '../support/app.ts'
import { api, metric } from '../support/bridge.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
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

it('two tokens of one account that share no ledger are told of, with what to set', async () => {
  const sandbox = await startSandbox({ tokens: [{ value: 'one' }, { value: 'two' }], history: 5 })
  const hook = await startWebhookReceiver()
  const source = (token: string) =>
    `{ baseUrl: "${sandbox.url}", token: ${token}, poll: { every: 500ms, historyPages: 0 }, budget: { unitsPerDay: 100000 } }`
  const { url, lines } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: ${source('one')}, spare: ${source('two')} }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  interface Source {
    readonly notes: readonly string[]
  }
  const notes = async () =>
    (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources.flatMap((each) => each.notes)
  await until('both are noted', async () => (await notes()).length === 2)
  expect((await notes())[0]).toMatch(/same alerts as source spare.*same account: NAME/)
  expect(
    lines.filter(({ level, msg }) => level === 'warn' && /same alerts as/.test(String(msg))),
  ).not.toEqual([])
}, 30_000)
