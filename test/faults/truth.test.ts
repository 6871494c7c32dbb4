import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { buildApp, startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig, metric, readiness } from '../support/bridge.ts'
import { letPass, passingClock } from '../support/clock.ts'
import { failureRow } from '../support/failure-row.ts'
import { clean, hasAll, judge, logOf, showing } from '../support/oracle.ts'
import { useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** That a bridge which does not do its work says so, and that it keeps its secrets while it does. */

const redis = useRedis({ aof: true })
const taken = { status: 204 } as const
const inTime = { timeout: process.env['LONG'] === '1' ? 1_200_000 : 30_000 }
/** How late anything may be on a busy machine. */
const slackMs = 4_000

interface Source {
  readonly state: string
  readonly behind: boolean
  readonly lastCompleteWalkAt: string | null
}

async function source(url: string): Promise<Source | undefined> {
  return (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources[0]
}

it('a poller that died in silence turns readiness red within a minute, with the reason', inTime, async () => {
  const row = failureRow('The polling loop dies without an error')
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const shown = showing(sandbox)
  const log = logOf('hook', hook, taken)
  const time = passingClock()
  let diedMs = 0
  const clock = {
    ...time,
    // As a timer that never fires: nothing throws, nothing ends but by the end of the process.
    sleep(ms: number, signal?: AbortSignal) {
      if (!dead) return time.sleep(ms, signal)
      diedMs ||= ms <= 250 ? time.monotonicMs() : 0
      return new Promise<void>((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
    },
  }
  let dead = false
  const text = bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } })
  const { app } = buildApp(text, { clock })
  const url = await app.start()
  shown.fire(3)
  await until('it polls and sends', () => sandbox.requests.length > 2 && hasAll(shown, log))
  expect(await readiness(url)).toBe('ok')
  dead = true
  await until('it waits for ever', () => diedMs > 0)
  const calls = sandbox.requests.length
  shown.fire(3)
  await letPass(time, 55_000)
  expect(await readiness(url)).toBe('ok')
  await letPass(time, 5_000)
  const stuck = /main: .*polling loop is stuck/
  await row.kept('`/readyz` turns red and says `stuck`', () =>
    until('it is red', async () => stuck.test(await readiness(url))),
  )
  await row.heals('60 s until it is noticed', time.monotonicMs() - diedMs - slackMs)
  await until('the page says so', async () => /polling loop is stuck/.test(await (await fetch(url)).text()))
  expect(sandbox.requests.length).toBe(calls)
  const life = async () => {
    const response = await fetch(`${url}/-/healthy`)
    return [response.status, await response.text()]
  }
  expect(await life()).toEqual([200, 'healthy\n'])
  await letPass(time, 4 * 60_000)
  await row.heals('after 5 min `/healthz` turns red', async () => {
    const red = /^not alive: source main: the polling loop is stuck \(\w+\): nothing for 5m/
    await until('it is red', async () => red.test(String((await life())[1])))
    expect((await life())[0]).toBe(503)
    expect(time.monotonicMs() - diedMs).toBeLessThan(5 * 60_000 + slackMs)
  })
  await row.heals('by which the chart restarts the pod', () => {
    const pod = readFileSync(join(import.meta.dirname, '../../helm/alert-bridge/templates/_pod.tpl'), 'utf8')
    expect(pod).toMatch(/livenessProbe:\s+.*include "alert-bridge.probe" \(.*"path" "\/-\/healthy"\)/)
  })
  await app.stop()
  await startApp(text)
  await row.kept('everything', async () => {
    await until('everything arrives', () => hasAll(shown, log))
    expect(judge(shown, log)).toEqual(clean)
  })
  await row.twice('nothing', () => expect(new Set(log.taken).size).toBe(log.taken.length))
})

it(
  'a feed of which the older pages cannot be read is told as behind, and its last complete walk grows old',
  inTime,
  async () => {
    const row = failureRow('Older pages cannot be read')
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const shown = showing(sandbox)
    const log = logOf('hook', hook, taken)
    shown.fire(3)
    const clock = passingClock()
    const text = bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } })
    const { url, lines } = await startApp(text, { clock })
    await until('all arrive', () => hasAll(shown, log))
    const complete = async () => (await source(url))?.lastCompleteWalkAt ?? ''
    await until('a walk is complete', async () => (await complete()) !== '')
    sandbox.fault({ kind: 'status', status: 500, page: 2, times: 0 })
    shown.fire(150)
    await until('the newest page arrives', () => log.taken.length === 103)
    await row.kept('the source is shown as behind', () =>
      until('it is told', async () => (await source(url))?.behind === true),
    )
    const before = await complete()
    // Polls that have ended: one that is under way would count the time that passes here as its own.
    const failed = () => lines.filter(({ msg, reason }) => msg === 'poll.done' && reason === 'failed').length
    // Long enough that page 2 is asked for no more often than once a minute.
    const fresh: number[] = []
    for (let polls = 3; polls <= 8; polls += 1) {
      await until(`page 2 failed ${polls} times`, () => failed() >= polls)
      shown.fire()
      const firedMs = clock.monotonicMs()
      await until('what fires arrives', () => log.taken.length === 100 + polls + 1)
      fresh.push(clock.monotonicMs() - firedMs)
      await letPass(clock, 60_000)
    }
    await row.kept('the newest rows are sent as fast as ever', () =>
      expect(Math.max(...fresh)).toBeLessThan(slackMs),
    )
    await row.kept('its last complete walk grows old', async () => {
      expect(await complete()).toBe(before)
      expect(
        await metric(url, 'alert_bridge_last_complete_walk_timestamp_seconds{source="main"}'),
      ).toBeCloseTo(Date.parse(before) / 1_000, 1)
    })
    await until('no poll is about to find page 2 as it was', () => failed() >= 9)
    sandbox.clearFaults()
    const mendedMs = clock.monotonicMs()
    await row.heals('the first poll a minute after the pages can be read', async () => {
      await letPass(clock, 60_000)
      await until('the rest arrives', () => hasAll(shown, log), 20_000)
      await until(
        'it is well',
        async () => (await complete()) > before && (await source(url))?.behind === false,
      )
      expect(clock.monotonicMs() - mendedMs).toBeLessThan(60_000 + slackMs)
    })
    expect(judge(shown, log)).toEqual(clean)
    await row.twice('nothing', () => expect(new Set(log.taken).size).toBe(log.taken.length))
  },
)

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
  const text = bridgeConfig({
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
