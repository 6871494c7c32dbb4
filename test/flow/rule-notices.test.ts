import { expect, it } from 'vitest'
import { describeRules } from '../../src/cli/rules.ts'
import { buildApp, startApp } from '../support/app.ts'
import { api, metric } from '../support/bridge.ts'
import { cli } from '../support/cli.ts'
import { passingClock } from '../support/clock.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()
const hourMs = 3_600_000

it('operators are notified once of rules that may not fire, and once when they are in order, over a restart', async () => {
  const sandbox = await startSandbox({ history: 3 })
  const desk = await startWebhookReceiver()
  const clock = passingClock()
  const text = `
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources:
      main: { baseUrl: "${sandbox.url}", token: sandbox-token, budget: { unitsPerDay: 2000 }, poll: { every: 1m } }
    sinks: { desk: { type: webhook, url: "${desk.url}", allowPrivateNetworks: true } }
    routes: [{ match: { kind: none }, sinks: [desk] }]
    operators: [desk]
  `
  const start = async () => {
    const { app, lines } = buildApp(text, { clock, operatorsLookEveryMs: 200 })
    return { app, lines, url: await app.start() }
  }
  const reads = () => sandbox.requests.filter(({ path }) => path === '/api/v1/alerts').length
  const readsAgain = async () => {
    const before = reads()
    let triedAtMs = Number.NEGATIVE_INFINITY
    await until(
      'the rules are read again',
      () => {
        // Time that passes before the reading before it has quite ended counts for nothing.
        if (performance.now() - triedAtMs > 2_000) {
          clock.pass(1.25 * hourMs)
          triedAtMs = performance.now()
        }
        return reads() > before
      },
      20_000,
    )
  }
  /** Time that passes in leaps also lets polls look late. */
  const notices = () =>
    desk.requests
      .map(({ body }) => (JSON.parse(body) as { data: { delivery: Notice } }).data.delivery)
      .filter(({ kind }) => kind.startsWith('bridge.rules'))
  const told = (count: number) => until('they are told', () => notices().length === count, 15_000)
  const [first, second] = [12, 14]
  // A value that JavaScript cannot turn into a text keeps no rule from being listed.
  const name = { toString: 1, valueOf: 1 } as unknown as string
  sandbox.setRule(first, { disabledReason: 'نماد بسته است' })
  sandbox.setRule(first + 1, { name })
  const { app, url } = await start()
  await told(1)
  expect(notices()[0]).toMatchObject({
    kind: 'bridge.rules_silent',
    headline: 'A rule of source main may not fire',
    why: expect.stringMatching(/^12 .+: disabled: نماد بسته است\. alert-bridge rules lists the rules\.$/),
  })
  const { sources } = await api<{ sources: { rules: unknown }[] }>(url, '/api/v1/status')
  expect(sources[0]?.rules).toMatchObject({ silentCount: 1, silent: [{ id: '12' }] })
  expect(await (await fetch(url)).text()).toContain('Source main has a rule that may not fire')
  const { data } = await api<{ data: Record<string, unknown>[] }>(url, '/api/v1/rules')
  const listed = describeRules(data, clock.now()).split('\n')
  expect(listed).toHaveLength(sandbox.rules.length + 1)
  expect(listed.filter((line) => line.includes('MAY NOT FIRE'))).toEqual([
    expect.stringMatching(/^main +12 .*MAY NOT FIRE: disabled: نماد بسته است/),
  ])
  expect(listed.join('\n')).toContain('toString=1, valueOf=1')
  const fired = { ...data[0], lastFiredAt: new Date(clock.now() - 2 * hourMs).toISOString() }
  expect(describeRules([fired], clock.now())).toMatch(/ 2h ago +\S+ ago$/m)
  expect(describeRules([{ ...fired, lastFiredAt: null }], clock.now())).toMatch(/ never +\S+ ago$/m)
  expect(describeRules([], clock.now())).toMatch(/not read yet/)
  expect(describeRules([], clock.now(), { areRead: true })).toBe(
    'there are no alert rules, so no alert can fire',
  )
  await app.stop()

  const again = await start()
  const readBefore = reads()
  // Until the process has read the rules itself, which may take an hour, or polled, which may take hours where units are few.
  const gauge = (name: string) => metric(again.url, `alert_bridge_${name}{source="main"}`)
  await until('it has a plan', async () => (await gauge('next_poll_timestamp_seconds')) > 0)
  expect(await gauge('rules_silent')).toBe(1)
  expect(await gauge('last_poll_timestamp_seconds')).toBeGreaterThan(0)
  expect(await gauge('last_complete_walk_timestamp_seconds')).toBeGreaterThan(0)
  sandbox.setRule(second, { isArmed: false })
  clock.pass(hourMs / 2)
  await until('it polls', () => sandbox.requests.filter(({ page }) => page === 1).length > 2)
  expect(reads()).toBe(readBefore)
  await readsAgain()
  await told(2)
  expect(notices()[1]).toMatchObject({ why: expect.stringMatching(/^14 [^;]+: not armed\. /) })

  // A page that cannot be read shows nothing.
  sandbox.fault({ kind: 'status', status: 500, endpoint: 'alerts' })
  await readsAgain()
  await until('it failed', () => again.lines.some(({ msg }) => msg === 'the rules cannot be read'))
  for (const id of [first, second]) sandbox.setRule(id, { disabledReason: null, isArmed: true })
  await readsAgain()
  await told(3)
  expect(notices()[2]).toMatchObject({
    kind: 'bridge.rules_well',
    headline: '2 rules of source main are in order again',
  })
  await again.app.stop()
  expect(notices()).toHaveLength(3)
}, 60_000)

it('rules that its units do not buy are told of: no notice comes of them', async () => {
  const sandbox = await startSandbox({ history: 3 })
  const [rule] = sandbox.rules
  const data = Array.from({ length: 100 }, (_, at) => ({ ...rule, id: 400 - at, name: 'rule' }))
  const meta = { page: 1, perPage: 100, total: 400, lastPage: 4 }
  sandbox.fault({ kind: 'body', endpoint: 'alerts', times: 0, text: JSON.stringify({ data, meta }) })
  const { url } = await startApp(`
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, budget: { unitsPerDay: 100 }, poll: { every: 1h, historyPages: 0 } } }
    sinks: { desk: { type: webhook, url: "https://desk.example.com/" } }
    routes: [{ match: { kind: none }, sinks: [desk] }]
  `)
  await until('they are read', async () => {
    const { sources } = await api<{ sources: { rules: { unread: number } | null }[] }>(url, '/api/v1/status')
    return sources[0]?.rules?.unread === 300
  })
  const { out } = await cli(['rules', '--url', url])
  expect(out.trimEnd().split('\n').at(-1)).toBe(
    'main: these are the newest 100 of 400 rules, as many as poll.rulesShare and an hour buy; of the others nobody is notified',
  )
  expect((await cli(['status', '--url', url])).out).toContain(
    'main: the newest 100 of 400 alert rules, read ',
  )
  expect(JSON.parse((await cli(['rules', '--url', url, '--json'])).out)).toHaveLength(100)
})

interface Notice {
  readonly kind: string
  readonly headline: string
  readonly why: string
}
