import { expect, it } from 'vitest'
import { startApp, until } from '../support/app.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'

const redis = useRedis()

it('an API that grants fewer units than the config is believed: told, shown, never asked again before it said', async () => {
  const sandbox = await startSandbox({ unitsPerDay: 5, history: 1 })
  const { url, lines } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, budget: { unitsPerDay: 50 }, poll: { every: 300ms } } }
    sinks: { hook: { type: webhook, url: "http://127.0.0.1:9", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  await until('the lesson', () => lines.some(({ msg }) => String(msg).startsWith('budget.learned')), 15_000)
  const calls = sandbox.requests.length
  const metrics = await (await fetch(`${url}/metrics`)).text()
  expect(metrics).toContain('alert_bridge_budget_units_learned{source="main"} 5')
  expect(metrics).toContain('alert_bridge_upstream_rate_limited_total{source="main",limit="budget"} 1')
  const status = (await (await fetch(`${url}/api/v1/status`)).json()) as {
    sources: { state: string; reason: string }[]
  }
  expect(status.sources[0]?.reason).toMatch(/daily limit/)
  await new Promise((resolve) => setTimeout(resolve, 900))
  expect(sandbox.requests).toHaveLength(calls)
  expect(calls).toBe(6)
}, 30_000)
