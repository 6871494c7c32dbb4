import { Worker } from 'bullmq'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { startApp } from '../support/app.ts'
import { api, bridgeConfig, metric, readiness } from '../support/bridge.ts'
import { failureRow } from '../support/failure-row.ts'
import { clean, hasAll, judge, logOf, sentAgain, showing } from '../support/oracle.ts'
import { useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

/** Alerts that wait while nothing holds them back and nobody takes them: the one thing that no error tells of. */

const redis = useRedis()
const long = process.env['LONG'] === '1'
const quick = { watchEveryMs: 50, stuckMs: 300 }
/** The long form waits as long as the product does. */
const noticing = long ? {} : quick
const noticeLimitMs = long ? 60_000 : 10_000

it('a sink whose worker is dead, and whose first new one too, turns /readyz red, which names it, also beside a replica that sends, until its alerts go out', async () => {
  const row = failureRow('Alerts wait and no worker takes them')
  const { hook, text, shown } = await rig('concurrency: 1, timeout: 5m')
  const held = Promise.withResolvers<void>()
  const log = logOf('hook', hook, { status: 204, after: held.promise })
  const live = await startApp(text, { senderTuning: noticing })
  shown.fire()
  await hook.received(1)
  const { opened, letLive } = letDie()
  const { url } = await startApp(text, { senderTuning: noticing })
  shown.fire(3)
  await until('three wait', async () => (await sinkOf(live.url))?.waiting === 3)
  const waitingSinceMs = performance.now()
  await until('readiness is red', async () => (await readiness(url)) !== 'ok', noticeLimitMs)
  const noticedMs = performance.now() - waitingSinceMs
  const red = await readiness(url)
  // The one that the replica sends.
  const sendsBeside = (await sinkOf(url))?.active
  expect(await readiness(live.url)).toBe('ok')
  expect((await api<StatusView>(url, '/api/v1/status')).ready.ok).toBe(false)
  expect(await sinkOf(url)).toMatchObject({
    state: 'stuck',
    reason: expect.stringMatching(/^3 alerts wait and this process takes none/),
  })
  expect(await (await fetch(url)).text()).toContain('Sink hook is stuck')
  expect(await metric(url, 'alert_bridge_sink_stuck{sink="hook"}')).toBe(1)

  // The first new one was of no use either.
  await until('a second new worker', () => opened.length >= 3, noticeLimitMs)
  letLive()
  await hook.received(2, noticeLimitMs)
  held.resolve()
  await until('everything arrives', () => hasAll(shown, log))
  await until('readiness is green', async () => (await readiness(url)) === 'ok')
  expect(await metric(url, 'alert_bridge_sink_stuck{sink="hook"}')).toBe(0)
  await row.kept('everything', () => expect(judge(shown, log)).toEqual(clean))
  await row.kept('`/readyz` turns red and names the sink', () =>
    expect(red).toMatch(
      /^not ready: something is broken: Sink hook is stuck: 3 alerts wait and this process takes none, for /,
    ),
  )
  await row.kept('a new worker is opened on a connection of its own', () => {
    expect(opened.length).toBeGreaterThanOrEqual(3)
    expect(new Set(opened.map(({ worker }) => worker.opts.connection)).size).toBe(opened.length)
  })
  await row.twice('nothing', () => expect(sentAgain(hook)).toEqual([]))
  await row.heals('also beside replicas that send', () => expect(sendsBeside).toBe(1))
  const [, first, second] = opened.map(({ atMs }) => atMs)
  const apartMs = (second ?? Number.NaN) - (first ?? Number.NaN)
  await row.inLong.heals('36 s until it is noticed', noticedMs)
  await row.inLong.heals('30 s between two new workers', () => expect(Math.round(apartMs / 1_000)).toBe(30))
  expect(apartMs).toBeGreaterThan(quick.stuckMs - quick.watchEveryMs)
})

it('a poller without senders turns red too, and says that no sender takes them', async () => {
  const { hook, text, shown } = await rig()
  const { url } = await startApp(text, { role: 'poller', senderTuning: quick })
  shown.fire(2)
  await until('readiness is red', async () => (await readiness(url)).includes('2 alerts'))
  expect(await readiness(url)).toMatch(
    /^not ready: something is broken: Sink hook is stuck: 2 alerts wait and no sender takes one, for /,
  )
  await startApp(text, { role: 'sender' })
  await until('the alerts go out', () => hook.requests.length === 2)
  await until('readiness is green', async () => (await readiness(url)) === 'ok')
})

async function rig(sink = '') {
  const sandbox = await startSandbox({ history: 0, requestsPerMinute: 1_000_000 })
  const hook = await startWebhookReceiver()
  const common = { redis, feed: sandbox.url, sinks: { hook: hook.url } }
  return {
    hook,
    text: bridgeConfig({ ...common, sink: `allowPrivateNetworks: true, ${sink}` }),
    shown: showing(sandbox),
  }
}

/** The next workers claim to run and take nothing, until `letLive` is called. `opened`: all from now on. */
function letDie() {
  let dying = true
  const opened: { worker: Worker; atMs: number }[] = []
  const { run } = Worker.prototype
  const spy = vi.spyOn(Worker.prototype, 'run').mockImplementation(function (this: Worker) {
    opened.push({ worker: this, atMs: performance.now() })
    return dying ? Promise.resolve() : run.call(this)
  })
  onTestFinished(() => spy.mockRestore())
  return {
    opened,
    letLive() {
      dying = false
    },
  }
}

async function sinkOf(url: string): Promise<StatusView['sinks'][number] | undefined> {
  return (await api<StatusView>(url, '/api/v1/status')).sinks[0]
}
