import { expect, it } from 'vitest'
import type { AuditRow } from '../../src/admin/views/audit-view.ts'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig } from '../support/bridge.ts'
import { useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('more polls of a source with a fixed pace are refused, since they would not come', async () => {
  const [sandbox, hook] = [await startSandbox(), await startWebhookReceiver()]
  const text = bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url }, every: '1h' })
  const { url } = await startApp(text)
  const response = await fetch(`${url}/api/v1/sources/main/hot`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: '{"for":"5m"}',
  })
  expect(response.status).toBe(409)
  expect(await response.json()).toMatchObject({
    detail: 'Source main polls at a fixed pace (poll.every 1h), which nothing makes faster.',
  })
})

it('more polls are ended at any replica, but not those that another operator has asked for since', async () => {
  const [sandbox, hook] = [await startSandbox(), await startWebhookReceiver()]
  const text = bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } }).replace(
    'every: 250ms',
    'maxInterval: 1s',
  )
  const [{ url: one }, { url: other }] = [await startApp(text), await startApp(text)]
  const order = async (url: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const response = await fetch(`${url}/api/v1/sources/main/${path}`, {
      ...{ method: 'POST', headers, body: JSON.stringify(body) },
    })
    return { status: response.status, ...((await response.json()) as { until?: string }) }
  }
  const end = (url: string, until?: string) => order(url, 'hot/end', { until })
  const shows = (hotUntil: string | null) =>
    until(`both show ${hotUntil}`, async () => {
      const seen = await Promise.all([one, other].map((url) => api<StatusView>(url, '/api/v1/status')))
      return seen.every(({ sources }) => sources[0]?.plan?.hotUntil === hotUntil)
    })
  const first = await order(one, 'hot', { for: '30m' })
  const second = await order(other, 'hot', { for: '1h' })
  expect(await end(one, first.until)).toMatchObject({
    status: 409,
    detail: 'Source main is not polled more often until that time.',
  })
  await shows(second.until ?? '')
  const ends = await Promise.all([one, other, one].map((url) => end(url, second.until)))
  expect(ends.map(({ status }) => status).toSorted()).toEqual([200, 409, 409])
  await shows(null)
  expect(await end(other, second.until)).toMatchObject({ status: 409 })
  expect(await end(other)).toMatchObject({ status: 200, source: 'main', state: 'planned' })
  // What was refused changed nothing, and is not told as done.
  const { data } = await api<{ data: AuditRow[] }>(one, '/api/v1/audit')
  const [more, planned] = ['poll more often', 'poll as planned']
  expect(data.map(({ action }) => action)).toEqual([planned, planned, more, more])
})
