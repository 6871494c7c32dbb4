import PostalMime from 'postal-mime'
import { describe, expect, it } from 'vitest'
import type { AlertStory } from '../../src/admin/views/delivery-view.ts'
import { describeAlert } from '../../src/cli/deliveries.ts'
import { startApp } from '../support/app.ts'
import { adminToken, api, impatient, metric } from '../support/bridge.ts'
import { wallClock } from '../support/clock.ts'
import { failureRow } from '../support/failure-row.ts'
import { onTestFinished } from '../support/finished.ts'
import { ownTime } from '../support/own-time.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { slackOk } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { until } from '../support/until.ts'
import { type ReceivedRequest, startWebhookReceiver } from '../support/webhook-receiver.ts'

/** The whole bridge: alerts of a route with context, from the sandbox's feed to the receiver. */
const redis = useRedis()
/** A poll, the sends themselves, and what a busy machine adds to them. */
const slackMs = 1_500

interface Body {
  readonly data: {
    readonly delivery: { readonly id: number; readonly symbol: string }
    readonly context?: Readonly<
      Record<string, { readonly data: Record<string, unknown>; readonly at: string }>
    > & {
      readonly skipped: readonly { readonly what: string; readonly why: string }[]
    }
  }
}

const bodyOf = (request: ReceivedRequest | undefined) => JSON.parse(request?.body ?? '{}') as Body

function configOf(feed: string, hooks: Readonly<Record<string, string>>, more: ConfigParts = {}) {
  const sinks = Object.entries(hooks).map(
    ([name, url]) => `  ${name}: { type: webhook, url: "${url}", ${impatient} }`,
  )
  const { units = 1_000_000, context = '{ deadline: 5s }', routes } = more
  return `
redis: { url: "${redis.url}", prefix: ${more.prefix ?? freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${feed}", token: ${more.token ?? 'sandbox-token'}, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: ${units} }, context: ${context} } }
sinks:
${sinks.join('\n')}
routes: ${routes ?? '[{ sinks: [hook], context: [price] }]'}
`
}

const json = (value: unknown, status = 200) => ({
  ...{ status, headers: { 'content-type': 'application/json' } },
  body: JSON.stringify(value),
})

interface ConfigParts {
  readonly prefix?: string
  readonly units?: number
  readonly context?: string
  readonly routes?: string
  readonly token?: string
}

describe('a route with context', () => {
  it('adds what the API says of the instrument to the body, and what it could not', async () => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const plain = await startWebhookReceiver()
    const every = 'price, chart, indicators, filing, ownership, valuation, "macro:usd_free", "macro:none"'
    const config = configOf(
      sandbox.url,
      { hook: hook.url, plain: plain.url },
      { routes: `[{ sinks: [hook], context: [${every}] }, { sinks: [plain] }]` },
    )
    await startApp(config, { role: 'poller' })
    // The process that sends is another one than the one that polls.
    const { url } = await startApp(config, { role: 'sender' })
    await until('the first poll', async () => sandbox.requests.length > 0)
    const { id } = sandbox.fire({ symbol: 'فولاد', slug: 'foolad' })
    const [request] = await hook.received(1)
    const { context } = bodyOf(request).data
    const { skipped, ...parts } = context ?? {}
    expect(Object.keys(parts).sort()).toEqual(
      ['chart', 'filing', 'indicators', 'macro:usd_free', 'ownership', 'price', 'valuation'].sort(),
    )
    expect(skipped).toEqual([{ what: 'macro:none', why: 'not_found' }])
    expect(context?.['price']?.data).toMatchObject({ symbol: 'فولاد', unit: 'rial' })
    expect(Date.parse(context?.['price']?.at ?? '')).toBeGreaterThan(Date.now() - 60_000)
    expect(context?.['chart']?.data['points']).toHaveLength(60)
    expect(bodyOf((await plain.received(1))[0]).data).not.toHaveProperty('context')
    // price 1, chart 2, indicators 5, filing 1, ownership 5, valuation 1, two series 1 each
    const spent = 'alert_bridge_budget_units_total{source="main",purpose="context"}'
    expect(await metric(url, spent)).toBe(17)
    const total = (what: string, result: string) =>
      metric(url, `alert_bridge_context_total{source="main",what="${what}",result="${result}"}`)
    expect(await total('chart', 'bought')).toBe(1)
    expect(await total('chart', 'cached')).toBe(0)
    expect(await total('macro:none', 'skipped')).toBe(1)
    sandbox.fire({ symbol: 'فولاد', slug: 'foolad' })
    await hook.received(2)
    expect(await metric(url, spent)).toBe(17)
    expect(await total('chart', 'cached')).toBe(1)
    // Mails and messages have no place for it.
    let told = ''
    await until('both are recorded', async () => {
      const { data } = await api<{ data: AlertStory }>(url, `/api/v1/deliveries/main/${id}`)
      told = describeAlert(data)
      return data.deliveries.every(({ attempts }) => attempts.length > 0)
    })
    expect(told).toMatch(/^hook: .*\n.* delivered 204 *\n {5}without context: macro:none \(not_found\)$/m)
    expect(told).toMatch(/^plain: .*\n.* delivered 204 *$/m)
  })

  it('has the latest value of a monthly series, which may be months old', async () => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const names = ['macro:cpi', 'macro:policy_rate'] as const
    const routes = `[{ sinks: [hook], context: [${names.map((name) => `"${name}"`).join(', ')}] }]`
    await startApp(configOf(sandbox.url, { hook: hook.url }, { routes }))
    await until('the first poll', () => sandbox.requests.length > 0)
    sandbox.fire({ symbol: 'فولاد', slug: 'foolad' })
    const { context } = bodyOf((await hook.received(1))[0]).data
    const value = { date: expect.any(String), value: expect.any(Number) }
    for (const name of names)
      expect(context?.[name]?.data).toMatchObject([{ points: expect.arrayContaining([value]) }])
  })

  it('asks nothing while the source is stopped, since its token shows the feed of another account', async () => {
    const sandbox = await startSandbox({ firstId: 10_000 })
    const hook = await startWebhookReceiver()
    const text = configOf(
      sandbox.url,
      { hook: hook.url },
      { routes: '[{ sinks: [hook], context: [chart, ownership] }]' },
    ).replace('"127.0.0.1:0"', `"127.0.0.1:0", adminToken: ${adminToken}`)
    const { url } = await startApp(text, { role: 'poller' })
    await startApp(text, { role: 'sender' })
    const order = async (name: string) => {
      const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
      const answer = await fetch(`${url}/api/v1/sinks/hook/${name}`, { method: 'POST', headers, body: '{}' })
      expect(answer.status).toBe(200)
    }
    await until('the first poll', () => sandbox.requests.length > 0)
    sandbox.fire({ symbol: 'فولاد', slug: 'foolad' })
    await hook.received(1)
    await order('pause')
    sandbox.fire({ symbol: 'خودرو', slug: 'khodro' })
    const asked = sandbox.requests.length
    await until('the second alert is found', () => sandbox.requests.length > asked + 2)
    sandbox.switchAccount('another', 300)
    const state = 'alert_bridge_source_state{source="main",state="stopped"}'
    await until('the source is stopped', async () => (await metric(url, state)) === 1)
    const calls = () => sandbox.requests.filter(({ path }) => /prices|ownership/.test(path)).length
    const before = calls()
    await order('resume')
    const { context } = bodyOf((await hook.received(2))[1]).data
    const why = 'unavailable'
    expect(context).toEqual({
      skipped: [
        { what: 'chart', why },
        { what: 'ownership', why },
      ],
    })
    expect(calls()).toBe(before)
  })

  it.each([
    ['of one time', 0],
    ['three seconds ahead of the sender', 3_000],
    ['three seconds behind the sender', -3_000],
  ])(
    'is waited for no longer by all alerts of a page together than by one, where a sink sends them one after the other, with the clock of the poller %s',
    async (_clocks, aheadMs) => {
      const sandbox = await startSandbox()
      const hook = await startWebhookReceiver()
      const endpoint = 'instruments/{instrument}/prices'
      sandbox.fault({ kind: 'slow', delayMs: 700, endpoint, times: 0 })
      const text = configOf(
        sandbox.url,
        { hook: hook.url },
        { routes: '[{ sinks: [hook], context: [chart] }]', context: '{ deadline: 1s }' },
      ).replace('type: webhook', 'type: webhook, concurrency: 1')
      const clock = wallClock()
      clock.turn(aheadMs)
      await startApp(text, { role: 'poller', clock })
      await startApp(text, { role: 'sender' })
      await until('the first poll', () => sandbox.requests.length > 0)
      const calls = () => sandbox.requests.filter(({ path }) => path.endsWith('/prices')).length
      const instruments = new Set(sandbox.fireMany(12).map(({ slug }) => slug))
      const bodies = (await hook.received(12)).map(bodyOf)
      expect(instruments.size).toBeGreaterThan(3)
      // One answers within the second, and another one is begun.
      expect(calls()).toBeLessThanOrEqual(2)
      expect(bodies.at(-1)?.data.context?.skipped).toEqual([{ what: 'chart', why: 'deadline' }])
      // Those that come to an empty queue wait for their own, which is answered at once now.
      sandbox.clearFaults()
      for (const [sent, slug] of [
        [13, 'first-one'],
        [14, 'second-one'],
      ] as const) {
        sandbox.fire({ symbol: slug, slug })
        const last = (await hook.received(sent)).at(-1)
        expect(bodyOf(last).data.context?.skipped).toEqual([{ what: 'chart', why: 'not_found' }])
      }
    },
  )

  it('is waited for no longer than its alert may be late: half of what is left until it expires', async () => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const endpoint = 'instruments/{instrument}/prices'
    sandbox.fault({ kind: 'slow', delayMs: 9_500, endpoint, times: 0 })
    const routes = '[{ sinks: [hook], context: [price, chart] }]'
    const text = configOf(sandbox.url, { hook: hook.url }, { routes, context: '{ deadline: 9s }' })
    await startApp(text.replace('type: webhook', 'type: webhook, expireAfter: 6s'))
    await until('the first poll', () => sandbox.requests.length > 0)
    const { id } = sandbox.fire({ symbol: 'فولاد', slug: 'foolad' })
    const [request] = await hook.received(1)
    expect(bodyOf(request).data).toMatchObject({
      delivery: { id },
      context: { price: { data: { symbol: 'فولاد' } }, skipped: [{ what: 'chart', why: 'deadline' }] },
    })
  })

  it('is waited for as long as the source of each alert says, where two share a sink', async () => {
    const [quick, patient] = [await startSandbox(), await startSandbox()]
    const [wide, narrow] = [await startWebhookReceiver(), await startWebhookReceiver()]
    const endpoint = 'instruments/{instrument}/prices'
    for (const each of [quick, patient]) each.fault({ kind: 'slow', delayMs: 2_000, endpoint, times: 0 })
    const poll =
      'poll: { every: 250ms, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: 1000000 }'
    const sourceOf = (feed: string, deadline: string) =>
      `{ baseUrl: "${feed}", token: sandbox-token, ${poll}, context: { deadline: ${deadline} } }`
    await startApp(`
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources: { quick: ${sourceOf(quick.url, '500ms')}, patient: ${sourceOf(patient.url, '4s')} }
sinks:
  wide: { type: webhook, url: "${wide.url}", ${impatient} }
  narrow: { type: webhook, url: "${narrow.url}", concurrency: 1, ${impatient} }
routes: [{ sinks: [wide, narrow], context: [chart] }]
`)
    await until('the first polls', () => quick.requests.length > 0 && patient.requests.length > 0)
    patient.fire({ symbol: 'فولاد', slug: 'foolad' })
    await until('it waits', () => patient.requests.some(({ path }) => path.endsWith('/prices')))
    quick.fire({ symbol: 'فولاد', slug: 'foolad' })
    const whys = (requests: readonly ReceivedRequest[]) =>
      requests.map((request) => bodyOf(request).data.context?.skipped.map(({ why }) => why))
    // Neither keeps the other one waiting where there is place for both.
    expect(whys(await wide.received(2))).toEqual([['deadline'], []])
    // Where there is none, the one that may be behind is not kept waiting for longer than its own source says.
    const [first, second] = await narrow.received(2)
    expect(whys([first, second].filter((each) => each !== undefined))).toEqual([['deadline'], ['deadline']])
  })

  it('shows it in the messages of every sink, as a picture where they take one', async () => {
    const sandbox = await startSandbox()
    const mails = await startSmtpReceiver()
    onTestFinished(() => mails.stop())
    const answers = {
      ...{ slack: slackOk, telegram: json({ ok: true }), discord: json({ id: '1' }) },
      ...{ teams: { status: 202 }, pagerduty: json({ status: 'success' }, 202), ntfy: json({ id: '1' }) },
      ...{ webhook: { status: 204 }, http: { status: 204 } },
    }
    const started = Object.entries(answers).map(async ([name, answer]) => {
      const receiver = await startWebhookReceiver({ answer })
      onTestFinished(() => receiver.stop())
      return [name, receiver] as const
    })
    const receivers = new Map(await Promise.all(started))
    const at = (name: string) => receivers.get(name)?.url ?? ''
    const origin = (name: string) => new URL(at(name)).origin
    const sinks = [
      ...['slack', 'discord', 'teams', 'webhook'].map(
        (type) => `${type}: { type: ${type}, url: "${at(type)}"`,
      ),
      `http: { type: http, url: "${at('http')}", template: "{{ context.price.data.last }} {{ context.chart.data.points.size }}", contentType: text/plain`,
      `telegram: { type: telegram, baseUrl: "${origin('telegram')}", token: "1:${'A'.repeat(35)}", chatId: 1`,
      `ntfy: { type: ntfy, baseUrl: "${origin('ntfy')}", topic: alerts`,
      `pagerduty: { type: pagerduty, baseUrl: "${origin('pagerduty')}", routingKey: ${'k'.repeat(32)}`,
      `email: { type: email, smtp: "${mails.url}", from: a@example.com, to: [b@example.com]`,
    ]
    const config = configOf(
      sandbox.url,
      {},
      { routes: `[{ sinks: [${[...receivers.keys(), 'email'].join(', ')}], context: [price, chart] }]` },
    )
    await startApp(
      config.replace(
        'sinks:\n',
        `sinks:\n${sinks.map((sink) => `  ${sink}, allowPrivateNetworks: true, timeout: 5m }\n`).join('')}`,
      ),
      { chartWaitMsMax: 60_000 },
    )
    await until('the first poll', async () => sandbox.requests.length > 0)
    sandbox.fire({ symbol: 'فولاد', slug: 'foolad', headline: 'فولاد گذشت', why: null, payload: [] })
    const bodies = await Promise.all(
      [...receivers].map(
        async ([name, receiver]) => [name, (await receiver.received(1, 30_000))[0]] as const,
      ),
    )
    const [mail] = await mails.received(1, 30_000)
    const body = Object.fromEntries(bodies.map(([name, request]) => [name, request?.body ?? '']))
    const { context } = JSON.parse(body['webhook'] ?? '').data as Body['data']
    const last = Number(context?.['price']?.data['last'])
    expect(body['http']).toBe(`${last} 60`)
    const shown = last.toLocaleString('en-US')
    const [columns, picture] = [/[▁-█]{20}/, /PNG\r\n/]
    for (const name of ['slack', 'teams', 'ntfy', 'pagerduty'])
      expect([name, body[name]]).toEqual([name, expect.stringMatching(columns)])
    for (const name of ['slack', 'teams', 'ntfy', 'pagerduty', 'telegram', 'discord'])
      expect([name, body[name]]).toEqual([name, expect.stringContaining(shown)])
    for (const name of ['telegram', 'discord'])
      expect([name, body[name]]).toEqual([name, expect.stringMatching(picture)])
    const { html = '', attachments } = await PostalMime.parse(mail?.raw ?? '')
    expect(html).toContain(shown)
    expect(html).toContain(`cid:${attachments[0]?.contentId?.slice(1, -1)}`)
    expect(Buffer.from((attachments[0]?.content ?? '') as ArrayBuffer).readUInt32BE(16)).toBe(840)
  }, 60_000)

  it('is sent once and in time while every endpoint of its context is at fault, each in another way, and polls go on', async () => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const forever = { times: 0 } as const
    sandbox.fault({ ...forever, kind: 'hang', endpoint: 'instruments/{instrument}/prices' })
    sandbox.fault({
      ...forever,
      kind: 'status',
      status: 422,
      endpoint: 'instruments/{instrument}/indicators',
    })
    sandbox.fault({ ...forever, kind: 'shape', shape: 'noMeta', endpoint: 'board' })
    sandbox.fault({
      ...forever,
      kind: 'huge',
      bytes: 30_000_000,
      endpoint: 'instruments/{instrument}/ownership',
    })
    sandbox.fault({ ...forever, kind: 'drip', intervalMs: 200, endpoint: 'filings' })
    sandbox.fault({ ...forever, kind: 'status', status: 404, endpoint: 'valuations' })
    sandbox.fault({ kind: 'status', status: 429, retryAfter: '2', endpoint: 'macro/series', times: 1 })
    const every = 'price, chart, indicators, filing, ownership, valuation, "macro:usd_free"'
    const { url } = await startApp(
      configOf(
        sandbox.url,
        { hook: hook.url },
        // The deadline that a source has by itself.
        { routes: `[{ sinks: [hook], context: [${every}] }]`, context: '{}' },
      ),
    )
    await until('the first poll', () => sandbox.requests.length > 0)
    const nowMs = ownTime()
    const firedMs = nowMs()
    const fired = sandbox.fireMany(40).map(({ id }) => id)
    const requests = await hook.received(40, 20_000)
    const lagMs = nowMs() - firedMs
    const row = failureRow("Its endpoints of a route's `context` fail")
    const ids = () => hook.requests.map((request) => bodyOf(request).data.delivery.id).sort((a, b) => a - b)
    await row.kept('every alert', () => expect(ids()).toEqual(fired.sort((a, b) => a - b)))
    await row.kept('what cannot be had is left out, and `data.context.skipped` says why', () => {
      for (const request of requests)
        expect(bodyOf(request).data.context?.skipped.length).toBeGreaterThanOrEqual(6)
    })
    // With 20 sends at a time none of the 40 is behind two others: it waits for its own context alone.
    await row.heals('no alert waits longer than `context.deadline` for its context', () =>
      expect(lagMs).toBeLessThan(2_000 + slackMs),
    )
    const polls = () => sandbox.requests.filter(({ path }) => path.includes('deliveries')).length
    const before = polls()
    await row.heals('polls go on after what a 429 asks for', () =>
      until('further polls', () => polls() > before + 2),
    )
    const delivered = 'alert_bridge_sends_total{sink="hook",result="delivered"}'
    await until('all is acknowledged', async () => (await metric(url, delivered)) === 40)
    await row.twice('nothing', () => expect(hook.requests).toHaveLength(40))
  }, 40_000)
})
