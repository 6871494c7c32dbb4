import { expect, it } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import type { LoadedConfig } from '../../src/config/load.ts'
import { configOf, startApp } from '../support/app.ts'
import { api } from '../support/bridge.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { pass } from '../support/redis-rig.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()
const lookEveryMs = 200
/** What the verdict finds is looked at with every sixth look. */
const findingsEveryMs = 6 * lookEveryMs

it('a reload that every replica refuses is told once, and its end once, when all have a config again', async () => {
  const { start, told } = await bridges()
  const replicas = [await start(), await start('sender')]
  for (const { app } of replicas) await app.reload()
  await until('the refusal is told', () => told().length > 0, 30_000)
  await until('all know of all', allRefuse(replicas), 15_000)
  for (const [at, { app, accept }] of replicas.entries()) {
    // Twice the time in which each of them has told its own.
    await pass(4 * findingsEveryMs)
    expect(told(), `${at} of them have a config again`).toEqual(['bridge.trouble'])
    accept()
    await app.reload()
  }
  await until('its end is told', () => told().length > 1, 30_000)
  await pass(4 * findingsEveryMs)
  expect(told()).toEqual(['bridge.trouble', 'bridge.trouble_over'])
}, 180_000)

it('a refused reload that a restart ends is told to be over', async () => {
  const { start, told } = await bridges()
  const first = await start()
  await first.app.reload()
  await until('the refusal is told', () => told().length > 0, 30_000)
  await first.app.stop()
  await start()
  await until('its end is told', () => told().length > 1, 30_000)
  expect(told()).toEqual(['bridge.trouble', 'bridge.trouble_over'])
}, 90_000)

function allRefuse(replicas: readonly { readonly url: string }[]) {
  const processesOf = async ({ url }: { url: string }) =>
    (await api<StatusView>(url, '/api/v1/status')).processes
  return async () => {
    const known = await Promise.all(replicas.map(processesOf))
    return known.every(
      (processes) => processes.filter(({ refusedReload }) => refusedReload).length === replicas.length,
    )
  }
}

/** Bridges on one Redis whose reloads are refused until they are to accept. */
async function bridges() {
  const sandbox = await startSandbox()
  const desk = await startWebhookReceiver()
  const text = `
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, budget: { unitsPerDay: 80000 }, poll: { every: 2s } } }
    sinks: { desk: { type: webhook, url: "${desk.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [desk] }]
    operators: [desk]
  `
  const start = async (role: 'all' | 'sender' = 'all') => {
    let loaded: LoadedConfig = { ok: false, mistakes: [{ path: 'sinks.x', message: 'is not known' }] }
    const accept = () => {
      loaded = { ok: true, config: configOf(text), warnings: [] } as never
    }
    const started = await startApp(text, { role, operatorsLookEveryMs: lookEveryMs, load: () => loaded })
    return { ...started, accept }
  }
  const told = () =>
    desk.requests.map(
      ({ body }) => (JSON.parse(body) as { data: { delivery: { kind: string } } }).data.delivery.kind,
    )
  return { start, told }
}
