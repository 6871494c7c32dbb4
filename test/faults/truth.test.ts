import { expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { buildApp, startApp, until } from '../support/app.ts'
import { clean, hasAll, judge, logOf, showing } from '../support/oracle.ts'
import { useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { adminToken, api, metric, readiness, sceneConfig } from '../support/scene.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** That a bridge which does not do its work says so, and that it keeps its secrets while it does. */

const redis = useRedis({ aof: true })
const taken = { status: 204 } as const

interface Source {
  readonly state: string
  readonly behind: boolean
  readonly lastCompleteWalkAt: string | null
}

async function source(url: string): Promise<Source | undefined> {
  return (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources[0]
}

it('a poller that died in silence turns readiness red within a minute, with the reason', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  let aheadMs = 0
  let dead = false
  let waiting = false
  const clock = {
    now: () => Date.now() + aheadMs,
    monotonicMs: () => performance.now() + aheadMs,
    // As a timer that never fires: nothing throws, nothing ends.
    sleep(ms: number, signal?: AbortSignal) {
      if (!dead) return systemClock.sleep(ms, signal)
      waiting ||= ms <= 250
      return new Promise<void>(() => {})
    },
  }
  const { app } = buildApp(sceneConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } }), { clock })
  const url = await app.start()
  await until('it polls', () => sandbox.requests.length > 2)
  expect(await readiness(url)).toBe('ok')
  dead = true
  await until('it waits for ever', () => waiting)
  const calls = sandbox.requests.length
  aheadMs = 62_000
  await until('readiness is red', async () => /main: .*polling loop is stuck/.test(await readiness(url)))
  expect(sandbox.requests.length).toBe(calls)
  await until('the page says so', async () => /polling loop is stuck/.test(await (await fetch(url)).text()))
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  aheadMs = 5 * 60_000 + 2_000
  const life = await fetch(`${url}/-/healthy`)
  expect([life.status, await life.text()]).toEqual([
    503,
    expect.stringMatching(/^not alive: source main: the polling loop is stuck \(\w+\): nothing for 5m/),
  ])
})

it('rows that cannot be read are counted and shown as they came, and the rest of their page is sent', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const shown = showing(sandbox)
  const log = logOf('hook', hook, taken)
  shown.fire(20)
  sandbox.insert({ id: '12', kind: 'price', headline: 'id is text <script>' }, 3)
  sandbox.insert({ id: 2 ** 53 + 2, kind: 'price' }, 7)
  sandbox.insert(null, 9)
  const { url } = await startApp(sceneConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } }))
  await until('the good ones arrive', () => hasAll(shown, log))
  expect(judge(shown, log)).toEqual(clean)
  await until(
    'all three are counted',
    async () => (await metric(url, 'alert_bridge_alerts_quarantined_total{source="main"}')) === 3,
  )
  const { data } = await api<{ data: { source: string; key: string; reason: string; raw: string }[] }>(
    url,
    '/api/v1/quarantine',
  )
  expect(data.map(({ raw }) => JSON.parse(raw)).sort()).toEqual(
    expect.arrayContaining([null, { id: '12', kind: 'price', headline: 'id is text <script>' }]),
  )
  expect(data).toHaveLength(3)
  expect(data.every(({ reason, source }) => reason.length > 3 && source === 'main')).toBe(true)
  const page = await (await fetch(url)).text()
  expect(page).toMatch(/3 rows could not be read/)
  const polls = sandbox.requests.length
  await until('two more polls', () => sandbox.requests.length > polls + 1)
  expect((await api<{ data: unknown[] }>(url, '/api/v1/quarantine')).data).toHaveLength(3)
})

it('rows with odd fields are sent like all others, with every field as it came', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const odd: readonly object[] = [
    { payload: null },
    { channels: null, isRead: 0, ruleIds: null, url: null },
    { symbol: 12, kind: ['price', { deep: [1.5, null] }], why: { a: 1 } },
    { headline: null, firedAt: null, notifiedAt: 7 },
  ].map((fields) => ({ ...sandbox.makeRow(), ...fields }))
  for (const row of [...odd, { id: 9_001 }]) sandbox.insert(row, 0)
  const { url } = await startApp(sceneConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } }))
  const requests = await hook.received(5)
  const sent = requests.map(({ body }) => (JSON.parse(body) as { data: { delivery: unknown } }).data.delivery)
  expect(sent).toEqual(expect.arrayContaining([...odd, { id: 9_001 }]))
  expect(await metric(url, 'alert_bridge_alerts_quarantined_total{source="main"}')).toBe(0)
})

it('a row that the feed slips in beneath its head is found by counting, and counted as a gap', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const shown = showing(sandbox)
  const log = logOf('hook', hook, taken)
  shown.fire(130)
  const { url } = await startApp(sceneConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } }))
  await until('all arrive', () => hasAll(shown, log), 15_000)
  const late = sandbox.makeRow({ headline: 'late' })
  sandbox.insert(late, 115)
  await until('the late one arrives', () =>
    hook.requests.some(({ headers }) => headers['webhook-id'] === `main.${late.id}`),
  )
  expect(await metric(url, 'alert_bridge_feed_gap_total{source="main"}')).toBe(1)
})

it('a feed of which the older pages cannot be read is told as behind, and its last complete walk grows old', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const shown = showing(sandbox)
  const log = logOf('hook', hook, taken)
  shown.fire(3)
  const { url } = await startApp(sceneConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } }))
  await until('all arrive', () => hasAll(shown, log))
  const complete = async () => (await source(url))?.lastCompleteWalkAt ?? ''
  await until('a walk is complete', async () => (await complete()) !== '')
  sandbox.fault({ kind: 'status', status: 500, page: 2, times: 0 })
  shown.fire(150)
  await until('the newest page arrives', () => log.taken.length === 103)
  await until('it is told', async () => (await source(url))?.behind === true)
  const before = await complete()
  const polls = sandbox.requests.length
  await until('another poll', () => sandbox.requests.length > polls + 1)
  expect(await complete()).toBe(before)
  expect(await metric(url, 'alert_bridge_last_complete_walk_timestamp_seconds{source="main"}')).toBeCloseTo(
    Date.parse(before) / 1_000,
    1,
  )
  sandbox.clearFaults()
  await until('the rest arrives', () => hasAll(shown, log), 20_000)
  await until('it is well', async () => (await complete()) > before && (await source(url))?.behind === false)
  expect(judge(shown, log)).toEqual(clean)
})

it('no secret of the config is told by anything: logs, metrics, API, page, Redis', async () => {
  const sandbox = await startSandbox({ tokens: [{ value: 'canary-of-the-feed-token' }] })
  const signing = `whsec_${Buffer.from('canary-of-the-signing-key-000000').toString('base64')}`
  const hook = await startWebhookReceiver({ path: '/hook/canary-of-the-path' })
  const shown = showing(sandbox)
  // It echoes what it got, headers and all.
  hook.answerWith((request) =>
    hook.requests.length % 3 === 0
      ? { status: 204 }
      : { status: hook.requests.length % 3 === 1 ? 503 : 400, body: JSON.stringify(request) },
  )
  const text = sceneConfig({
    ...{ redis, feed: sandbox.url, sinks: { hook: hook.url } },
    token: 'token: canary-of-the-feed-token',
    prefix: 'canaries',
    sink: `secret: ${signing}, headers: { Authorization: Bearer canary-of-the-header }, allowPrivateNetworks: true, retry: { initialDelay: 100ms, maxDelay: 200ms }`,
  })
  const { url, lines } = await startApp(text)
  shown.fire(12)
  sandbox.fault({ kind: 'status', status: 500, message: 'canary-of-the-feed-token is no good' })
  await until('all is concluded', async () => {
    const delivered = await metric(url, 'alert_bridge_sends_total{sink="hook",result="delivered"}')
    const dead = await metric(url, 'alert_bridge_sends_total{sink="hook",result="dead"}')
    return delivered + dead === 12
  })
  const told = [JSON.stringify(lines), await keysAndValues()]
  for (const path of [
    '/',
    '/metrics',
    '/readyz',
    '/api/v1/status',
    '/api/v1/deliveries',
    '/api/v1/dead-letters',
    '/api/v1/quarantine',
  ])
    told.push(await (await fetch(`${url}${path}`)).text())
  for (const id of shown.ids.values())
    told.push(await (await fetch(`${url}/api/v1/deliveries/main/${id}`)).text())
  const secrets = [
    'canary-of-the-feed-token',
    signing,
    signing.slice(6),
    'canary-of-the-header',
    'canary-of-the-path',
    adminToken,
  ]
  for (const secret of secrets)
    expect(told.filter((each) => each.includes(secret)).map((each) => context(each, secret))).toEqual([])
})

function context(text: string, secret: string): string {
  const at = text.indexOf(secret)
  return text.slice(Math.max(0, at - 200), at + secret.length)
}

/** Everything that the bridge keeps in Redis, as text. */
async function keysAndValues(): Promise<string> {
  const client = redis.client()
  const keys = await client.keys('*canaries*')
  const values = await Promise.all(
    keys.map(async (key) => {
      switch (await client.type(key)) {
        case 'string':
          return client.get(key)
        case 'hash':
          return client.hgetall(key)
        case 'list':
          return client.lrange(key, 0, -1)
        case 'zset':
          return client.zrange(key, '0', '-1')
        case 'set':
          return client.smembers(key)
        case 'stream':
          return client.xrange(key, '-', '+')
        default:
          return null
      }
    }),
  )
  expect(keys.length).toBeGreaterThan(10)
  return JSON.stringify([keys, values])
}
