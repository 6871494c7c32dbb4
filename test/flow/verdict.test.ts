import { describe, expect, it, onTestFinished } from 'vitest'
import type { StatusView } from '../../src/admin/views/status-view.ts'
import { statusCommand } from '../../src/cli/status.ts'
import type { LoadedConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig, metric } from '../support/bridge.ts'
import { run } from '../support/cli.ts'
import { freshPrefix, type RedisServer, startRedis, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { type ReceiverAnswer, startWebhookReceiver } from '../support/webhook-receiver.ts'

/** Probes, command line, JSON and page: whoever asks how the bridge is gets one verdict, in the same words. */

const redis = useRedis()

describe('a source whose token is refused', () => {
  it('leaves the bridge ready, and readiness, status and page name it as what is broken', async () => {
    const { url } = await rig({ token: 'token: revoked-token' })
    await until('the source is stopped', async () => (await status(url)).sources[0]?.state === 'stopped')
    const said = /^Source main is stopped: .*token/
    const { ready, verdict } = await status(url)
    expect(ready).toEqual({ ok: true, reason: expect.stringMatching(said) })
    expect(verdict).toMatchObject({
      ready: true,
      level: 'failed',
      headline: 'Ready, but something is broken',
      findings: [{ level: 'failed', text: expect.stringMatching(said) }],
    })
    expect(await readyz(url)).toEqual([200, `ready, but something is broken: ${ready.reason}\n`])
    expect(await metric(url, 'alert_bridge_ready')).toBe(1)
    expect(await metric(url, 'alert_bridge_findings{level="failed"}')).toBe(1)
    const json = await fetch(`${url}/readyz`, { headers: { accept: 'application/json' } })
    expect(await json.json()).toEqual({
      ready: true,
      reason: ready.reason,
      level: 'failed',
      headline: verdict.headline,
    })
    const page = await (await fetch(url)).text()
    expect(page).toContain(`<p class="headline">${verdict.headline}</p>`)
    const told = await run(statusCommand(), '--url', url)
    expect(told.out).toMatch(
      /^alert-bridge [^\n]*: ready, but something is broken\n {2}Source main is stopped/,
    )
    expect(told.exitCode ?? 0).toBe(0)
  })

  it('is not the fault of a process that only sends', async () => {
    const { url } = await rig({ token: 'token: revoked-token', role: 'sender' })
    await until('it is ready', async () => (await readyz(url))[0] === 200)
  })
})

it('what keeps a bridge from being ready is broken on the page, too', async () => {
  const { url } = await rig({ redisCheckEveryMs: 50 })
  await until('it is ready', async () => (await readyz(url))[1] === 'ready\n')
  const client = redis.client()
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  try {
    await until('it is not ready', async () => (await readyz(url))[0] === 503)
    const { ready, verdict } = await status(url)
    expect(verdict).toMatchObject({
      ready: false,
      level: 'failed',
      headline: 'Not ready: something is broken',
    })
    expect(await readyz(url)).toEqual([503, `not ready: something is broken: ${ready.reason}\n`])
    expect(await metric(url, 'alert_bridge_ready')).toBe(0)
    expect(await metric(url, 'alert_bridge_findings{level="failed"}')).toBe(1)
    expect(await (await fetch(url)).text()).toContain('<div class="verdict failed"')
    const told = await run(statusCommand(), '--url', url)
    expect(told.out).toMatch(/: not ready: something is broken\n {2}.*maxmemory-policy is allkeys-lru/)
    expect(told.exitCode).toBe(1)
  } finally {
    const client = redis.client()
    await client.config('SET', 'maxmemory-policy', 'noeviction')
  }
})

it('what works, but not for its people, is told in the same words: refusals, a refused reload, another config', async () => {
  const prefix = freshPrefix()
  const refusing = { status: 403, body: 'no such\nchannel' }
  const load = (): LoadedConfig => ({ ok: false, mistakes: [{ path: 'sinks.x', message: 'is not known' }] })
  const { url, app } = await rig({ prefix, load, history: 3, answer: refusing })
  await rig({ prefix, role: 'sender', sinkName: 'other' })
  await app.reload()
  const said = [
    /^Sink hook refuses everything: the last 3 alerts were given up on \(.*403.*\)$/,
    /^The last reload was refused, the config before it goes on: config: sinks.x: is not known$/,
    /^Another config is in force beside the one of this process: .*, process \d+, .* \(sender\)$/,
  ]
  const texts = async () => (await status(url)).verdict.findings.map(({ text }) => text)
  await until('all three are told', async () => {
    const found = await texts()
    return said.every((each) => found.some((text) => each.test(text)))
  })
  const { verdict } = await status(url)
  expect(verdict).toMatchObject({ ready: true, level: 'failed' })
  const [, text] = await readyz(url)
  const page = await (await fetch(url)).text()
  // The page shows an instant on the clock of its people.
  const inUtc = page.replaceAll(/<bdi><time datetime="([^"]+)">.*?<\/bdi>/g, '$1')
  const printed = (await run(statusCommand(), '--url', url, '--utc')).out
  for (const finding of verdict.findings) {
    expect(text.trimEnd().split('\n')).toEqual([expect.stringContaining(finding.text)])
    expect(inUtc).toContain(`">${finding.text}</a></li>`)
    expect(printed).toContain(`  ${finding.text}\n`)
  }
  expect(await metric(url, 'alert_bridge_findings{level="warning"}')).toBe(2)
  // Its own row does not say otherwise.
  expect(page).toMatch(/<tr id="sink-hook">.*?<span class="badge failed">.*?refusing<\/span>/s)
  expect(printed).toMatch(/^hook +webhook +refusing /m)
})

it('a sink that rests is told alike by a process that only polls, which can also have it probed', async () => {
  const prefix = freshPrefix()
  const sandbox = await startSandbox({ history: 9 })
  const hook = await startWebhookReceiver({ answer: { status: 503, body: 'moved to\nanother floor' } })
  const sink = 'allowPrivateNetworks: true, retry: { attempts: 9, initialDelay: 10m, maxDelay: 1h }'
  const text = bridgeConfig({ prefix, redis, feed: sandbox.url, sinks: { hook: hook.url }, sink })
  const sender = await startApp(text, { role: 'sender' })
  const poller = await startApp(text, { role: 'poller' })
  const sinkAt = async ({ url }: { url: string }) => (await status(url)).sinks[0]
  await until('it rests', async () => (await sinkAt(sender))?.state === 'open')
  const said = /^server_error: 503 moved to another floor$/
  for (const each of [sender, poller]) {
    expect(await sinkAt(each)).toMatchObject({
      state: 'open',
      reason: expect.stringMatching(said),
      failingSince: (await sinkAt(sender))?.failingSince,
      // Something was sent, and was not taken.
      lastResult: { kind: 'retry', text: expect.stringMatching(said) },
    })
    expect((await status(each.url)).verdict.findings).toEqual([
      expect.objectContaining({
        level: 'failed',
        text: expect.stringMatching(/^Sink hook is failing and given a rest \(server_error: 503 moved/),
      }),
    ])
    expect((await readyz(each.url))[1]).toMatch(/^ready, but something is broken: Sink hook is failing/)
  }
  hook.answerWith({ status: 204 })
  const headers = { authorization: `Bearer ${adminToken}` }
  const probed = await fetch(`${poller.url}/api/v1/sinks/hook/probe`, { method: 'POST', headers })
  expect([probed.status, await probed.json()]).toEqual([200, { sink: 'hook', state: 'probing' }])
  await until('it takes alerts', async () => (await sinkAt(poller))?.lastResult?.kind === 'delivered')
  expect((await sinkAt(poller))?.lastResult?.text).toBe('204')
  await until('it does not rest', async () => (await sinkAt(poller))?.state === 'active')
})

it('a bridge lives on without Redis, however long, and while it stops', async () => {
  const own = await startRedis()
  onTestFinished(() => own.dispose())
  let aheadMs = 0
  const clock = { ...systemClock, monotonicMs: () => performance.now() + aheadMs }
  const { app, url } = await rig({ clock, redis: own })
  await until('it is ready', async () => (await readyz(url))[0] === 200)
  await own.kill9()
  await until('it is not ready', async () => (await readyz(url))[0] === 503)
  for (const hours of [1, 2, 3]) {
    aheadMs = hours * 3_600_000
    await until('its loop has gone on', async () => (await fetch(`${url}/healthz`)).status === 200)
  }
  const stopped = app.stop()
  aheadMs += 3_600_000
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  await stopped
})

type Options = NonNullable<Parameters<typeof startApp>[1]>

interface RigConfig {
  readonly token?: string
  readonly redis?: RedisServer
  readonly prefix?: string
  readonly history?: number
  readonly answer?: ReceiverAnswer
  readonly sinkName?: string
}

async function rig(config: RigConfig & Options) {
  const {
    token,
    redis: own = redis,
    prefix = freshPrefix(),
    history = 0,
    answer,
    sinkName,
    ...options
  } = config
  const sandbox = await startSandbox({ history })
  const hook = await startWebhookReceiver(answer === undefined ? {} : { answer })
  const sinks = { [sinkName ?? 'hook']: hook.url }
  const text = bridgeConfig({
    prefix,
    redis: own,
    feed: sandbox.url,
    sinks,
    ...(token === undefined ? {} : { token }),
  })
  return startApp(text, options)
}

async function status(url: string): Promise<StatusView> {
  return api<StatusView>(url, '/api/v1/status')
}

async function readyz(url: string): Promise<[number, string]> {
  const response = await fetch(`${url}/readyz`)
  return [response.status, await response.text()]
}
