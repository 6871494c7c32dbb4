import { Worker } from 'bullmq'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { StatusView } from '../../src/admin/status-view.ts'
import { startApp, until } from '../support/app.ts'
import { useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { api, metric, readiness, sceneConfig } from '../support/scene.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** Alerts that wait while nothing holds them back and nobody takes them: the one thing that no error tells of. */

const redis = useRedis()
const senderTuning = { watchEveryMs: 50, stuckMs: 300 }

it('a sink whose worker is dead, and no new one helps, turns /readyz red, which names it, until its alerts go out', async () => {
  const run = vi.spyOn(Worker.prototype, 'run').mockImplementation(async () => {})
  onTestFinished(() => run.mockRestore())
  const { hook, url } = await bridge('all')
  await until('readiness is red', async () => (await readiness(url)).includes('2 alerts'))
  expect(await readiness(url)).toMatch(
    /^not ready: something is broken: Sink hook is stuck: 2 alerts wait and this process takes none, for /,
  )
  const { ready, sinks } = await api<StatusView>(url, '/api/v1/status')
  expect(ready.ok).toBe(false)
  expect(sinks[0]).toMatchObject({
    state: 'stuck',
    reason: expect.stringMatching(/^2 alerts wait and this process takes none/),
  })
  expect(await (await fetch(url)).text()).toContain('Sink hook is stuck')
  expect(await metric(url, 'alert_bridge_sink_stuck{sink="hook"}')).toBe(1)
  run.mockRestore()
  await until('the alerts go out', () => hook.requests.length === 2)
  await until('readiness is green', async () => (await readiness(url)) === 'ok')
  expect(await metric(url, 'alert_bridge_sink_stuck{sink="hook"}')).toBe(0)
})

it('a poller without senders turns red too, and says that no sender takes them', async () => {
  const { url, hook, text } = await bridge('poller')
  await until('readiness is red', async () => (await readiness(url)).includes('2 alerts'))
  expect(await readiness(url)).toMatch(
    /^not ready: something is broken: Sink hook is stuck: 2 alerts wait and no sender takes one, for /,
  )
  await startApp(text, { role: 'sender' })
  await until('the alerts go out', () => hook.requests.length === 2)
  await until('readiness is green', async () => (await readiness(url)) === 'ok')
})

async function bridge(role: 'all' | 'poller') {
  const sandbox = await startSandbox({ history: 0, requestsPerMinute: 1_000_000 })
  const hook = await startWebhookReceiver()
  const text = sceneConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } })
  const { url } = await startApp(text, { role, senderTuning })
  sandbox.fireMany(2)
  return { hook, url, text }
}
