import { describe, expect, it } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { orphansCommand } from '../../src/cli/orphans.ts'
import { whyCommand } from '../../src/cli/why.ts'
import { parseConfig } from '../../src/config/load.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { startApp } from '../support/app.ts'
import { adminToken, api } from '../support/bridge.ts'
import { run } from '../support/cli.ts'
import { failureRow } from '../support/failure-row.ts'
import { sentAgain } from '../support/oracle.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
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
  readonly poll?: string
}

function configText({ prefix, sources, sinks, to, operators, startFrom = 'now', ...more }: Parts): string {
  const { poll = 'every: 250ms, historyPages: 0, ' } = more
  const feeds = Object.entries(sources).map(
    ([name, url]) =>
      `  ${name}: { baseUrl: "${url}", token: sandbox-token, startFrom: ${startFrom}, poll: { ${poll}minInterval: 250ms }, budget: { unitsPerDay: 1000000 } }`,
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
/** How many alerts the plan was learned from. */
const planOf = async (url: string) => (await statusOf(url)).sources[0]?.plan?.learnedFrom ?? Number.NaN
const metricsOf = async (url: string) => (await fetch(`${url}/metrics`)).text()

async function parts(history = 0) {
  const sandbox = await startSandbox({ requestsPerMinute: 1_000_000, history })
  const [hook, ops] = [await startWebhookReceiver(), await startWebhookReceiver()]
  return { prefix: freshPrefix(), sandbox, hook, ops }
}

async function post(url: string, path: string): Promise<void> {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}` },
  })
  expect(answer.status).toBe(200)
}

/** `orphans …` against the bridge at this address. */
async function orphans(url: string, ...args: string[]) {
  const { out, thrown } = await run(orphansCommand(), ...args, '--url', url)
  if (thrown !== undefined) throw thrown
  return out
}

describe('a sink that is renamed by a reload', () => {
  it('is named with what is left of it, everywhere, once no replica has it; its alerts can be moved or dropped, or wait for its name', async () => {
    const row = failureRow('A sink leaves it, or gets another name')
    const { prefix, sandbox, hook, ops } = await parts()
    const [hookOfBack, hookOfGone] = [await startWebhookReceiver(), await startWebhookReceiver()]
    process.env['ADMIN_TOKEN'] = adminToken
    const common = { prefix, sources: { main: sandbox.url }, startFrom: 'beginning', operators: 'ops' }
    const names = ['old', 'back', 'gone'] as const
    let text = configText({
      ...common,
      sinks: { old: hook, back: hookOfBack, gone: hookOfGone, ops },
      to: names,
    })
    const load = () => parseConfig(text, { env: {}, folder: '/' })
    const { app, url, lines } = await startApp(text, { load })
    const replica = await startApp(text, { role: 'poller' })
    const operate = (at: string, what: 'pause' | 'resume') =>
      Promise.all(names.map((name) => post(at, `/api/v1/sinks/${name}/${what}`)))
    await operate(url, 'pause')
    const rows = sandbox.fireMany(5)
    const ids = rows.map(({ id }) => `main.${id}`).sort()
    await until('they wait', async () =>
      (await statusOf(url)).sinks.slice(0, 3).every(({ waiting }) => waiting === 5),
    )

    text = configText({ ...common, sinks: { new: hook, ops }, to: ['new'] })
    expect(await app.reload()).toEqual({ ok: true })
    await operate(replica.url, 'resume')
    const besideReplica = await statusOf(url)
    const storyBesideReplica = await (await fetch(`${url}/api/v1/deliveries/main/${rows[0]?.id}`)).text()
    await replica.app.stop()
    expect(await app.reload()).toEqual({ ok: true })
    await ops.received(3)
    const left = names.map((name) => ({ kind: 'sink', name, waiting: 5, sending: 0, delayed: 0, dead: 0 }))
    await row.kept('in its queue', async () =>
      expect((await statusOf(url)).orphans).toEqual(expect.arrayContaining(left)),
    )
    await row.kept(
      'log, status, page, `/readyz` (which stays green) and `operators` name it with the counts',
      async () => {
        const sentence = (name: string) => `ink ${name} is not in the config, and 5 alerts`
        const ready = await fetch(`${url}/readyz`)
        expect(ready.status).toBe(200)
        const told = {
          readyz: await ready.text(),
          page: await (await fetch(url)).text(),
          status: (await orphans(url, 'list')).replaceAll(/ +/g, ' '),
        }
        for (const name of names) {
          expect(lines.filter(({ msg }) => String(msg).startsWith(`s${sentence(name)}`))).toHaveLength(1)
          expect(headlines(ops).filter((each) => each === `S${sentence(name)} of it are left`)).toHaveLength(
            1,
          )
          expect(told.readyz).toContain(`S${sentence(name)}`)
          expect(told.page).toContain(`S${sentence(name)}`)
          expect(told.status).toContain(`sink ${name} 5 waiting`)
        }
      },
    )
    await row.kept('once no replica has it in its config', () => {
      expect(besideReplica.orphans).toEqual([])
      expect(storyBesideReplica).toContain('"sink":"old"')
      expect(storyBesideReplica).not.toContain('orphaned')
    })
    const metrics = (await metricsOf(url)).split('\n').filter((line) => line.includes('sink="old"'))
    expect(metrics).toEqual(['alert_bridge_orphaned_jobs{sink="old"} 5'])

    expect(await orphans(url, 'list', 'old')).toContain(`main.${rows[0]?.id}`)
    const page = await (await fetch(`${url}/alerts/main/${rows[0]?.id}`)).text()
    expect(page).toContain('this sink is not in the config')
    expect(await run(whyCommand(), `main.${rows[0]?.id}`, '--url', url)).toMatchObject({
      out: expect.stringMatching(
        /old: \w+.*; the sink is not in the config: orphans move old --to SINK, or orphans drop old/,
      ),
    })
    await expect(orphans(url, 'move', 'old', '--to', 'old')).rejects.toThrow('There is no sink old')
    await expect(orphans(url, 'drop', 'new')).rejects.toThrow('There is no orphan new')
    await row.heals('else `orphans move NAME --to SINK`', async () => {
      expect(await orphans(url, 'move', 'old', '--to', 'new')).toContain('5 moved')
      await hook.received(5)
    })
    expect(await orphans(url, 'move', 'gone', '--to', 'new', '--dry-run')).toContain(
      '0 would be moved; nothing was changed; 5 had arrived already',
    )
    expect(await orphans(url, 'drop', 'gone', '--dry-run')).toMatch(
      /^5 would be dropped, such as main\.\d+, main\.\d+, main\.\d+; nothing was changed/,
    )
    await row.heals('or `orphans drop NAME`', async () => {
      expect(await orphans(url, 'drop', 'gone')).toContain('5 dropped')
      expect(await orphans(url, 'list')).not.toContain('gone')
    })
    text = configText({ ...common, sinks: { new: hook, back: hookOfBack, ops }, to: ['new'] })
    await row.heals('at once when the name comes back', async () => {
      const startMs = performance.now()
      expect(await app.reload()).toEqual({ ok: true })
      await hookOfBack.received(5)
      // Nothing is waited for: neither a look of the watch nor that of a worker is as soon as this.
      expect(performance.now() - startMs).toBeLessThan(4_000)
    })
    expect(await orphans(url, 'list')).toContain('none')
    expect(await metricsOf(url)).not.toContain('sink="old"')
    await row.kept('everything', () => expect([hook, hookOfBack].map(idsAt)).toEqual([ids, ids]))
    await row.twice('nothing', () => expect([hook, hookOfBack, ops].map(sentAgain)).toEqual([[], [], []]))
    expect([hookOfGone.requests.length, ops.requests.length]).toEqual([0, 3])
  }, 40_000)
})

describe('a source that is renamed', () => {
  it('goes on where it was: nothing again, nothing passed over, the units of the day count on', async () => {
    const row = failureRow('A source gets another name, and keeps')
    // The plan of a source without a memory is learned from pages of the feed's history.
    const { prefix, sandbox, hook, ops } = await parts(300)
    const common = { prefix, sinks: { hook, ops }, to: ['hook'], operators: 'ops', poll: 'historyPages: 2, ' }
    const olderPages = () => sandbox.requests.filter(({ page }) => (page ?? 1) > 1).length
    const before = await startApp(configText({ ...common, sources: { main: sandbox.url } }))
    await until('the first poll', async () => (await statusOf(before.url)).sources[0]?.lastPollAt !== null)
    const seen = sandbox.fireMany(2)
    await hook.received(2)
    const after = await startApp(configText({ ...common, sources: { desk: sandbox.url } }))
    const waits = 'the same account is still polled as source main'
    await until(
      'it waits',
      async () => (await statusOf(after.url)).sources[0]?.reason?.includes(waits) === true,
    )
    const whileItWaits = (await statusOf(after.url)).sources[0]
    // Polls interrupt it: the plan may know one page before the other is read.
    const pages = 2
    await until('history is read', () => olderPages() === pages)
    await until('history is learned from', async () => (await planOf(before.url)) > 0)
    const learnedFrom = await planOf(before.url)
    const { budget } = (await statusOf(before.url)).sources[0] ?? {}
    const seenBefore = await redis.client().hlen(sourceKeys(prefix, 'main').seen)
    await before.app.stop()
    const meanwhile = sandbox.fireMany(3)
    await hook.received(5)
    const later = sandbox.fire()
    await hook.received(6)
    const expected = [
      ...seen.map(({ id }) => `main.${id}`),
      ...[...meanwhile, later].map(({ id }) => `desk.${id}`),
    ]
    const status = await statusOf(after.url)
    const [source] = status.sources
    await row.kept('everything', () => expect(idsAt(hook)).toHaveLength(6))
    await row.kept('by address and token it is known again', async () => {
      expect(status.orphans).toEqual([])
      await ops.received(1)
      expect(headlines(ops)).toEqual(['Source desk goes on with the data of source main'])
    })
    await row.kept('goes on with the units, rows and plan of the old name', async () => {
      expect(source?.budget?.unitsUsed).toBeGreaterThan(budget?.unitsUsed ?? Number.NaN)
      expect(await redis.client().hlen(sourceKeys(prefix, 'desk').seen)).toBe(seenBefore + 4)
      expect(await planOf(after.url)).toBeGreaterThan(0.9 * learnedFrom)
      expect(olderPages()).toBe(pages)
    })
    await row.kept('its new alerts carry the new one', () => expect(idsAt(hook)).toEqual(expected.sort()))
    await row.twice('nothing', () => expect([hook, ops].map(sentAgain)).toEqual([[], []]))
    await row.heals('the first poll, once nobody polls under the old name', () => {
      expect(whileItWaits?.lastPollAt).toBeNull()
      expect(source?.lastPollAt).not.toBeNull()
    })
  }, 40_000)

  it('and cannot be known again is named, and its memory can be carried over by hand', async () => {
    const row = failureRow('A source gets another name and another token or address')
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
    await row.kept('`operators` are notified', async () => {
      await ops.received(1)
      expect(headlines(ops)).toEqual(['Source main is not in the config any more'])
    })
    await until('the first poll', async () => (await statusOf(url)).sources[0]?.lastPollAt !== null)
    const later = sandbox.fire()
    await hook.received(3)
    await row.kept('until it is carried over, `startFrom` decides what counts', () => {
      // `now`: what fired before its first poll does not.
      expect(idsAt(hook)).toEqual([...seen.map(({ id }) => `main.${id}`), `desk.${later.id}`].sort())
    })
    await row.kept('the memory of the old name', async () =>
      expect(await orphans(url, 'list')).toMatch(/source +main +2 rows remembered/),
    )
    await expect(orphans(url, 'move', 'main', '--to', 'hook')).rejects.toThrow('There is no source hook')
    await row.heals('`orphans move NAME --to SOURCE`, within a day', async () => {
      const { meta } = sourceKeys(prefix, 'desk')
      const beganHoursAgo = (hours: number) =>
        redis.client().hset(meta, 'createdMs', Date.now() - hours * 3_600_000)
      await beganHoursAgo(25)
      for (const how of [['--dry-run'], []])
        await expect(orphans(url, 'move', 'main', '--to', 'desk', ...how)).rejects.toThrow(
          'for more than a day',
        )
      await beganHoursAgo(23)
      expect(await orphans(url, 'move', 'main', '--to', 'desk', '--dry-run')).toContain('1 would be moved')
      expect(await orphans(url, 'move', 'main', '--to', 'desk')).toContain('1 moved')
    })
    await hook.received(6)
    const expected = [
      ...seen.map(({ id }) => `main.${id}`),
      ...[...meanwhile, later].map(({ id }) => `desk.${id}`),
    ]
    expect(idsAt(hook)).toEqual(expected.sort())
    await row.twice('nothing', () => expect([hook, ops].map(sentAgain)).toEqual([[], []]))
    expect((await statusOf(url)).orphans).toEqual([])
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
  }, 40_000)
})
