import { expect, it } from 'vitest'
import type { AlertStory } from '../../src/admin/views/delivery-view.ts'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { explainCommand } from '../../src/cli/explain.ts'
import { whyCommand } from '../../src/cli/why.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig } from '../support/bridge.ts'
import { run } from '../support/cli.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('of an id that was never seen, why names its neighbours, however many alerts came since', async () => {
  const sandbox = await startSandbox({ history: 600, requestsPerMinute: 1_000_000 })
  const hook = await startWebhookReceiver()
  const prefix = freshPrefix()
  // More than a page of the list; that none is sent spares most of the work.
  const routes = '[{ match: { symbol: none like it }, sinks: [hook] }]'
  const { url } = await startApp(
    bridgeConfig({ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url }, routes }),
  )
  const isKnown = async (id: number) =>
    (await api<{ data: unknown[] }>(url, `/api/v1/deliveries?id=main.${id}`)).data.length > 0
  // What is known of the last page is recorded before the walk has ended.
  const isRead = async () => {
    const [source] = (await api<StatusView>(url, '/api/v1/status')).sources
    return source?.state === 'running' && source.lastCompleteWalkAt !== null
  }
  await until('all is read', isRead, 20_000)
  expect([await isKnown(1), await isKnown(600)]).toEqual([true, true])
  const why = async (id: number) => (await run(whyCommand(), `main.${id}`, '--url', url)).out
  const first = await why(0)
  expect(first).toContain('the one after it that is known: main.1, fired ')
  expect(first).not.toContain('the one before it')
  expect(first).toContain('the feed was not seen to have it')
  // Nothing is left out from the beginning on.
  expect(first).toMatch(/^so the feed of this account never showed it$/m)
  const last = await why(601)
  expect(last).toContain('the one before it that is known: main.600, fired ')
  expect(last).not.toContain('the one after it')
  // Of a feed of years the rows that it no longer shows are forgotten: then it may have had this one.
  await redis.client().hset(sourceKeys(prefix, 'main').meta, { forgotten: 5, forgottenMs: Date.now() })
  const old = await why(0)
  expect(old).toContain('the feed was not seen to have it, as far as is remembered')
  expect(old).toMatch(
    /^so the feed of this account never showed it, or its record is older than retention keeps$/m,
  )
})

it('of an alert that waits at a sink that sends nothing, why and the page say since when, until when and for what reason', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const down = await startWebhookReceiver({ answer: { status: 503, body: 'they migrate' } })
  const busy = await startWebhookReceiver({ answer: { status: 429, headers: { 'retry-after': '900' } } })
  const { url } = await startApp(
    bridgeConfig({
      redis,
      feed: sandbox.url,
      sinks: { hook: hook.url, down: down.url, both: down.url, busy: busy.url },
      sink: 'allowPrivateNetworks: true, retry: { attempts: 9, initialDelay: 10m, maxDelay: 1h }',
    }),
    { operatorsLookEveryMs: 50 },
  )
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ for: '2h', comment: 'asked by the desk' })
  await fetch(`${url}/api/v1/sinks/hook/pause`, { method: 'POST', headers, body })
  const sinks = async () => (await api<StatusView>(url, '/api/v1/status')).sinks
  for (let fired = 0; fired < 12; fired += 1) sandbox.fire({})
  const resting = async () => (await sinks()).filter(({ nextProbeAt }) => nextProbeAt !== null)
  await until('two rest', async () => (await resting()).length === 2)
  await fetch(`${url}/api/v1/sinks/both/pause`, { method: 'POST', headers, body: '{"comment":"they know"}' })
  const { id } = sandbox.fire({})
  const story = async () =>
    (await api<{ data: AlertStory }>(url, `/api/v1/deliveries/main/${id}`)).data.deliveries
  await until('all have it', () =>
    story().then(
      ({ length }) => length === 4,
      () => false,
    ),
  )
  const holds = new Map((await story()).map(({ sink, heldUpBy }) => [sink, heldUpBy]))
  expect(holds.get('hook')).toMatchObject({
    state: 'paused',
    reason: 'asked by the desk',
    failingSince: null,
  })
  expect(holds.get('down')).toMatchObject({
    state: 'open',
    reason: expect.stringContaining('503'),
    pausedUntil: null,
  })
  const isAhead = expect.stringMatching(/:\d\d\.000Z$/)
  expect(holds.get('busy')).toMatchObject({ state: 'active', reason: null, heldUntil: isAhead })
  const { out } = await run(whyCommand(), `main.${id}`, '--url', url)
  expect(out).toMatch(/^hook: waiting.*; the sink is paused until .* \(asked by the desk\)$/m)
  expect(out).toMatch(
    /^down: (?:waiting|delayed).*; the sink is resting since .*, next probe .* \(.*503.*\)$/m,
  )
  expect(out).toMatch(/^busy: (?:waiting|delayed).*; the sink asked for a pause until /m)
  // Since when it fails is not since when it is paused, and nothing probes it now.
  expect(out).toMatch(/^both: waiting[^;]*; the sink is paused \(they know\)$/m)
  const page = (await (await fetch(`${url}/alerts/main/${id}`)).text()).replace(/<[^>]*>/g, '')
  expect(page).toMatch(/the sink is paused: they knownothing was sent yet/)
  expect(page).toMatch(/the sink is paused: asked by the deskends in [12]h/)
  expect(page).toMatch(/the sink is resting: .*503.*since .*, next probe /)
  expect(page).toMatch(/the sink asked for a pause that ends in 1[45]m/)
  // Nothing is said of it once it can be sent.
  await fetch(`${url}/api/v1/sinks/hook/resume`, { method: 'POST', headers, body: '{}' })
  await until('it is sent', async () => (await story()).some(({ state }) => state === 'delivered'))
  expect((await story()).find(({ sink }) => sink === 'hook')).not.toHaveProperty('heldUpBy')
  // Nor where what was sent does not wait for the sink.
  await fetch(`${url}/api/v1/sinks/hook/pause`, { method: 'POST', headers, body })
  expect((await sinks()).find(({ name }) => name === 'hook')).toMatchObject({ state: 'paused' })
  expect((await story()).find(({ sink }) => sink === 'hook')).not.toHaveProperty('heldUpBy')
})

it('the story of an alert says which page of the feed had it when it was found', async () => {
  const sandbox = await startSandbox({ history: 120 })
  const hook = await startWebhookReceiver()
  const { url } = await startApp(bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } }))
  await hook.received(120)
  for (const [id, page] of [
    [1, 2],
    [120, 1],
  ] as const)
    expect((await api<{ data: AlertStory }>(url, `/api/v1/deliveries/main/${id}`)).data).toMatchObject({
      id,
      page,
    })
})

it('explain asks the bridge alone by which routes an alert that it has kept would go, and why not by others', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const sinks = { hook: hook.url, desk: hook.url }
  const routes = '[{ name: steel, match: { symbol: فولاد }, sinks: [desk] }, { sinks: [hook] }]'
  const { url } = await startApp(bridgeConfig({ redis, feed: sandbox.url, sinks, routes }))
  const { id } = sandbox.fire({ symbol: 'خودرو', kind: 'price' })
  await until('it is delivered', async () => hook.requests.length > 0)
  const explain = (...args: string[]) => run(explainCommand(), ...args, '--url', url)
  const { out } = await explain(`main.${id}`)
  expect(out).toContain('no   routes[0] (steel) → desk: symbol is خودرو, wanted فولاد')
  expect(out).toContain('yes  routes[1] → hook: takes everything')
  expect(out).toContain('sent to: hook\nnot sent to: desk\n')
  const { sinks: reached, decisions } = JSON.parse((await explain(`main.${id}`, '--json')).out)
  expect([reached, decisions.length]).toEqual([['hook'], 2])
  expect(String((await explain('main.4711')).thrown)).toContain('No alert main.4711 is kept (any more).')
})
