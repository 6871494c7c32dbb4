import { expect, test } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import type { LoadedConfig } from '../../src/config/load.ts'
import type { InjectedFault } from '../../src/sandbox/sandbox.ts'
import { breakerKey } from '../../src/store/keys.ts'
import { buildApp, configOf, startApp } from '../support/app.ts'
import { adminToken, api, readiness } from '../support/bridge.ts'
import { letPass, passingClock } from '../support/clock.ts'
import { failureRow } from '../support/failure-row.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { it } from '../support/side-by-side.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()
/** A minute is six looks: 2.4 s here. */
const quick = { operatorsLookEveryMs: 400 }
const long = process.env['LONG'] === '1'
/** How late anything may be on a busy machine. */
const slackMs = 4_000

it('operators are notified once when a sink fails, once when it recovers, and never through the sink itself', async () => {
  const sandbox = await startSandbox()
  const sick = await startWebhookReceiver({ answer: { status: 503 } })
  const desk = await startWebhookReceiver()
  await startApp(
    configText(`{ main: ${sourceText(sandbox.url)} }`, { sick: sick.url, desk: desk.url }),
    quick,
  )
  sandbox.fireMany(12)
  const [down] = await desk.received(1, 15_000)
  expect(noticeOf(down)).toMatchObject({
    kind: 'bridge.sink_down',
    headline: expect.stringContaining('sick'),
  })
  sick.answerWith({ status: 204 })
  const [, up] = await desk.received(2, 15_000)
  expect(noticeOf(up)).toMatchObject({ kind: 'bridge.sink_up' })
  await until(
    'all alerts arrive',
    () => idsOf(sick.requests).filter((id) => id.startsWith('main.')).length === 12,
    15_000,
  )
  expect(desk.requests).toHaveLength(2)
  expect(idsOf(sick.requests).filter((id) => id.startsWith('alert-bridge.'))).toEqual([])
})

it('no silence or route decides where a notice goes, and neither page nor preview nor explanation says that one would', async () => {
  const sandbox = await startSandbox()
  const sick = await startWebhookReceiver({ answer: { status: 503 } })
  const desk = await startWebhookReceiver()
  const text = configText(`{ main: ${sourceText(sandbox.url)} }`, { sick: sick.url, desk: desk.url })
  const { url } = await startApp(text.replace(':0" }', `:0", adminToken: ${adminToken} }`), quick)
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
    const answer = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await answer.json()) as { looked?: number }
  }
  const match = { kind: { glob: 'bridge.*' } }
  expect(await post('/api/v1/silences', { match, for: '1h' })).toMatchObject({ data: { match } })
  sandbox.fireMany(12)
  const [notice] = await desk.received(1, 15_000)
  expect(noticeOf(notice)).toMatchObject({ kind: 'bridge.sink_down' })
  await until('all are seen', async () => (await post('/api/v1/silences/preview', { match })).looked === 12)
  expect(await post('/api/v1/silences/preview', { match })).toMatchObject({ matching: 0, sample: [] })
  const [name = ''] = idsOf(desk.requests)
  const path = name.replace('alert-bridge.', 'alert-bridge/')
  const page = await (await fetch(`${url}/alerts/${path}`)).text()
  expect(page).toContain('Send again')
  expect(page).not.toContain('/api/v1/silences')
  const routes = await fetch(`${url}/api/v1/alerts/${path}/routes`)
  expect([routes.status, await routes.json()]).toEqual([
    409,
    expect.objectContaining({ detail: expect.stringMatching(/is a notice .* operators/) }),
  ])
})

it('operators get one notice of many dead letters, and one of a source that a person must mend', async () => {
  const sandbox = await startSandbox()
  const gone = await startWebhookReceiver({ answer: { status: 410 } })
  const desk = await startWebhookReceiver()
  sandbox.fireMany(7)
  await startApp(configText(`{ main: ${sourceText(sandbox.url)} }`, { sick: gone.url, desk: desk.url }))
  await gone.received(7)
  await desk.received(1, 30_000)
  expect(noticeOf(desk.requests[0])).toMatchObject({
    kind: 'bridge.dead_letters',
    headline: expect.stringContaining('7 alerts'),
  })
  sandbox.setTokenState('revoked')
  await desk.received(2, 30_000)
  expect(noticeOf(desk.requests[1])).toMatchObject({ kind: 'bridge.source_stopped' })
  expect(desk.requests).toHaveLength(2)
})

it.for([
  ['a restart', false],
  ['a stop that is longer than breakers are stored', true],
])('a recovery that %s falls into is told, and so is the next outage', async ([_what, forgets]) => {
  const sandbox = await startSandbox()
  const sick = await startWebhookReceiver({ answer: { status: 503 } })
  const desk = await startWebhookReceiver()
  const prefix = freshPrefix()
  const sinks = { sick: sick.url, desk: desk.url }
  const text = configText(`{ main: ${sourceText(sandbox.url)} }`, sinks, prefix)
  const first = await startApp(text, quick)
  sandbox.fireMany(8)
  await desk.received(1, 15_000)
  await first.app.stop()
  if (forgets) expect(await redis.client().del(breakerKey(prefix, 'sick'))).toBe(1)
  sick.answerWith({ status: 204 })
  await startApp(text, quick)
  await desk.received(2, 20_000)
  sick.answerWith({ status: 503 })
  sandbox.fireMany(8)
  await desk.received(3, 15_000)
  expect(kindsOf(desk)).toEqual(['bridge.sink_down', 'bridge.sink_up', 'bridge.sink_down'])
})

it('a sink that comes and goes is told of once, and its recovery once it stays', async () => {
  const sandbox = await startSandbox()
  const sick = await startWebhookReceiver({ answer: { status: 503 } })
  const desk = await startWebhookReceiver()
  const { url } = await startApp(
    configText(`{ main: ${sourceText(sandbox.url)} }`, { sick: sick.url, desk: desk.url }),
    quick,
  )
  const sinkIs = (state: string) => async () => (await sinkOf(url, 'sick')).state === state
  sandbox.fireMany(8)
  await desk.received(1, 15_000)
  for (const _ of [1, 2]) {
    sick.answerWith({ status: 204 })
    await until('it is well', sinkIs('active'), 15_000)
    sick.answerWith({ status: 503 })
    sandbox.fireMany(8)
    await until('it fails again', sinkIs('open'), 15_000)
  }
  sick.answerWith({ status: 204 })
  await desk.received(2, 20_000)
  expect(kindsOf(desk)).toEqual(['bridge.sink_down', 'bridge.sink_up'])
})

it('a sink that one replica of two cannot reach is told of once, whatever the other delivers', async () => {
  const sandbox = await startSandbox()
  const well = await startWebhookReceiver()
  const sick = await startWebhookReceiver({ answer: { status: 503 } })
  const desk = await startWebhookReceiver()
  const prefix = freshPrefix()
  for (const { url } of [well, sick])
    await startApp(
      configText(`{ main: ${sourceText(sandbox.url)} }`, { sick: url, desk: desk.url }, prefix),
      quick,
    )
  await until(
    'the outage is told',
    () => {
      sandbox.fireMany(1)
      return desk.requests.length > 0
    },
    30_000,
  )
  const deliveredBefore = well.requests.length
  await until(
    'the other replica delivers',
    () => {
      sandbox.fireMany(1)
      return well.requests.length > deliveredBefore + 5
    },
    30_000,
  )
  sick.answerWith({ status: 204 })
  await until(
    'the recovery is told',
    () => {
      sandbox.fireMany(1)
      return kindsOf(desk).includes('bridge.sink_up')
    },
    60_000,
  )
  // That the two replicas have different configs is a trouble of its own.
  const ofSinks = kindsOf(desk).filter((kind) => !kind.startsWith('bridge.trouble'))
  expect(ofSinks).toEqual(['bridge.sink_down', 'bridge.sink_up'])
}, 130_000)

it('what lasts and works, but not for its people, is told in the words of the status, and when it is over', async () => {
  const sandbox = await startSandbox({ history: 3 })
  const refusing = await startWebhookReceiver({ answer: { status: 403 } })
  const desk = await startWebhookReceiver()
  const prefix = freshPrefix()
  const sources = `{ main: ${sourceText(sandbox.url).replace('every: 2s', 'every: 2s, minInterval: 1s').replace('80000', '9000')} }`
  const text = configText(sources, { sick: refusing.url, desk: desk.url }, prefix)
  const mistakes = [{ path: 'sinks.x', message: 'is not known' }]
  let loaded: LoadedConfig = { ok: false, mistakes }
  const { app, url } = await startApp(text, { ...quick, load: () => loaded })
  const other = await startApp(text.replace('initialDelay: 500ms', 'initialDelay: 600ms'), {
    ...quick,
    role: 'sender',
  })
  await app.reload()
  const told = () => desk.requests.map((request) => noticeOf(request) as { kind: string; headline: string })
  const headlines = (kind: string) => told().flatMap((each) => (each.kind === kind ? [each.headline] : []))
  const expected = [
    /^Another config is in force beside the one of this process: /,
    /^Sink sick refuses everything: the last 3 alerts were given up on \(credentials: 403\)$/,
    /^Source main has too few units: /,
    /^The last reload was refused, the config before it goes on: config: sinks.x: is not known$/,
  ]
  const isTold = (kind: string, wanted: readonly RegExp[]) => () =>
    wanted.every((each) => headlines(kind).some((headline) => each.test(headline)))
  await until('all are told', isTold('bridge.trouble', expected), 40_000)
  // In the words of the status, each once; the sink has refused some notices since.
  const { verdict } = await api<StatusView>(url, '/api/v1/status')
  const counted = (text: string) => text.replace(/last \d+/, 'last 3')
  const findings = verdict.findings.map(({ text }) => counted(text))
  const shown = headlines('bridge.trouble').filter((headline) => !headline.startsWith('Another config'))
  expect(shown).toHaveLength(3)
  expect(findings).toEqual(expect.arrayContaining(shown.map(counted)))
  await other.app.stop()
  loaded = { ok: true, config: configOf(text), warnings: [] } as never
  await app.reload()
  const over = [/^A config was taken again$/, /^All processes have the same config again$/]
  await until('their ends are told', isTold('bridge.trouble_over', over), 60_000)
}, 130_000)

/** What the API may answer for good, with what people are shown of it. */
const wrongForGood = {
  sized: [{ kind: 'shape', shape: 'perPage50' }, /perPage/],
  shaped: [{ kind: 'shape', shape: 'noMeta' }, /meta: expected object, found nothing/],
  login: [{ kind: 'html' }, /HTML|JSON/],
  down: [{ kind: 'status', status: 500 }, /500/],
} as const satisfies Record<string, readonly [InjectedFault, RegExp]>

test('operators are notified once of rows that could not be read, and of a feed that fails for good', {
  timeout: long ? 1_200_000 : 60_000,
}, async () => {
  const row = failureRow('It answers wrongly for good')
  const clock = passingClock()
  const [hook, desk] = [await startWebhookReceiver(), await startWebhookReceiver()]
  const feeds = await Promise.all(
    Object.entries(wrongForGood).map(async ([name, [fault, example]]) => {
      const sandbox = await startSandbox({ history: 3 })
      return { ...{ name, fault, example, sandbox }, ids: sandbox.rows.map(({ id }) => `${name}.${id}`) }
    }),
  )
  const sources = feeds.map(({ name, sandbox }) => `${name}: ${sourceText(sandbox.url)}`).join(', ')
  const text = configText(`{ ${sources} }`, { sick: hook.url, desk: desk.url })
  const { app } = buildApp(text, { clock, ...quick })
  feeds[0]?.sandbox.insert({ id: 'seven' }, 0)
  feeds[0]?.sandbox.insert({ id: 'eight' }, 0)
  const url = await app.start()
  await desk.received(1, 15_000)
  expect(noticeOf(desk.requests[0])).toMatchObject({
    kind: 'bridge.rows_set_aside',
    headline: expect.stringContaining('2 rows of source sized'),
  })
  const expected = () => feeds.flatMap(({ ids }) => ids)
  const alerts = () =>
    hook.requests
      .map(({ headers }) => String(headers['webhook-id']))
      .filter((id) => !id.startsWith('alert-bridge.'))
  const allArrive = () => until('all alerts arrive', () => alerts().length >= expected().length, 15_000)
  await allArrive()
  for (const { sandbox, fault, name, ids } of feeds) {
    sandbox.fault({ ...fault, times: 0 })
    ids.push(...sandbox.fireMany(3).map(({ id }) => `${name}.${id}`))
  }
  interface Source {
    readonly name: string
    readonly state: string
    readonly reason: string | null
  }
  const states = async () => (await api<{ sources: Source[] }>(url, '/api/v1/status')).sources
  const allAre = (state: string) => async () => (await states()).every((source) => source.state === state)
  await until('a poll of each fails', allAre('retrying'))
  for (const { name, reason } of await states())
    expect(reason).toMatch(feeds.find((feed) => feed.name === name)?.example ?? '')
  expect(await readiness(url)).toBe('ok')
  await letPass(clock, 15 * 60_000)
  await row.kept('the source is shown as `failing` with an example', async () => {
    // By the next poll, which comes within a minute.
    await until('all are', allAre('failing'), long ? 70_000 : 10_000)
    for (const { name, reason } of await states())
      expect(reason).toMatch(feeds.find((feed) => feed.name === name)?.example ?? '')
    expect(await (await fetch(url)).text()).toContain('Source shaped fails at every poll')
  })
  await row.kept('`/readyz` turns red', async () =>
    expect(await readiness(url)).toContain('no poll has gone well for 15m'),
  )
  await row.kept('operators are notified', async () => {
    await desk.received(1 + feeds.length, 15_000)
    const notices = desk.requests.slice(1).map((request) => noticeOf(request) as Notice)
    expect(notices.map(({ kind }) => kind)).toEqual(feeds.map(() => 'bridge.source_failing'))
    for (const { name, example } of feeds) {
      const own = notices.find(({ headline }) => headline.includes(name))
      expect(own?.why).toMatch(/no poll has gone well for 15m/)
      expect(own?.why).toMatch(example)
    }
  })
  expect(alerts()).toHaveLength(3 * feeds.length)

  for (const { sandbox } of feeds) sandbox.clearFaults()
  const wellMs = clock.monotonicMs()
  await letPass(clock, 60_000)
  await allArrive()
  await row.heals('60 s after it answers well', clock.monotonicMs() - wellMs - slackMs)
  await row.kept('everything stays in the feed', () => expect(new Set(alerts())).toEqual(new Set(expected())))
  await row.twice('nothing', () => expect(alerts()).toHaveLength(expected().length))
  await desk.received(1 + 2 * feeds.length, 20_000)
  for (const request of desk.requests.slice(1 + feeds.length))
    expect(noticeOf(request)).toMatchObject({ kind: 'bridge.source_resumed' })
  expect(await readiness(url)).toBe('ok')
})

interface Notice {
  readonly kind: string
  readonly headline: string
  readonly why: string
}

function sourceText(feed: string): string {
  return `{ baseUrl: "${feed}", token: sandbox-token, startFrom: beginning, budget: { unitsPerDay: 80000 }, poll: { every: 2s } }`
}

function configText(sources: string, urls: { sick: string; desk: string }, prefix = freshPrefix()): string {
  return `
    redis: { url: "${redis.url}", prefix: ${prefix} }
    http: { listen: "127.0.0.1:0" }
    sources: ${sources}
    sinks:
      sick: { type: webhook, url: "${urls.sick}", allowPrivateNetworks: true, retry: { initialDelay: 500ms } }
      desk: { type: webhook, url: "${urls.desk}", allowPrivateNetworks: true }
    routes: [{ sinks: [sick] }]
    operators: [desk, sick]
  `
}

async function sinkOf(url: string, name: string): Promise<{ state: string }> {
  const { sinks } = await api<{ sinks: { name: string; state: string }[] }>(url, '/api/v1/status')
  return sinks.find((sink) => sink.name === name) ?? { state: 'none' }
}

function kindsOf({ requests }: { readonly requests: readonly { body: string }[] }): string[] {
  return requests.map((request) => (noticeOf(request) as { kind: string }).kind)
}

function noticeOf(request: { body: string } | undefined): unknown {
  return (JSON.parse(request?.body ?? '{}') as { data: { delivery: unknown } }).data.delivery
}

function idsOf(requests: readonly { headers: Record<string, unknown> }[]): string[] {
  return [...new Set(requests.map(({ headers }) => String(headers['webhook-id'])))]
}
