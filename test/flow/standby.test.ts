import { expect, it } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { startApp } from '../support/app.ts'
import { api, bridgeConfig } from '../support/bridge.ts'
import { wallClock } from '../support/clock.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('a replica that waits for its turn says in status, page and log who polls and until when, though its clock is ahead', async () => {
  const sandbox = await startSandbox({ history: 0 })
  const hook = await startWebhookReceiver()
  const text = bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } })
  await startApp(text)
  await until('it polls', () => sandbox.requests.length > 0)
  const clock = wallClock()
  clock.turn(600_000)
  const { url, lines } = await startApp(text, { clock })
  const said = /another replica polls \(.*process \d+, running since .*\); its lease ends at /
  const logged = () => lines.find(({ msg }) => msg === 'poller.standby')
  await until('the other one waits', () => logged() !== undefined)
  expect(logged()).toMatchObject({ source: 'main', reason: expect.stringMatching(said) })
  const { sources } = await api<StatusView>(url, '/api/v1/status')
  expect(sources[0]?.notes.join()).toMatch(said)
  expect(Date.parse(sources[0]?.lastPollAt ?? '')).toBeGreaterThan(clock.now() - 60_000)
  expect(await (await fetch(`${url}/readyz`)).text()).toBe('ready\n')
  const page = await (await fetch(url)).text()
  expect(page).toMatch(said)
  expect(page).not.toContain('should have polled')
})

it('a replica that waited knows what was spent of the day, also when Redis forgets it', {
  timeout: 40_000,
}, async () => {
  const sandbox = await startSandbox({ history: 0 })
  const hook = await startWebhookReceiver()
  const prefix = freshPrefix()
  const text = bridgeConfig({ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url }, every: '500ms' })
  const client = redis.client()
  const dayKeys = async () => (await client.keys(`*${prefix}*:units:*`)).filter((key) => /\d$/.test(key))
  const used = async () =>
    Math.max(0, ...(await Promise.all((await dayKeys()).map((key) => client.hget(key, 'used')))).map(Number))
  const { app } = await startApp(text)
  await until('it has polled', async () => (await used()) >= 3)
  const before = await used()
  const { lines } = await startApp(text)
  await until('the other one waits', () => lines.some(({ msg }) => msg === 'poller.standby'))
  const calls = sandbox.requests.length
  await until('it has looked', () => sandbox.requests.length > calls + 2)
  await app.stop()
  await client.del(await dayKeys())
  await until('it polls on', async () => (await used()) > 0, 20_000)
  expect(await used()).toBeGreaterThan(before)
})
