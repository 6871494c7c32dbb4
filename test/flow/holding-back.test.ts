import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { AlertStory, SilenceView } from '../../src/admin/views/delivery-view.ts'
import { localTimes } from '../../src/cli/output/local-times.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { startApp } from '../support/app.ts'
import { cli } from '../support/cli.ts'
import { testFolder, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

/** What routes and silences hold back, in the whole app: nothing is lost, and the story tells why. */

const redis = useRedis()
const token = 'admin-token'

interface Parts {
  readonly feed: string
  readonly hooks: Record<string, WebhookReceiver>
  readonly routes: string
  readonly prefix?: string
}

function configText({ feed, hooks, routes, prefix = freshPrefix() }: Parts): string {
  const sinks = Object.entries(hooks).map(
    ([name, { url }]) => `  ${name}: { type: webhook, url: "${url}", allowPrivateNetworks: true }`,
  )
  return `
redis: { url: "${redis.url}", prefix: ${prefix} }
http: { listen: "127.0.0.1:0", adminToken: ${token} }
sources: { main: { baseUrl: "${feed}", token: sandbox-token, startFrom: beginning, poll: { every: 250ms, historyPages: 0 }, budget: { unitsPerDay: 100000 } } }
sinks:
${sinks.join('\n')}
routes:
${routes}
`
}

function idsAt(hook: WebhookReceiver): string[] {
  return hook.requests.map(({ headers }) => String(headers['webhook-id']))
}

async function storyOf(url: string, id: number): Promise<AlertStory | undefined> {
  const response = await fetch(`${url}/api/v1/deliveries/main/${id}`)
  return response.ok ? ((await response.json()) as { data: AlertStory }).data : undefined
}

async function heldBack(url: string, id: number): Promise<AlertStory> {
  let story: AlertStory | undefined
  await until('the alert is held', async () => {
    story = await storyOf(url, id)
    return (story?.held.length ?? 0) > 0
  })
  if (story === undefined) throw new Error('no story')
  return story
}

async function atBridge(url: string, ...args: string[]): Promise<string> {
  const { code, out, err } = await cli([...args, '--url', url], { ADMIN_TOKEN: token })
  if (code !== 0) throw new Error(err)
  return out
}

describe('a silence', () => {
  it('holds back until it is ended; the story tells, and a replay sends on purpose', {
    timeout: 40_000,
  }, async () => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const text = configText({
      feed: sandbox.url,
      hooks: { hook },
      routes: '  - { name: all, sinks: [hook] }',
    })
    const { app, url } = await startApp(text)
    const added = await atBridge(
      url,
      'silence',
      'add',
      '--match',
      'symbol=فولاد',
      '--for',
      '1h',
      '--comment',
      'audit',
      '--json',
    )
    const silence = JSON.parse(added) as SilenceView
    expect(silence).toMatchObject({ match: { symbol: ['فولاد'] }, comment: 'audit' })
    expect(await atBridge(url, 'silence', 'list')).toContain(silence.id)
    // As people are shown it: on the clock of the bridge's zone.
    const ends = String(localTimes(silence.endsAt, 'Asia/Tehran'))
    expect(ends).toContain('+03:30')
    const folder = testFolder()
    const row = join(folder, 'alert.json')
    writeFileSync(row, JSON.stringify(sandbox.makeRow({ symbol: 'فولاد' })))
    expect(await atBridge(url, 'explain', row, '--config', writeConfig(text, folder))).toContain(
      `  held routes[0] (all) → hook: silenced by ${silence.id} until ${ends} (audit)`,
    )

    // The intake's view of the silences may be a moment old.
    let held: number | undefined
    await until('one is held', async () => {
      const { id } = sandbox.fire({ symbol: 'فولاد' })
      await until('it is decided', async () => (await storyOf(url, id)) !== undefined)
      const story = await storyOf(url, id)
      held = story?.held.length ? id : undefined
      return held !== undefined
    })
    const other = sandbox.fire({ symbol: 'خودرو' })
    await until('the other one arrives', () => idsAt(hook).includes(`main.${other.id}`))
    const story = await heldBack(url, held ?? 0)
    expect(story.deliveries).toEqual([])
    expect(story.held).toMatchObject([
      { route: 'all', sinks: ['hook'], reason: 'silenced', silence: silence.id },
    ])
    expect(await atBridge(url, 'deliveries', `main.${held}`)).toContain(
      `hook: held back from route all: silenced by ${silence.id} until ${ends} (audit)`,
    )
    const rows = JSON.parse(await atBridge(url, 'deliveries', '--state', 'held', '--json'))
    expect(rows).toContainEqual(
      expect.objectContaining({
        id: held,
        withheld: {
          ...{ reason: 'silenced', route: 'all', silence: silence.id },
          ...{ until: silence.endsAt, comment: 'audit' },
        },
      }),
    )
    const listed = await atBridge(url, 'deliveries', '--state', 'held', '--sink', 'hook')
    expect(listed).toMatch(
      new RegExp(`main\\.${held} .* hook +held +0 +held back from route all: silenced by ${silence.id}`),
    )
    const { values } = await app.metrics.alertsHeld.get()
    expect(values.find(({ labels }) => labels.reason === 'silenced')?.value).toBeGreaterThan(0)
    expect(values.find(({ labels }) => labels.reason === 'muted')?.value).toBe(0)

    expect(await atBridge(url, 'replay', `main.${held}`, '--sink', 'hook')).toContain('1 queued')
    await until('the held one arrives', () => idsAt(hook).includes(`main.${held}`))
    const statesOf = async (...options: string[]) =>
      (JSON.parse(await atBridge(url, 'deliveries', ...options, '--json')) as { id: number; state: string }[])
        .filter(({ id }) => id === held)
        .map(({ state }) => state)
    await until(
      'it is known to be delivered',
      async () => (await statesOf('--state', 'delivered')).length === 1,
    )
    expect([await statesOf(), await statesOf('--state', 'held')]).toEqual([['delivered'], []])
    expect((await storyOf(url, held ?? 0))?.held).toMatchObject([{ sinks: ['hook'], reason: 'silenced' }])

    // Its story and the list say that the silence is over, and not that it lasts for an hour yet.
    const again = sandbox.fire({ symbol: 'فولاد' })
    await until('another one is held', async () => (await storyOf(url, again.id))?.held.length === 1)
    await atBridge(url, 'silence', 'expire', silence.id)
    const reason = `held back from route all: silenced by ${silence.id}, which was ended early (audit)`
    const over = { silence: silence.id, until: null }
    expect((await storyOf(url, again.id))?.held).toMatchObject([{ ...over, text: reason }])
    expect(JSON.parse(await atBridge(url, 'deliveries', '--state', 'held', '--json'))).toMatchObject([
      { id: again.id, reason, withheld: over },
    ])
    await until('the next one arrives', async () => {
      const { id } = sandbox.fire({ symbol: 'فولاد' })
      await until('it is decided', async () => (await storyOf(url, id)) !== undefined)
      return ((await storyOf(url, id))?.deliveries.length ?? 0) > 0
    })
    await expect(atBridge(url, 'silence', 'expire', silence.id)).rejects.toThrow(/no silence/)
  })
})

describe('a mute', () => {
  it('holds one route back while another one sends', { timeout: 30_000 }, async () => {
    const sandbox = await startSandbox()
    const [desk, hook] = [await startWebhookReceiver(), await startWebhookReceiver()]
    const routes =
      '  - { name: night, sinks: [desk, hook], mute: [{ timeZone: UTC }] }\n  - { sinks: [hook] }'
    const { app, url } = await startApp(configText({ feed: sandbox.url, hooks: { desk, hook }, routes }))
    const { id } = sandbox.fire()
    await hook.received(1)
    const story = await heldBack(url, id)
    expect(story.held).toMatchObject([{ route: 'night', sinks: ['desk'], reason: 'muted' }])
    expect(story.held[0]?.text).toMatch(/^held back by route night: muted until \d{4}-/)
    expect(story.deliveries.map(({ sink, routes }) => [sink, routes])).toEqual([['hook', ['routes[1]']]])
    expect(desk.requests).toHaveLength(0)
    const text = await atBridge(url, 'deliveries', `main.${id}`)
    expect(text).toContain('desk: held back by route night: muted until')
    expect(text).toContain('hook: delivered, by route routes[1]')
    const { values } = await app.metrics.alertsHeld.get()
    expect(values.find(({ labels }) => labels.reason === 'muted')?.value).toBe(1)
  })
})

describe('a throttle', () => {
  it('lets one of a symbol and rule pass, and the same one after a crash', { timeout: 40_000 }, async () => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const prefix = freshPrefix()
    const parts = { feed: sandbox.url, hooks: { hook }, prefix }
    const text = configText({ ...parts, routes: '  - { name: calm, sinks: [hook], throttle: { per: 1h } }' })
    const alike = sandbox.fireMany(5, { symbol: 'فولاد', ruleIds: ['1'] })
    const other = sandbox.fire({ symbol: 'خودرو', ruleIds: ['1'] })
    const expected = [`main.${alike[0]?.id}`, `main.${other.id}`].sort()
    const first = await startApp(text)
    await hook.received(2)
    const story = await heldBack(first.url, alike[4]?.id ?? 0)
    expect(story.held).toMatchObject([{ route: 'calm', reason: 'throttled', sinks: ['hook'] }])
    await first.app.stop()
    expect(idsAt(hook).sort()).toEqual(expected)

    // As after a crash before the page was marked: the jobs are there, the memory of having seen them is not.
    const { seen, uncovered, stretch, meta } = sourceKeys(prefix, 'main')
    await redis.client().del(seen, uncovered, stretch, meta)
    const second = await startApp(text)
    await until('the page was taken again', async () => {
      const { values } = await second.app.metrics.alertsSeen.get()
      return values[0]?.value === 6
    })
    const { values } = await second.app.metrics.alertsHeld.get()
    expect(values.find(({ labels }) => labels.reason === 'throttled')?.value).toBe(4)
    const sent = `${second.url}/api/v1/deliveries?state=delivered`
    const waiting = (await (await fetch(sent)).json()) as { data: unknown[] }
    expect(waiting.data).toHaveLength(2)
    expect(idsAt(hook).sort()).toEqual(expected)
  })

  it('tells how many were held back with the next that passes', { timeout: 30_000 }, async () => {
    const sandbox = await startSandbox()
    const hook = await startWebhookReceiver()
    const routes = '  - { sinks: [hook], throttle: { per: 1s, by: [symbol] } }'
    const { url } = await startApp(configText({ feed: sandbox.url, hooks: { hook }, routes }))
    const alike = sandbox.fireMany(4, { symbol: 'فولاد' })
    await heldBack(url, alike[3]?.id ?? 0)
    let fired = alike.length
    await until('another one passes', async () => {
      const { id } = sandbox.fire({ symbol: 'فولاد' })
      fired += 1
      await until('it is decided', async () => (await storyOf(url, id)) !== undefined)
      return hook.requests.length > 1 || ((await storyOf(url, id))?.deliveries.length ?? 0) > 0
    })
    await hook.received(2)
    const [before, after] = hook.requests.map(
      ({ body }) => JSON.parse(body) as { data: { heldBack?: number } },
    )
    expect(before?.data).not.toHaveProperty('heldBack')
    expect(after?.data.heldBack).toBe(fired - 2)
  })
})

describe('a route that asks for the rule', () => {
  it('looks it up within the budget, and delivers what it cannot look up', { timeout: 30_000 }, async () => {
    const sandbox = await startSandbox()
    const [steel, rest] = [await startWebhookReceiver(), await startWebhookReceiver()]
    const rule = sandbox.rules[0]
    if (rule === undefined) throw new Error('the sandbox has no rules')
    const routes = [
      `  - { match: { rule: { name: "${rule.name}" } }, sinks: [steel] }`,
      `  - { match: { rule: { name: { not: "${rule.name}" } } }, sinks: [rest], whenRuleUnknown: skip }`,
    ].join('\n')
    const { app, url } = await startApp(configText({ feed: sandbox.url, hooks: { steel, rest }, routes }))
    const other = sandbox.rules.find(({ name }) => name !== rule.name)
    const mine = sandbox.fire({ ruleIds: [String(rule.id)] })
    const theirs = sandbox.fire({ ruleIds: [String(other?.id)] })
    const unknown = sandbox.fire({ ruleIds: ['987654'] })
    await steel.received(2)
    await rest.received(1)
    expect(idsAt(steel).sort()).toEqual([`main.${mine.id}`, `main.${unknown.id}`].sort())
    expect(idsAt(rest)).toEqual([`main.${theirs.id}`])
    const { values } = await app.metrics.budgetUnits.get()
    const spent = values.find(({ labels }) => labels.purpose === 'rules')?.value
    expect(spent).toBe(sandbox.requests.filter(({ path }) => path === '/api/v1/alerts').length)
    expect(spent).toBeLessThanOrEqual(2)
    const known = (await (await fetch(`${url}/api/v1/rules`)).json()) as { data: { id: number }[] }
    expect(known.data.map(({ id }) => id)).toContain(rule.id)
  })
})

it('a route for a kind that no alert ever has is told in the status and logged once', async () => {
  const sandbox = await startSandbox()
  const hook = await startWebhookReceiver()
  const routes = '  - { match: { kind: prise }, sinks: [hook] }\n  - { sinks: [hook] }'
  const { url, lines } = await startApp(configText({ feed: sandbox.url, hooks: { hook }, routes }))
  sandbox.fireMany(12, { kind: 'price' })
  const sentence = 'routes[0] asks for kind prise, which no alert has had so far (did you mean price?)'
  await until('the status says so', async () => {
    const answer = await fetch(`${url}/api/v1/status`)
    const { sources } = (await answer.json()) as { sources: { notes: string[] }[] }
    return sources[0]?.notes.includes(sentence) ?? false
  })
  await until('it is logged', () => lines.some(({ msg }) => msg === sentence))
  expect(lines.filter(({ msg }) => msg === sentence)).toHaveLength(1)
})

it('a dry run counts each recipient of what was held back, as the order itself sends it', {
  timeout: 30_000,
}, async () => {
  const sandbox = await startSandbox()
  const [hook, smtp] = [await startWebhookReceiver(), await startSmtpReceiver()]
  const mail = `  mail: { type: email, smtp: "${smtp.url}", from: a@example.com, to: [b@example.com, c@example.com, d@example.com], allowPrivateNetworks: true }`
  const routes = '  - { match: { kind: none }, sinks: [mail, hook] }'
  const text = configText({ feed: sandbox.url, hooks: { hook }, routes })
  const { url } = await startApp(text.replace('\nroutes:', `\n${mail}\nroutes:`))
  const rows = sandbox.fireMany(2)
  for (const { id } of rows) await heldBack(url, id)
  const [older, newer] = rows.map(({ id }) => `main.${id}`)
  const order = ['replay', older ?? '', newer ?? '', '--sink', 'mail']
  expect(await atBridge(url, ...order, '--dry-run')).toBe(
    `6 would be sent again, such as ${newer}, ${older}; nothing was changed\n`,
  )
  expect((await storyOf(url, rows[0]?.id ?? 0))?.deliveries).toEqual([])
  expect(await atBridge(url, ...order)).toBe('6 queued\n')
})
