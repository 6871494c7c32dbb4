import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/load.ts'
import { createLogger, type LogLevel, setLogLevel } from '../../src/telemetry/log.ts'
import { buildApp, startApp } from '../support/app.ts'
import { api, leftToSend, metric } from '../support/bridge.ts'
import { failureRow } from '../support/failure-row.ts'
import { clean, hasAll, judge, logOf, sentAgain, showing } from '../support/oracle.ts'
import { testFolder } from '../support/process.ts'
import { freshPrefix, startRedis, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** A reload under a bridge that works: what the new config says the same of goes on, the rest is swapped, nothing comes twice. */

const redis = useRedis()

interface Parts {
  readonly prefix?: string
  readonly feed: string
  readonly sinks: Readonly<Record<string, string>>
  readonly routes?: readonly string[]
  readonly poll?: string
  readonly more?: string
}

function configText({ prefix = 'p', feed, sinks, routes, poll = 'every: 250ms', more = '' }: Parts): string {
  const lines = Object.entries(sinks).map(
    ([name, rest]) => `  ${name}: { type: webhook, allowPrivateNetworks: true, timeout: 20s, ${rest} }`,
  )
  return `
redis: { url: "${redis.url}", prefix: ${prefix} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${feed}", token: sandbox-token, startFrom: beginning, poll: { ${poll}, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: 1000000 } } }
sinks:
${lines.join('\n')}
routes: [{ sinks: [${(routes ?? Object.keys(sinks)).join(', ')}] }]
${more}`
}

/** A bridge whose config on disk is a variable. */
function onDisk(text: string, folder = '/') {
  const disk = { text, load: () => parseConfig(disk.text, { env: {}, folder }) }
  return disk
}

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { passed: promise, open: resolve }
}

async function rig() {
  return { prefix: freshPrefix(), sandbox: await startSandbox({ requestsPerMinute: 1_000_000 }) }
}

const sinkOf = async (url: string, name: string) =>
  (await api<{ sinks: { name: string; state: string }[] }>(url, '/api/v1/status')).sinks.find(
    (each) => each.name === name,
  )

describe('a reload', () => {
  it('is not noticed by what it leaves as it is: sends, polls, an open breaker; what it changes is new at once', async () => {
    const { prefix, sandbox } = await rig()
    const shown = showing(sandbox)
    const [slow, broken, before, after] = await Promise.all([1, 2, 3, 4].map(() => startWebhookReceiver()))
    if (!slow || !broken || !before || !after) throw new Error('no receivers')
    const first = gate()
    const slowLog = logOf('slow', slow, { status: 204 }, (_mark, attempt) =>
      attempt === 1 ? { status: 204, after: first.passed } : undefined,
    )
    broken.answerWith({ status: 503 })
    const quick = 'retry: { attempts: 100, initialDelay: 100ms, maxDelay: 200ms }'
    const sinks = { slow: `url: "${slow.url}"`, broken: `url: "${broken.url}", ${quick}` }
    const text = (changing: string) =>
      configText({ prefix, feed: sandbox.url, sinks: { ...sinks, changing: `url: "${changing}"` } })
    const disk = onDisk(text(before.url))
    const { app, url, lines } = await startApp(disk.text, disk)
    shown.fire(3)
    await before.received(3)
    await until('the breaker is open', async () => (await sinkOf(url, 'broken'))?.state === 'open')
    await until('the others have gone by the slow one', () => slowLog.attempts() === 3)

    disk.text = text(after.url)
    const askedMs = performance.now()
    expect(await app.reload()).toEqual({ ok: true })
    expect(performance.now() - askedMs).toBeLessThan(5_000)
    const told = lines.find(({ msg }) => msg === 'reloaded')
    expect(told).toMatchObject({
      changes: {
        sources: { added: [], changed: [], removed: [] },
        sinks: { added: [], changed: ['changing'], removed: [] },
      },
    })
    shown.fire(2)
    await after.received(2)
    await until('the slow sink goes on beside its first send', () => slowLog.attempts() === 5)
    expect(await sinkOf(url, 'broken')).toMatchObject({ state: 'open' })
    expect(await metric(url, 'alert_bridge_circuit_open{sink="broken"}')).toBe(1)
    expect(await metric(url, 'alert_bridge_alerts_seen_total{source="main"}')).toBe(5)
    expect(lines.filter(({ msg }) => msg === 'waiting for the sends that run')).toEqual([])
    first.open()
    await until('the slow sink has all', () => hasAll(shown, slowLog))
    expect(judge(shown, slowLog)).toEqual(clean)
    expect(before.requests).toHaveLength(3)
    // One lease from the start on: the poller did not notice.
    expect(lines.filter(({ msg }) => msg === 'poller.state').length).toBeLessThan(3)
  })

  it('lets a sink that it changes or removes finish its sends, and sends nothing of it twice', async () => {
    const row = failureRow('Its config is reloaded, also while sends run')
    const { prefix, sandbox } = await rig()
    const shown = showing(sandbox)
    const [changed, removed] = [await startWebhookReceiver(), await startWebhookReceiver()]
    const held = gate()
    const ok = { status: 204, after: held.passed }
    const [changedLog, removedLog] = [logOf('changed', changed, ok), logOf('removed', removed, ok)]
    const text = (sinks: Record<string, string>) => configText({ prefix, feed: sandbox.url, sinks })
    const disk = onDisk(text({ changed: `url: "${changed.url}"`, removed: `url: "${removed.url}"` }))
    const { app, url, lines } = await startApp(disk.text, disk)
    shown.fire(3)
    const before = [...shown.ids.keys()]
    await Promise.all([changed.received(3), removed.received(3)])
    disk.text = text({ changed: `url: "${changed.url}", headers: { x-new: "yes" }` })
    expect(await app.reload()).toEqual({ ok: true })
    expect(lines.find(({ msg }) => msg === 'waiting for the sends that run')).toMatchObject({
      sinks: ['changed', 'removed'],
      sends: 6,
      atMost: expect.stringMatching(/^\d+(\.\d+)?s$/),
    })
    shown.fire(1)
    await changed.received(4)
    // Those of before still run.
    const arrived = changed.requests.map(({ headers }) => headers['x-new'])
    held.open()
    const client = redis.client()
    await until(
      'every send is recorded',
      async () => (await leftToSend(client, prefix, ['changed', 'removed'])) === 0,
    )
    const recorded = (sink: string) => client.zcard(`{${prefix}}:queue:${sink}:completed`)
    await row.kept('everything', () => {
      expect(judge(shown, changedLog)).toEqual(clean)
      expect([...removedLog.taken].sort()).toEqual(before)
    })
    await row.twice('nothing', () => expect([changed, removed].map(sentAgain)).toEqual([[], []]))
    await row.heals('at once', () => expect(arrived).toEqual([undefined, undefined, undefined, 'yes']))
    await row.heals('a sink that is changed or removed finishes its sends', async () => {
      expect([await recorded('changed'), await recorded('removed')]).toEqual([4, 3])
    })
    expect((await api<{ sinks: unknown[] }>(url, '/api/v1/status')).sinks).toHaveLength(1)
  })

  if (process.env['LONG'] === '1')
    it('waits for a send of 25 seconds of a sink that it changes, by the settings that a config has by itself', async () => {
      const { prefix, sandbox } = await rig()
      const hook = await startWebhookReceiver({ answer: { status: 204, afterMs: 25_000 } })
      const text = (more: string) =>
        configText({
          prefix,
          feed: sandbox.url,
          sinks: { hook: `url: "${hook.url}"${more}` },
          poll: 'every: 2s',
        })
          .replace('timeout: 20s', 'timeout: 60s')
          .replace(', minInterval: 250ms', '')
      const disk = onDisk(text(''))
      const { app } = await startApp(disk.text, disk)
      sandbox.fire()
      await hook.received(1)
      disk.text = text(', headers: { x-new: "yes" }')
      expect(await app.reload()).toEqual({ ok: true })
      sandbox.fire()
      await hook.received(2)
      const recorded = async () => (await leftToSend(redis.client(), prefix, ['hook'])) === 0
      await until('both sends are recorded', recorded, 60_000)
      expect(hook.requests.map(({ headers }) => headers['webhook-id'])).toEqual(['main.1', 'main.2'])
    })

  it('takes effect also when the one before still waits for sends: what was on disk last runs', async () => {
    const { prefix, sandbox } = await rig()
    const [slow, one, two, three] = await Promise.all([1, 2, 3, 4].map(() => startWebhookReceiver()))
    if (!slow || !one || !two || !three) throw new Error('no receivers')
    const held = gate()
    slow.answerWith({ status: 204, after: held.passed })
    const text = (url: string, timeout: string) =>
      configText({
        ...{ prefix, feed: sandbox.url },
        sinks: { slow: `url: "${slow.url}", rateLimit: { max: ${timeout}, per: 1s }`, fast: `url: "${url}"` },
      })
    const disk = onDisk(text(one.url, '100'))
    const { app } = await startApp(disk.text, disk)
    sandbox.fire()
    await Promise.all([slow.received(1), one.received(1)])
    disk.text = text(two.url, '200')
    const first = app.reload()
    disk.text = text(three.url, '300')
    expect(await Promise.all([first, app.reload()])).toEqual([{ ok: true }, { ok: true }])
    sandbox.fire()
    await Promise.all([three.received(1), slow.received(2)])
    held.open()
    await until(
      'every send is recorded',
      async () => (await leftToSend(redis.client(), prefix, ['slow', 'fast'])) === 0,
    )
    expect([one.requests.length, two.requests.length, slow.requests.length]).toEqual([1, 0, 2])
  })

  it('under a stream of alerts, again and again: every alert goes by one config, once, and none is left behind', async () => {
    const { prefix, sandbox } = await rig()
    const shown = showing(sandbox)
    const hook = await startWebhookReceiver()
    const log = logOf('hook', hook, { status: 204, afterMs: 30 })
    const text = (name: string) =>
      configText({ prefix, feed: sandbox.url, sinks: { [name]: `url: "${hook.url}"` } })
    const disk = onDisk(text('one'))
    const { app, url } = await startApp(disk.text, disk)
    const steady = setInterval(() => shown.fire(), 20)
    try {
      for (let round = 1; round <= 12; round += 1) {
        const seen = shown.ids.size
        disk.text = text(round % 2 === 0 ? 'one' : 'two')
        expect(await app.reload()).toEqual({ ok: true })
        await until('more alerts', () => shown.ids.size > seen + 5)
      }
    } finally {
      clearInterval(steady)
    }
    // A poll that is under way when the names change again would queue for the name that goes.
    const last = [...shown.ids.values()].at(-1)
    await until(
      'the last alert was read',
      async () =>
        (await api<{ data: { seen: boolean } }>(url, `/api/v1/sources/main/seen/${last}`)).data.seen,
    )
    // What was queued for the name that is gone waits for it.
    for (const name of ['two', 'one']) {
      disk.text = text(name)
      await app.reload()
      await until(`${name} is done`, async () => {
        const idle = (await leftToSend(redis.client(), prefix, [name])) === 0
        return idle && (name === 'two' || hasAll(shown, log))
      })
    }
    expect(judge(shown, log)).toEqual(clean)
  })

  it('finishes the page of a source that it changes, and polls it by one loop at a time', async () => {
    const { prefix, sandbox } = await rig()
    const hook = await startWebhookReceiver()
    const text = (poll: string) =>
      configText({ prefix, feed: sandbox.url, sinks: { hook: `url: "${hook.url}"` }, poll })
    const disk = onDisk(text('every: 250ms'))
    const { app, url } = await startApp(disk.text, disk)
    sandbox.fire()
    await hook.received(1)
    sandbox.fault({ kind: 'slow', delayMs: 1_000, times: 1, endpoint: 'alerts/deliveries' })
    const pages = () => sandbox.requests.filter(({ path }) => path === '/api/v1/alerts/deliveries').length
    const polls = pages()
    sandbox.fire()
    await until('a page is being read', () => pages() > polls)
    disk.text = text('every: 30s')
    expect(await app.reload()).toEqual({ ok: true })
    await hook.received(2)
    await until(
      'the new loop polls',
      async () => (await metric(url, 'alert_bridge_polls_total{source="main",reason="fixed"}')) > 0,
    )
    // The page under way, and the first of the new loop.
    expect(pages() - polls).toBeLessThanOrEqual(2)
    expect(await metric(url, 'alert_bridge_alerts_seen_total{source="main"}')).toBe(2)
  })

  it('sees a secret that changed, in the text or in its file', async () => {
    const { prefix, sandbox } = await rig()
    const folder = testFolder()
    const hook = await startWebhookReceiver()
    const secretOf = (byte: number) => `whsec_${Buffer.alloc(24, byte).toString('base64')}`
    const proxies = await Promise.all([startWebhookReceiver(), startWebhookReceiver()])
    const file = join(folder, 'proxy')
    writeFileSync(file, new URL(proxies[0]?.url ?? '').origin)
    const text = (secret: string) =>
      configText({
        ...{ prefix, feed: sandbox.url },
        sinks: {
          signed: `url: "${hook.url}", secret: ${secret}`,
          proxied: `url: "http://127.0.0.1:9/", proxyFile: ${file}`,
        },
      })
    const disk = onDisk(text(secretOf(1)))
    const { app, lines } = await startApp(disk.text, disk)
    sandbox.fire()
    await hook.received(1)
    disk.text = text(secretOf(2))
    expect(await app.reload()).toEqual({ ok: true })
    sandbox.fire()
    const [, second] = await hook.received(2)
    const verify = () => new Webhook(secretOf(2)).verify(second?.body ?? '', second?.headers as never)
    expect(verify).not.toThrow()
    writeFileSync(file, new URL(proxies[1]?.url ?? '').origin)
    expect(await app.reload()).toEqual({ ok: true })
    const changes = lines.flatMap(({ msg, changes }) => (msg === 'reloaded' ? [changes] : []))
    expect(changes).toMatchObject([{ sinks: { changed: ['signed'] } }, { sinks: { changed: ['proxied'] } }])
    expect(JSON.stringify(lines)).not.toContain(secretOf(2))
  })

  it.each<[string, (text: string) => string]>([
    ['redis.url', (text) => text.replace('?db=0', '?db=1')],
    ['redis.password', (text) => text.replace('password: old', 'password: new')],
    ['redis.prefix', (text) => text.replace(/prefix: [\w-]+/, 'prefix: another')],
    ['http.listen', (text) => text.replace('127.0.0.1:0', '127.0.0.1:1')],
    ['dataDir', (text) => text.replace('dataDir: /a', 'dataDir: /b')],
  ])('with another %s is refused with that name, and the old config goes on', async (name, change) => {
    const { sandbox } = await rig()
    const hook = await startWebhookReceiver()
    const disk = onDisk(
      configText({
        ...{ prefix: freshPrefix(), feed: sandbox.url, sinks: { hook: `url: "${hook.url}"` } },
        more: 'dataDir: /a',
      }).replace(/url: "([^"]*sock)"/, 'url: "$1?db=0", password: old'),
    )
    const { app } = buildApp(disk.text, disk)
    disk.text = change(disk.text)
    expect(await app.reload()).toEqual({
      ok: false,
      mistakes: [`a change of ${name} needs a restart; nothing of the new config is in force`],
    })
  })

  it('with another address of Redis in its file is refused, and counted as refused until one is not', async () => {
    const { prefix, sandbox } = await rig()
    const folder = testFolder()
    const hook = await startWebhookReceiver()
    const file = join(folder, 'redis')
    writeFileSync(file, redis.url)
    const text = configText({ prefix, feed: sandbox.url, sinks: { hook: `url: "${hook.url}"` } })
    const disk = onDisk(text.replace(`url: "${redis.url}"`, `urlFile: ${file}`))
    const { app, url } = await startApp(disk.text, disk)
    const successful = () => metric(url, 'alert_bridge_config_last_reload_successful')
    const atSeconds = () => metric(url, 'alert_bridge_config_reload_success_timestamp_seconds')
    const startedAt = await atSeconds()
    expect(await successful()).toBe(1)
    writeFileSync(file, 'redis://another.example.com')
    const refusal = 'a change of redis.url needs a restart; nothing of the new config is in force'
    expect(await app.reload()).toEqual({ ok: false, mistakes: [refusal] })
    expect(await successful()).toBe(0)
    expect(await atSeconds()).toBe(startedAt)
    writeFileSync(file, redis.url)
    expect(await app.reload()).toEqual({ ok: true })
    expect(await successful()).toBe(1)
    expect(await atSeconds()).toBeGreaterThan(startedAt)
  })

  it('that is taken changes the hash of the config, by which replicas are compared', async () => {
    const { prefix, sandbox } = await rig()
    const hook = await startWebhookReceiver()
    const text = (more: string) =>
      configText({ prefix, feed: sandbox.url, sinks: { hook: `url: "${hook.url}"${more}` } })
    const disk = onDisk(text(''))
    const [one, other] = [await startApp(disk.text, disk), await startApp(disk.text, disk)]
    const hashes = async () =>
      Promise.all([one, other].map(({ url }) => metric(url, 'alert_bridge_config_hash')))
    const [before] = await hashes()
    expect(await hashes()).toEqual([before, before])
    disk.text = text(', concurrency: 7')
    expect(await one.app.reload()).toEqual({ ok: true })
    expect(await hashes()).toEqual([expect.not.closeTo(before ?? 0), before])
    disk.text = text('')
    expect(await one.app.reload()).toEqual({ ok: true })
    expect(await hashes()).toEqual([before, before])
  })

  it('is refused when a sink of the new config cannot be built, and changes nothing', async () => {
    const { prefix, sandbox } = await rig()
    const hook = await startWebhookReceiver()
    const text = (more: string) =>
      configText({ prefix, feed: sandbox.url, sinks: { hook: `url: "${hook.url}"${more}` } })
    const disk = onDisk(text(''))
    const { app } = await startApp(disk.text, disk)
    disk.text = text(', tls: { ca: /nowhere/ca.pem }')
    expect(await app.reload()).toEqual({ ok: false, mistakes: [expect.stringContaining('/nowhere/ca.pem')] })
    sandbox.fire()
    await hook.received(1)
  })

  it('changes the level of the log, also of what was made before', async () => {
    const { prefix, sandbox } = await rig()
    const levels = new Map<unknown, string>()
    const destination = {
      write: (line: string) => {
        const { msg, level } = JSON.parse(line) as Record<string, string>
        levels.set(msg, level ?? '')
      },
    }
    const log = createLogger({ level: 'warn', destination })
    const part = log.child({ redis: 'somewhere' })
    const text = (level: string) =>
      configText({
        ...{ prefix, feed: sandbox.url, sinks: { hook: 'url: "http://127.0.0.1:9/"' } },
        more: `log: { level: ${level} }`,
      })
    const disk = onDisk(text('warn'))
    const setLevel = (level: LogLevel) => setLogLevel(log, level)
    const { app } = await startApp(disk.text, { ...disk, log, setLogLevel: setLevel })
    disk.text = text('debug')
    expect(await app.reload()).toEqual({ ok: true })
    part.debug('said by a part')
    expect([levels.get('started'), levels.get('reloaded'), levels.get('said by a part')]).toEqual([
      ...[undefined, 'info', 'debug'],
    ])
  })

  it('while Redis is waited for is what the start then runs', async () => {
    const late = await startRedis({ aof: true })
    await late.stop()
    const { prefix, sandbox } = await rig()
    const [first, second] = [await startWebhookReceiver(), await startWebhookReceiver()]
    const text = (url: string) =>
      configText({ prefix, feed: sandbox.url, sinks: { hook: `url: "${url}"` } }).replace(redis.url, late.url)
    const disk = onDisk(text(first.url))
    const { app, lines } = buildApp(disk.text, disk)
    const starting = app.start()
    await until('it waits', () => lines.some(({ msg }) => msg === 'waiting for Redis'))
    disk.text = text(second.url)
    expect(await app.reload()).toEqual({ ok: true })
    await late.start()
    await starting
    sandbox.fire()
    await second.received(1)
    expect(first.requests).toEqual([])
    await app.stop()
    expect(await app.reload()).toMatchObject({ ok: false, mistakes: [expect.stringContaining('stopping')] })
    await late.dispose()
  })
})
