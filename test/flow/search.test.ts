import { expect, it } from 'vitest'
import type { AlertStory, DeliveryPage, DeliveryRow } from '../../src/admin/views/delivery-view.ts'
import { firedAlertsKey } from '../../src/store/operator-keys.ts'
import { startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig, leftToSend } from '../support/bridge.ts'
import { cli } from '../support/cli.ts'
import { documented } from '../support/openapi.ts'
import { startProgram, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

type Page = Omit<DeliveryPage, 'cursor'> & { readonly cursor: string | null }

/** Five alerts, which the feed shows in another order than that in which they fired. */
async function rig() {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const desk = await startWebhookReceiver({ answer: { status: 410, body: 'moved away' } })
  const fire = (minutesAgo: number, fields: object) => {
    const firedAt = new Date(Date.now() - minutesAgo * 60_000).toISOString()
    return sandbox.makeRow({ firedAt, symbol: 'خودرو', kind: 'price', ruleIds: ['1'], ...fields })
  }
  const [e, d, c, b, a] = [
    fire(1, {}),
    fire(2, { ruleIds: ['77'] }),
    fire(3, { symbol: 'فولاد', kind: 'screen' }),
    fire(4, { payload: { price: JSON.rawJSON('1.10'), volume: JSON.rawJSON('12345678901234567890') } }),
    fire(5, { symbol: 'فولاد' }),
  ] as const
  for (const row of [c, a, e, b, d]) sandbox.insert(row, 0)
  const prefix = freshPrefix()
  const config = bridgeConfig({
    ...{ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url, desk: desk.url } },
    routes: '[{ match: { kind: price }, sinks: [hook] }, { match: { ruleId: "77" }, sinks: [desk] }]',
  })
  const { url } = await startApp(config)
  const ask = (query = '') => api<Page>(url, `/api/v1/deliveries?${query}`)
  await until('all are known', async () => (await ask()).data.length === 6)
  await until(
    'all have ended',
    async () => (await leftToSend(redis.client(), prefix, ['hook', 'desk'])) === 0,
  )
  const ids = { a: a.id, b: b.id, c: c.id, d: d.id, e: e.id }
  const all = [
    `${ids.e} hook delivered`,
    ...[`${ids.d} desk dead`, `${ids.d} hook delivered`],
    `${ids.c} no sink held`,
    `${ids.b} hook delivered`,
    `${ids.a} hook delivered`,
  ]
  const found = async (query: string) => shown((await ask(query)).data)
  return { url, ask, found, prefix, config, hook, ids, all }
}

const shown = (rows: readonly DeliveryRow[]) => rows.map(({ id, sink, state }) => `${id} ${sink} ${state}`)

it('alerts are found in the order of firing, by what they are and what became of them, page by page', async () => {
  const { url, ask, found, all, ids } = await rig()
  const { b, d } = ids
  const first = await ask()
  expect(shown(first.data)).toEqual(all)
  expect(first).toMatchObject({ cursor: null, looked: 5 })

  const paged: DeliveryRow[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Page = await ask(`limit=1${cursor ? `&cursor=${cursor}` : ''}`)
    expect(page.data.length).toBeLessThanOrEqual(1)
    paged.push(...page.data)
    cursor = page.cursor
  }
  expect(shown(paged)).toEqual(all)

  expect(await found('symbol=فولاد')).toEqual([all[3], all[5]])
  expect(await found('symbol=فول*&state=delivered')).toEqual([all[5]])
  expect(await found('kind=screen&kind=other')).toEqual([all[3]])
  expect(await found('rule=77')).toEqual([all[1], all[2]])
  expect(await found('rule=77&sink=desk')).toEqual([all[1]])
  expect(await found('state=dead')).toEqual([all[1]])
  expect(await found('state=held')).toEqual([all[3]])
  expect(await found('state=waiting')).toEqual([])
  expect(await found(`id=${b}`)).toEqual([all[4]])
  expect(await found(`id=main.${d}`)).toEqual([all[1], all[2]])
  expect(await found('id=987654')).toEqual([])
  // As a Persian or an Arabic keyboard writes them.
  expect(await found('rule=۷۷')).toEqual([all[1], all[2]])
  expect(await found('rule=٧*')).toEqual([all[1], all[2]])
  const persian = String(d).replace(/\d/g, (digit) => '۰۱۲۳۴۵۶۷۸۹'.charAt(Number(digit)))
  for (const id of [persian, `main.${persian}`, `00${d}`])
    expect(await found(`id=${id}`)).toEqual(all.slice(1, 3))
  const [since, until] = [first.data[4]?.firedAt, first.data[1]?.firedAt]
  expect(await found(`since=${since}&until=${until}&source=main`)).toEqual(all.slice(1, 5))
  for (const unknown of ['sink=nobody', 'source=nowhere'])
    expect((await fetch(`${url}/api/v1/deliveries?${unknown}`)).status).toBe(404)
  expect((await fetch(`${url}/api/v1/rules?source=nowhere`)).status).toBe(404)
})

it('alerts are found on the page and by commands as by the API', async () => {
  const { url, ask, ids } = await rig()
  const { a, b, c, d, e } = ids
  const since = (await ask()).data[4]?.firedAt
  const text = await (await fetch(`${url}/?symbol=فولاد&state=delivered`)).text()
  expect(text).toContain(`data-key="main.${a}"`)
  expect(text).not.toContain(`data-key="main.${c}"`)
  const { out } = await cli(['deliveries', '--symbol', 'فولاد', '--limit', '1', '--url', url])
  expect(out).toMatch(new RegExp(`main\\.${c} .* held [\\s\\S]*the newest 1 of 2: --limit .*--cursor \\S+ `))
  expect((await cli(['deliveries', '--symbol', 'فولاد', '--limit', '2', '--url', url])).out).not.toContain(
    'newest',
  )
  // Its rest begins after the last row shown, also within an alert and within a second.
  const words = (line: string) => line.trim().split(/\s+/)
  const rest: string[] = []
  for (let more: string[] = [], left = 10; left > 0; left -= 1) {
    const part = (await cli(['deliveries', '--limit', '1', '--url', url, '--utc', ...more])).out
      .trimEnd()
      .split('\n')
    rest.push(part[1] ?? '')
    more = /--cursor \S+/.exec(part[2] ?? '')?.[0].split(' ') ?? []
    if (more.length === 0) break
  }
  const once = (await cli(['deliveries', '--url', url, '--utc'])).out.trimEnd().split('\n').slice(1)
  expect(rest.map(words)).toEqual(once.map(words))
  expect((await cli(['deliveries', '--cursor', 'eA', '--url', url])).err).toContain('cursor')
  const dry = ['replay', '--since', '2h', '--sink', 'hook', '--dry-run', '--url', url, '--token', adminToken]
  expect((await cli(dry)).out).toBe(
    `4 would be sent again, such as main.${e}, main.${d}, main.${b}; nothing was changed\n`,
  )
  const dryOne = [...dry.slice(0, 2), since ?? '', '--until', since ?? '', '--dry-run', ...dry.slice(6)]
  expect((await cli(dryOne)).out).toBe(`1 would be sent again, such as main.${b}; nothing was changed\n`)
  const dryIds = ['replay', `main.${d}`, `main.${c}`, 'main.987654', ...dry.slice(5)]
  expect((await cli(dryIds)).out).toBe(
    `2 would be sent again, such as main.${d}; not known (any more): main.987654; nothing was changed\n`,
  )
  expect((await cli([...dryIds, '--sink', 'hook'])).out).toMatch(
    `2 would be sent again, such as main.${d}, main.${c};`,
  )
  expect(JSON.parse((await cli([...dry, '--json'])).out)).toEqual({
    ...{ dryRun: true, count: 4, sample: [`main.${e}`, `main.${d}`, `main.${b}`], unknown: [] },
  })
})

it('whatever the API answers of alerts is what its document says', async () => {
  const { url, hook, ids } = await rig()
  const { d } = ids
  const { document, answerOf, mistakesOf } = documented(await api(url, '/api/v1/openapi.json'))
  const places: Record<string, string> = { name: 'main', source: 'main', id: String(d) }
  for (const [path, { get }] of Object.entries(document.paths)) {
    if (!get || !path.startsWith('/api/') || path.endsWith('/events') || path.includes('orphans/')) continue
    const answer = await api<object>(
      url,
      path.replaceAll(/\{(\w+)\}/g, (_, place) => places[place] ?? ''),
    )
    expect(mistakesOf(answerOf(path).schema, answer), path).toBe('')
    if ('data' in answer && /deliver|dead/.test(path)) expect(answer.data).not.toEqual([])
  }
  const posted = { ids: [`main.${d}`], sink: 'hook' }
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  for (const [path, body] of [
    ['/api/v1/replay', posted],
    ['/api/v1/silences/preview', { match: { kind: 'price' } }],
    ['/api/v1/silences', { match: { kind: 'none' }, for: '1h' }],
    ['/api/v1/sinks/hook/pause', { for: '1h' }],
    ['/api/v1/sinks/hook/resume', {}],
  ] as const) {
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    const { schema, status } = answerOf(path.replace('/hook/', '/{name}/'), 'post')
    expect(response.status, path).toBe(status)
    expect(mistakesOf(schema, await response.json()), path).toBe('')
  }
  const refused = await fetch(`${url}/api/v1/nothing`)
  expect(mistakesOf(document.components.schemas['Problem'] ?? {}, await refused.json())).toBe('')
  const fired = document.webhooks['alert.fired']?.post.requestBody.content['application/json']?.schema ?? {}
  for (const { body } of hook.requests) expect(mistakesOf(fired, JSON.parse(body.toString()))).toBe('')

  // Numbers that JavaScript cannot hold are as the feed had them, also for routes of a config that is tried.
  expect(await (await fetch(`${url}/api/v1/alerts`)).text()).toContain(
    '"price":1.10,"volume":12345678901234567890',
  )
})

it('another config is tried on the alerts that were kept, without being put in force', async () => {
  const { url, prefix, hook, ids } = await rig()
  const { b, c, d, e } = ids
  const next = bridgeConfig({
    ...{ redis, prefix, feed: 'http://127.0.0.1:9', sinks: { hook: hook.url, desk: hook.url } },
    routes:
      '[{ name: prices, match: { kind: price }, sinks: [hook], throttle: { per: 4m } }, { name: screens, match: { kind: screen }, sinks: [desk] }, { name: large, match: { payload: volume=12345678901234567890 }, sinks: [hook] }]',
  })
  const file = writeConfig(next)
  const tried = await cli(['check-config', file, '--replay', '7d', '--url', url, '--json'])
  expect(JSON.parse(tried.out)).toMatchObject({
    alerts: 5,
    changed: 3,
    sinks: expect.arrayContaining([
      expect.objectContaining({ name: 'hook', before: 4, now: 3, gained: [], lost: [`main.${e}`] }),
      expect.objectContaining({
        name: 'desk',
        before: 1,
        now: 1,
        gained: [`main.${c}`],
        lost: [`main.${d}`],
      }),
    ]),
    routes: expect.arrayContaining([
      expect.objectContaining({ name: 'routes[0]', before: 4, now: 0 }),
      expect.objectContaining({ name: 'prices', before: 0, now: 3, heldNow: 1 }),
      expect.objectContaining({ name: 'screens', now: 1, gained: [`main.${c}`] }),
      expect.objectContaining({ name: 'large', now: 1, gained: [`main.${b}`] }),
    ]),
  })
  const told = (await cli(['check-config', file, '--replay', '7d', '--url', url])).out
  expect(told).toMatch(/^5 alerts since \S+\+03:30: other sinks would have got 3 of them\n/)
  expect(told).toMatch(/\nhook +4 +3 +\+0 +-1 +- +-main/)

  // Of a source that it does not have, or calls otherwise, nothing is known: that is no "nothing changes".
  const renamed = writeConfig(next.replace('sources: { main:', 'sources: { other:'))
  const without = await cli(['check-config', renamed, '--replay', '7d', '--url', url, '--json'])
  expect(JSON.parse(without.out)).toMatchObject({ alerts: 0, withoutSource: { main: 5 }, changed: 0 })
  expect((await cli(['check-config', renamed, '--replay', '7d', '--url', url])).out).toMatch(
    /^0 alerts since [^\n]*\n5 more are left out, since the config has no source main\n$/,
  )

  // What is warned of without it is warned of with it.
  const guessable = writeConfig(next.replace(/adminToken: \S+/, 'adminToken: short'))
  for (const more of [[], ['--replay', '7d', '--url', url], ['--replay', '7d', '--url', url, '--json']])
    expect((await cli(['check-config', guessable, ...more])).err).toContain(
      'http.adminToken: it can be guessed',
    )
})

it('what is dropped or forgotten takes no other row with it, and is named where it is missing', async () => {
  const { url, ask, found, prefix, config, ids, all } = await rig()
  const { a, d } = ids
  // A row that goes between two pages of one alert.
  const half = await ask(`id=${d}&limit=1`)
  expect(shown(half.data)).toEqual([all[1]])
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  await fetch(`${url}/api/v1/dead-letters/drop`, { method: 'POST', headers, body: '{ "sink": "desk" }' })
  expect(shown((await ask(`id=${d}&limit=1&cursor=${half.cursor}`)).data)).toEqual([all[2]])

  // It is said where the alert went, too.
  const why = (await cli(['why', `main.${d}`, '--utc', '--url', url])).out
  expect(why).toMatch(/\nhook: delivered/)
  expect(why).toMatch(/\ndesk: dropped by an operator at \d{4}-\S+Z\n/)
  const { data } = await api<{ data: AlertStory }>(url, `/api/v1/deliveries/main/${d}`)
  expect(data.dropped).toEqual([{ sink: 'desk', at: expect.any(String) }])
  expect(await (await fetch(`${url}/alerts/main/${d}`)).text()).toContain(
    '</b> from <bdi>desk</bdi> by an operator',
  )

  // Of an alert whose dead letter was dropped it is not known any more where it had gone, and that is said.
  const same = writeConfig(config)
  const compared = await cli(['check-config', same, '--replay', '7d', '--url', url, '--json'])
  expect(JSON.parse(compared.out)).toMatchObject({ alerts: 4, dropped: [`main.${d}`], changed: 0 })
  const printed = (await cli(['check-config', same, '--replay', '7d', '--url', url])).out
  expect(printed).toContain(`\n1 more is left out, since a dead letter of it was dropped: main.${d}\n`)

  // Alerts of before this order was kept are found by their id.
  await redis.client().del(firedAlertsKey(prefix))
  expect(await found('')).toEqual([])
  expect(await found(`id=${a}`)).toEqual([all[5]])
})

it('what a source has held back is found by a process without it, and under its new name', async () => {
  const sandbox = await startSandbox({ history: 3 })
  const hook = await startWebhookReceiver()
  const text = bridgeConfig({
    ...{ redis, feed: sandbox.url, sinks: { hook: hook.url } },
    routes: '[{ match: { symbol: none like it }, sinks: [hook] }]',
  })
  const held = async (url: string) =>
    (await api<Page>(url, '/api/v1/deliveries?state=held')).data.map(({ source }) => source)
  const { app, url } = await startApp(text)
  await until('all are held', async () => (await held(url)).length === 3)
  const renamed = text.replace('sources: { main:', 'sources: { other:')
  const replica = await startApp(renamed, { role: 'sender' })
  expect(await held(replica.url)).toEqual(['main', 'main', 'main'])
  await app.stop()
  const next = await startApp(renamed)
  await until('its name is the new one', async () => (await held(next.url)).includes('other'))
  expect(await held(next.url)).toEqual(['other', 'other', 'other'])
})

it('who follows the deliveries sees each, however many come at once, and of those before only the newest', async () => {
  const sandbox = await startSandbox({ history: 60 })
  const hook = await startWebhookReceiver()
  const prefix = freshPrefix()
  const { url } = await startApp(
    bridgeConfig({ redis, prefix, feed: sandbox.url, sinks: { hook: hook.url } }),
  )
  await until('all are sent', async () => {
    const { data } = await api<Page>(url, '/api/v1/deliveries?state=delivered&limit=500')
    return data.length === 60
  })
  const { stdout } = startProgram(['deliveries', '--follow', '--json', '--url', url])
  const shown = () =>
    new Set(
      stdout()
        .match(/"id":\d+.*"state":"delivered"/g)
        ?.map((row) => row.slice(0, 12)),
    )
  await until('the newest are shown', () => shown().size >= 50)
  sandbox.fireMany(300)
  await until('each of them is shown', () => shown().size >= 350)
  expect(shown().size).toBe(350)
})

it('who watches the status is shown it again and again', async () => {
  const hook = await startWebhookReceiver()
  const sandbox = await startSandbox({ history: 1 })
  const { url } = await startApp(bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url } }))
  const { stdout } = startProgram(['status', '--watch', '--url', url])
  const looks = () => stdout().match(/^alert-bridge \S+, all, up /gm)?.length ?? 0
  await until('it was looked at twice', () => looks() >= 2)
})

it('each alert stands on one page of the status page, with all of its sinks', async () => {
  const sandbox = await startSandbox({ history: 20 })
  const hook = await startWebhookReceiver()
  const sinks = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  const config = bridgeConfig({
    ...{ redis, feed: sandbox.url, sinks: Object.fromEntries(sinks.map((name) => [name, hook.url])) },
  })
  const { url } = await startApp(config)
  await until('all are known', async () => {
    const { data } = await api<Page>(url, '/api/v1/deliveries?limit=500')
    return data.length === 140
  })
  const alerts: [key: string, sinks: string[]][] = []
  for (let address: string | undefined = '/'; address !== undefined; ) {
    const text: string = await (await fetch(url + address)).text()
    for (const [, key = '', item = ''] of text.matchAll(/<li data-key="(main\.\d+)">(.*?)<\/ul>/gs))
      alerts.push([key, [...item.matchAll(/<bdi>([a-g])<\/bdi>/g)].map(([, name = '']) => name)])
    const older: string | undefined = /<p class="more"><a href="([^"#]*)/.exec(text)?.[1]
    address = older && `/${older}`
  }
  const ids = Array.from({ length: 20 }, (_, at) => `main.${20 - at}`)
  expect(alerts).toEqual(ids.map((id) => [id, sinks]))
})
