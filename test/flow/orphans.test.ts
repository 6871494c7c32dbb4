import { describe, expect, it } from 'vitest'
import type { StatusView } from '../../src/admin/status-view.ts'
import { orphansCommand } from '../../src/cli/orphans.ts'
import { parseConfig } from '../../src/config/load.ts'
import { run } from '../cli/in-process.ts'
import { startApp, until } from '../support/app.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { adminToken, api } from '../support/scene.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

/** A sink or a source that leaves the config takes nothing with it in silence. */

const redis = useRedis()

interface Parts {
  readonly prefix: string
  readonly sources: Readonly<Record<string, string>>
  readonly sinks: Readonly<Record<string, WebhookReceiver>>
  readonly to?: readonly string[]
  readonly operators?: string
  readonly startFrom?: string
}

function configText({ prefix, sources, sinks, to, operators, startFrom = 'now' }: Parts): string {
  const feeds = Object.entries(sources).map(
    ([name, url]) =>
      `  ${name}: { baseUrl: "${url}", token: sandbox-token, startFrom: ${startFrom}, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: 1000000 } }`,
  )
  const hooks = Object.entries(sinks).map(
    ([name, { url }]) => `  ${name}: { type: webhook, url: "${url}", allowPrivateNetworks: true }`,
  )
  return `
redis: { url: "${redis.url}", prefix: ${prefix} }
http: { listen: "127.0.0.1:0", adminToken: ${adminToken} }
sources:
${feeds.join('\n')}
sinks:
${hooks.join('\n')}
routes: [{ sinks: [${(to ?? Object.keys(sinks)).join(', ')}] }]
${operators === undefined ? '' : `operators: [${operators}]`}
`
}

const statusOf = (url: string) => api<StatusView>(url, '/api/v1/status')
const idsAt = (hook: WebhookReceiver) =>
  hook.requests.map(({ headers }) => String(headers['webhook-id'])).sort()
const headlines = (hook: WebhookReceiver) =>
  hook.requests.map(
    ({ body }) => (JSON.parse(body) as { data: { delivery: { headline: string } } }).data.delivery.headline,
  )
const metricsOf = async (url: string) => (await fetch(`${url}/metrics`)).text()

async function parts() {
  const sandbox = await startSandbox({ requestsPerMinute: 1_000_000 })
  const [hook, ops] = [await startWebhookReceiver(), await startWebhookReceiver()]
  return { prefix: freshPrefix(), sandbox, hook, ops }
}

/** `orphans …` against the bridge at this address. */
async function orphans(url: string, ...args: string[]) {
  const { out, thrown } = await run(orphansCommand(), ...args, '--url', url)
  if (thrown !== undefined) throw thrown
  return out
}

describe('a sink that is renamed by a reload', () => {
  it('is named with what is left of it, everywhere, and its alerts can be moved', async () => {
    const { prefix, sandbox, hook, ops } = await parts()
    process.env['ADMIN_TOKEN'] = adminToken
    const common = { prefix, sources: { main: sandbox.url }, startFrom: 'beginning', operators: 'ops' }
    let text = configText({ ...common, sinks: { old: hook, ops }, to: ['old'] })
    const load = () => parseConfig(text, { env: {}, folder: '/' })
    const { app, url, lines } = await startApp(text, { load })
    await fetch(`${url}/api/v1/sinks/old/pause`, {
      method: 'POST',
      headers: { authorization: `Bearer ${adminToken}` },
    })
    const rows = sandbox.fireMany(5)
    await until('they wait', async () => (await statusOf(url)).sinks[0]?.waiting === 5)
    expect((await statusOf(url)).orphans).toEqual([])

    text = configText({ ...common, sinks: { new: hook, ops }, to: ['new'] })
    expect(await app.reload()).toEqual({ ok: true })
    await ops.received(1)
    expect(headlines(ops)).toEqual(['Sink old is not in the config, and 5 alerts of it are left'])
    const left = { kind: 'sink', name: 'old', waiting: 5, sending: 0, delayed: 0, dead: 0 }
    expect(await statusOf(url)).toMatchObject({ orphans: [left], ready: { ok: true } })
    expect(lines.filter(({ msg }) => /^sink old is not in the config/.test(String(msg)))).toHaveLength(1)
    const ready = await fetch(`${url}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([
      200,
      expect.stringContaining('Sink old is not in the config'),
    ])
    expect(await (await fetch(url)).text()).toContain('Sink old is not in the config, and 5 alerts')
    const metrics = (await metricsOf(url)).split('\n').filter((line) => line.includes('sink="old"'))
    expect(metrics).toEqual(['alert_bridge_orphaned_jobs{sink="old"} 5'])

    expect(await orphans(url, 'list')).toMatch(/sink +old +5 waiting/)
    expect(await orphans(url, 'list', 'old')).toContain(`main.${rows[0]?.id}`)
    await expect(orphans(url, 'move', 'old', '--to', 'old')).rejects.toThrow('There is no sink old')
    await expect(orphans(url, 'drop', 'new')).rejects.toThrow('There is no orphan new')
    expect(await orphans(url, 'move', 'old', '--to', 'new')).toContain('5 moved')
    await hook.received(5)
    expect(idsAt(hook)).toEqual(rows.map(({ id }) => `main.${id}`).sort())
    expect(await orphans(url, 'list')).toContain('none')
    expect(await metricsOf(url)).not.toContain('sink="old"')
    expect(ops.requests).toHaveLength(1)
  }, 40_000)
})

describe('a source that is renamed', () => {
  it('goes on where it was: nothing again, nothing passed over, the units of the day count on', async () => {
    const { prefix, sandbox, hook, ops } = await parts()
    const common = { prefix, sinks: { hook, ops }, to: ['hook'], operators: 'ops' }
    const before = await startApp(configText({ ...common, sources: { main: sandbox.url } }))
    await until('the first poll', async () => (await statusOf(before.url)).sources[0]?.lastPollAt !== null)
    const seen = sandbox.fireMany(2)
    await hook.received(2)
    const { budget } = (await statusOf(before.url)).sources[0] ?? {}
    await before.app.stop()
    const meanwhile = sandbox.fireMany(3)
    const after = await startApp(configText({ ...common, sources: { desk: sandbox.url } }))
    await hook.received(5)
    const later = sandbox.fire()
    await hook.received(6)
    const expected = [
      ...seen.map(({ id }) => `main.${id}`),
      ...[...meanwhile, later].map(({ id }) => `desk.${id}`),
    ]
    expect(idsAt(hook)).toEqual(expected.sort())
    const status = await statusOf(after.url)
    expect(status.sources[0]?.budget?.unitsUsed).toBeGreaterThan(budget?.unitsUsed ?? Number.NaN)
    expect(status.orphans).toEqual([])
    await ops.received(1)
    expect(headlines(ops)).toEqual(['Source desk goes on with the memory of source main'])
  }, 40_000)

  it('and cannot be known again is named, and its memory can be carried over by hand', async () => {
    const { prefix, sandbox, hook, ops } = await parts()
    process.env['ADMIN_TOKEN'] = adminToken
    const common = { prefix, sinks: { hook, ops }, to: ['hook'], operators: 'ops' }
    const before = await startApp(
      configText({ ...common, sources: { main: sandbox.url }, startFrom: 'beginning' }),
    )
    await until('the first poll', async () => (await statusOf(before.url)).sources[0]?.lastPollAt !== null)
    // Long before the new source is started, which passes over what was fired before it.
    const hourAgo = { firedAt: new Date(Date.now() - 3_600_000).toISOString() }
    const seen = sandbox.fireMany(2, hourAgo)
    await hook.received(2)
    await before.app.stop()
    const meanwhile = sandbox.fireMany(3, hourAgo)
    // Another address, so that nothing says that it is the same account.
    const other = sandbox.url.replace('127.0.0.1', 'localhost')
    const { url, lines } = await startApp(configText({ ...common, sources: { desk: other } }))
    await ops.received(1)
    expect(headlines(ops)).toEqual(['Source main is not in the config any more'])
    await until('the first poll', async () => (await statusOf(url)).sources[0]?.lastPollAt !== null)
    const later = sandbox.fire()
    await hook.received(3)
    expect(await orphans(url, 'list')).toMatch(/source +main +2 rows remembered/)
    await expect(orphans(url, 'move', 'main', '--to', 'hook')).rejects.toThrow('There is no source hook')
    expect(await orphans(url, 'move', 'main', '--to', 'desk')).toContain('1 moved')
    await hook.received(6)
    const expected = [
      ...seen.map(({ id }) => `main.${id}`),
      ...[...meanwhile, later].map(({ id }) => `desk.${id}`),
    ]
    expect(idsAt(hook)).toEqual(expected.sort())
    expect((await statusOf(url)).orphans).toEqual([])
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  }, 40_000)
})
