import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import type { AuditRow } from '../../src/admin/views/audit-view.ts'
import type { AlertStory } from '../../src/admin/views/delivery-view.ts'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { describeAlert } from '../../src/cli/deliveries.ts'
import { parseConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { queuePrefix, sourceKeys } from '../../src/store/keys.ts'
import { idempotencyKey } from '../../src/store/operator-keys.ts'
import { startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig } from '../support/bridge.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('what operators do with dead letters and silences is previewed, carried out, and found again', async () => {
  const sandbox = await startSandbox({ history: 3 })
  const hook = await startWebhookReceiver({ answer: { status: 400, body: 'no such channel' } })
  const prefix = freshPrefix()
  const { url } = await startApp(
    bridgeConfig({ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url } }),
  )
  const send = (path: string, body: object, key?: string) => {
    const named = key === undefined ? {} : { 'idempotency-key': key }
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json', ...named }
    return fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  }
  const post = async (path: string, body: object) =>
    (await (await send(path, body)).json()) as { cursor: string | null }
  const dead = async () =>
    (await api<{ data: { source: string; id: number; kind: string }[] }>(url, '/api/v1/dead-letters')).data
  await until('all are dead', async () => (await dead()).length === 3)
  const [letter] = await dead()
  expect(await post('/api/v1/silences/preview', { match: { kind: letter?.kind } })).toMatchObject({
    looked: 3,
    matching: (await dead()).filter(({ kind }) => kind === letter?.kind).length,
  })
  expect(await post('/api/v1/silences/preview', { match: { symbol: 'none like it' } })).toEqual({
    ...{ looked: 3, matching: 0, sample: [] },
  })
  hook.answerWith({ status: 204 })
  // In portions, as commands do it: counted first, then one after the other.
  const first = await post('/api/v1/dead-letters/retry', { sink: 'hook', limit: 0 })
  let { cursor } = first
  while (cursor !== null)
    cursor = (await post('/api/v1/dead-letters/retry', { sink: 'hook', cursor, limit: 1 })).cursor
  await until('all are delivered', async () => (await dead()).length === 0)
  const { data } = await api<{ data: AuditRow[] }>(url, '/api/v1/audit')
  expect(data).toMatchObject([
    { action: 'retry dead letters', subject: 'hook', count: 3, by: 'http.adminToken', from: '127.0.0.1' },
  ])
  const id = `${letter?.source}/${letter?.id}`
  const story = async () => (await api<{ data: AlertStory }>(url, `/api/v1/deliveries/${id}`)).data
  await until('it is delivered', async () => (await story()).deliveries[0]?.state === 'delivered')
  const { deliveries, actions } = await story()
  expect(deliveries[0]?.attempts).toMatchObject([
    { number: 1, round: 1, outcome: 'dead', status: 400 },
    { number: 2, round: 2, outcome: 'delivered', status: 204 },
  ])
  expect(actions).toEqual(data)
  expect(describeAlert(await story())).toMatch(
    /dead \(rejected\) 400 no such channel\n {2}sent again by an operator:\n {2}2\. .* delivered 204[\s\S]*what operators did:\n.* retry dead letters hook \(http\.adminToken, from 127\.0\.0\.1\)$/,
  )
  expect(await (await fetch(`${url}/alerts/${id}`)).text()).toContain('sent again by an operator')

  // A request that names a key is carried out once, whoever repeats it.
  const again = (key: string, body: object = { ids: [`${letter?.source}.${letter?.id}`] }) =>
    send('/api/v1/replay', body, key)
  const [one, two] = await Promise.all([again('"k1"'), again('k1')])
  const [done, other] = one.status === 200 ? [one, two] : [two, one]
  const answer = await done.json()
  expect(answer).toMatchObject({ queued: 1 })
  // The second came while the first was carried out, or after that.
  if (other.status !== 409) expect(await other.json()).toEqual(answer)
  await until('it is sent again', async () => (await story()).deliveries[0]?.attempts.length === 3)
  const repeated = await again('k1')
  expect(repeated.headers.get('idempotent-replayed')).toBe('true')
  expect(await repeated.json()).toEqual(answer)
  expect((await again('k1', { ids: ['main.1'] })).status).toBe(422)
  expect((await again('k2', { ids: [] })).status).toBe(400)
  expect((await again('', { ids: ['main.1'] })).status).toBe(400)
  // What was refused did nothing: its key is free.
  expect(await (await again('k2')).json()).toMatchObject({ queued: 1 })
  expect((await api<{ data: unknown[] }>(url, '/api/v1/audit')).data).toHaveLength(3)

  // An order with a key takes what one without takes: also what ended by the clock of a replica that is ahead.
  const client = redis.client()
  const completed = `${queuePrefix(prefix)}:hook:completed`
  await until('all have ended', async () => (await client.zcard(completed)) === 3)
  await client.zadd(completed, Date.now() + 3_600_000, `${letter?.source}.${letter?.id}`)
  const all = await send('/api/v1/replay', { since: '2020-01-01T00:00:00Z' }, 'k4')
  expect(await all.json()).toMatchObject({ queued: 3, total: 3 })

  // So does one that broke off, when it is sent again; not what has ended since.
  await until('all have ended again', async () => (await client.zcard(completed)) === 3)
  await client.zadd(completed, Date.now() + 3_600_000, `${letter?.source}.${letter?.id}`)
  const counted = async () =>
    (await send('/api/v1/replay', { since: '2020-01-01T00:00:00Z', limit: 0 }, 'k6')).json()
  const atFirst: unknown = await counted()
  expect(atFirst).toMatchObject({ total: 3 })
  const countedKey = idempotencyKey(prefix, createHash('sha256').update('k6').digest('base64url'))
  const { answer: _answer, ...broken } = JSON.parse((await client.get(countedKey)) ?? '')
  await client.set(countedKey, JSON.stringify({ ...broken, runsUntilMs: 0 }))
  await client.zadd(completed, Date.now() + 7_200_000, 'main.99')
  expect(await counted()).toMatchObject({ ...Object(atFirst), cursor: expect.any(String) })

  // The process ended between the work and its record: whoever sends it again gets no second silence.
  const silence = { match: { kind: 'PRICE' }, for: '1h' }
  const silenced = async () => {
    const response = await send('/api/v1/silences', silence, 'k5')
    return { isRepeated: response.headers.has('idempotent-replayed'), ...((await response.json()) as object) }
  }
  const added = await silenced()
  const key = idempotencyKey(prefix, createHash('sha256').update('k5').digest('base64url'))
  const { answer: _, ...begun } = JSON.parse((await client.get(key)) ?? '')
  // The second time it is stored as if the clock of Redis had been set back since.
  for (const runsUntilMs of [0, Date.now() + 3_600_000]) {
    await client.set(key, JSON.stringify({ ...begun, runsUntilMs }))
    expect(await silenced()).toEqual({ ...added, isRepeated: false })
  }
  expect((await api<{ data: unknown[] }>(url, '/api/v1/silences')).data).toHaveLength(1)
})

it('the preview of a silence looks at all alerts of the last day, however many they are', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const { url } = await startApp(
    bridgeConfig({ redis, prefix: freshPrefix(), feed: sandbox.url, sinks: { hook: hook.url } }),
  )
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    return (await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  }
  await post('/api/v1/sinks/hook/pause', {})
  const many = 2_050
  sandbox.fire({ kind: 'first' })
  sandbox.fireMany(many, { kind: 'other' })
  const waiting = async () => (await api<StatusView>(url, '/api/v1/status')).sinks[0]?.waiting
  await until('all wait', async () => (await waiting()) === many + 1)
  expect(await post('/api/v1/silences/preview', { match: { kind: 'first' } })).toMatchObject({
    ...{ matching: 1, looked: many + 1 },
  })
})

it('the preview of a silence counts what is held back already, too, and nothing older than a day', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  let aheadMs = 0
  const { url } = await startApp(
    bridgeConfig({ redis, prefix: freshPrefix(), feed: sandbox.url, sinks: { hook: hook.url } }),
    { clock: { ...systemClock, now: () => Date.now() + aheadMs } },
  )
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    return (await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  }
  const rows = async (state: string) =>
    (await api<{ data: unknown[] }>(url, `/api/v1/deliveries?state=${state}&limit=100`)).data.length
  await post('/api/v1/silences', { match: { kind: 'noisy' }, for: '1h' })
  sandbox.fireMany(30, { kind: 'noisy' })
  sandbox.fire({ kind: 'other' })
  await until('both are there', async () => (await rows('held')) === 30 && (await rows('delivered')) === 1)
  // As one who lets it last longer looks.
  for (const [hours, matching, looked] of [
    [0, 30, 31],
    [23, 30, 31],
    [25, 0, 0],
  ] as const) {
    aheadMs = hours * 3_600_000
    const preview = await post('/api/v1/silences/preview', { match: { kind: 'noisy' } })
    expect([hours, preview]).toMatchObject([hours, { matching, looked }])
  }
})

it('a pause for a time ends by itself, and a sink that rests can be tried at once', async () => {
  const sandbox = await startSandbox({ history: 6 })
  const hook = await startWebhookReceiver({ answer: { status: 503 } })
  const sink = 'allowPrivateNetworks: true, retry: { attempts: 9, initialDelay: 10m, maxDelay: 1h }'
  const text = bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url }, sink })
  let aheadMs = 0
  const clock = { ...systemClock, now: () => Date.now() + aheadMs }
  const { url } = await startApp(text, { operatorsLookEveryMs: 50, clock })
  const post = async (path: string, body: object = {}) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    return fetch(`${url}/api/v1/sinks/hook/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  }
  const hookNow = async () => (await api<StatusView>(url, '/api/v1/status')).sinks[0]
  expect((await post('probe')).status).toBe(409)
  await until('it rests', async () => (await hookNow())?.state === 'open')
  const sent = hook.requests.length
  hook.answerWith({ status: 204 })
  expect((await post('probe')).status).toBe(200)
  await hook.received(sent + 1)
  await until('it takes alerts', async () => (await hookNow())?.state === 'active')

  expect((await post('pause', { for: '1h', comment: 'they migrate' })).status).toBe(200)
  const paused = await hookNow()
  expect(paused).toMatchObject({ state: 'paused', reason: 'they migrate' })
  expect(paused?.pausedUntil).toMatch(/Z$/)
  aheadMs = 3_600_000
  await until('the pause is over', async () => (await hookNow())?.state === 'active')
  expect((await hookNow())?.pausedUntil).toBeNull()
})

it('who tries a sink that rests while nothing waits for it is told so, and the next alert is sent at once', async () => {
  const sandbox = await startSandbox({ history: 5 })
  const hook = await startWebhookReceiver({ answer: { status: 503 } })
  const sink = 'allowPrivateNetworks: true, retry: { attempts: 1, initialDelay: 1s, maxDelay: 1s }'
  const { url } = await startApp(bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url }, sink }))
  const sinkNow = async () => (await api<StatusView>(url, '/api/v1/status')).sinks[0]
  await until('all are dead', async () => (await sinkNow())?.dead === 5, 60_000)
  expect(await sinkNow()).toMatchObject({ state: 'open', waiting: 0, delayed: 0 })
  hook.answerWith({ status: 204 })
  const headers = { authorization: `Bearer ${adminToken}` }
  const tried = await fetch(`${url}/api/v1/sinks/hook/probe`, { method: 'POST', headers })
  expect([tried.status, ((await tried.json()) as { detail: string }).detail]).toEqual([
    ...[409, 'No alert for hook is due, so none is sent now: the next one that is due is sent at once.'],
  ])
  sandbox.fire()
  await until('it takes alerts again', async () => (await sinkNow())?.state === 'active')
}, 90_000)

it('who tries a sink that rests while its alerts wait for their digest is not told that none wait, or that the next is sent at once', async () => {
  const sandbox = await startSandbox({ history: 5 })
  const prefix = freshPrefix()
  const config = (digest: string) =>
    bridgeConfig({
      ...{ redis, prefix, feed: sandbox.url, sinks: { hook: 'http://127.0.0.1:1/' } },
      sink: 'allowPrivateNetworks: true, retry: { attempts: 1, initialDelay: 1s, maxDelay: 1s }',
    }).replace(
      /hook: \{ type: webhook, url: "[^"]*"/,
      `hook: { type: email, smtp: "smtp://127.0.0.1:1", from: a@example.com, to: [b@example.com]${digest}`,
    )
  let text = config('')
  const { app, url } = await startApp(text, { load: () => parseConfig(text, { env: {}, folder: '/' }) })
  const sinkNow = async () => (await api<StatusView>(url, '/api/v1/status')).sinks[0]
  await until('all are dead', async () => (await sinkNow())?.dead === 5, 60_000)
  text = config(', digest: 1d')
  expect(await app.reload()).toEqual({ ok: true })
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  const post = (path: string) =>
    fetch(`${url}/api/v1/${path}`, { method: 'POST', headers, body: JSON.stringify({ all: true }) })
  const tried = async () => {
    const answer = await fetch(`${url}/api/v1/sinks/hook/probe`, { method: 'POST', headers, body: '{}' })
    return [answer.status, ((await answer.json()) as { detail: string }).detail]
  }
  const refusal = 'No alert for hook is due, so none is sent now: the next one that is due is sent at once.'
  expect(await tried()).toEqual([409, refusal])
  expect(await (await post('dead-letters/retry')).json()).toMatchObject({ retried: 5 })
  await until('they wait for their digest', async () => (await sinkNow())?.delayed === 5)
  expect(await sinkNow()).toMatchObject({ state: 'open', waiting: 0 })
  expect(await tried()).toEqual([409, refusal])
}, 90_000)

it('who tries a sink of a bridge that waits for its last sends is told that it stops, not that there is no such sink', async () => {
  const sandbox = await startSandbox({ history: 0 })
  const held = Promise.withResolvers<void>()
  const hook = await startWebhookReceiver({ answer: { status: 204, after: held.promise } })
  const { app, url } = await startApp(bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } }))
  sandbox.fire()
  await until('it is being sent', () => hook.requests.length === 1)
  const stopped = app.stop()
  const headers = { authorization: `Bearer ${adminToken}` }
  const tried = await fetch(`${url}/api/v1/sinks/hook/probe`, { method: 'POST', headers })
  held.resolve()
  expect([tried.status, ((await tried.json()) as { detail: string }).detail]).toEqual([
    ...[409, 'The bridge is stopping: it sends nothing any more.'],
  ])
  await stopped
})

it('rows that were quarantined after an order to drop them all had broken off are not dropped when it is sent again', async () => {
  const sandbox = await startSandbox({ history: 1 })
  const prefix = freshPrefix()
  const hook = await startWebhookReceiver()
  const { url } = await startApp(
    bridgeConfig({ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url } }),
  )
  const { quarantined, quarantinedTimes } = sourceKeys(prefix, 'main')
  const client = redis.client()
  const put = async (key: string, atMs: number) => {
    await client.hset(quarantined, key, JSON.stringify({ key, reason: 'id: missing', raw: '{}', atMs }))
    await client.zadd(quarantinedTimes, atMs, key)
  }
  const drop = async (key?: string) => {
    const named = key === undefined ? {} : { 'idempotency-key': key }
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json', ...named }
    const body = JSON.stringify({ all: true })
    return (await fetch(`${url}/api/v1/quarantine/drop`, { method: 'POST', headers, body })).json()
  }
  await put('raw-1', 1_000_000)
  await put('raw-2', Date.now() + 3_600_000)
  expect(await drop('k1')).toEqual({ dropped: 2 })
  const request = idempotencyKey(prefix, createHash('sha256').update('k1').digest('base64url'))
  const { answer: _answer, ...broken } = JSON.parse((await client.get(request)) ?? '')
  await client.set(request, JSON.stringify({ ...broken, runsUntilMs: 0 }))
  await put('raw-3', Date.now() + 7_200_000)
  expect(await drop('k1')).toEqual({ dropped: 0 })
  expect(await client.hkeys(quarantined)).toEqual(['raw-3'])
  expect(await drop()).toEqual({ dropped: 1 })
})
