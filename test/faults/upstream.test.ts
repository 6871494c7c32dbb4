import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, createApp } from '../../src/app/app.ts'
import { parseConfig } from '../../src/config/load.ts'
import { createSandbox, type Fault, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { buildApp, configOf, until } from '../support/app.ts'
import { clean, hasAll, judge, logOf, showing } from '../support/oracle.ts'
import { startProgram, testFolder, writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { api, impatient, metric, readiness, sceneConfig } from '../support/scene.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

/** What the Market Data API may answer, under a whole bridge: 130 alerts over two pages, all of them sent once. */

const redis = useRedis()
const rows = 130
const mebibyte = 1_048_576

const faults: Readonly<Record<string, readonly Fault[]>> = {
  'three times 500': [{ kind: 'status', status: 500, times: 3 }],
  'HTML with 503': [{ kind: 'status', status: 503, body: '<html>busy</html>', times: 2 }],
  'no answer at all': [{ kind: 'hang' }],
  'headers, and then nothing': [{ kind: 'hang', headersSent: true }],
  'a byte now and then': [{ kind: 'drip', intervalMs: 400, bytes: 1 }],
  'a body that is cut': [{ kind: 'cut', times: 2 }],
  'half a JSON text with 200': [{ kind: 'malformed', times: 2 }],
  'a login page with 200': [{ kind: 'html', times: 2 }],
  'a gzip bomb of 200 MB': [{ kind: 'bomb', bytes: 200 * mebibyte, times: 2 }],
  'a page of 10 MB': [{ kind: 'huge', bytes: 10 * mebibyte, times: 2 }],
  'JSON of depth 100,000': [{ kind: 'deep', depth: 100_000, times: 2 }],
  'a page without meta': [{ kind: 'shape', shape: 'noMeta', times: 2 }],
  'a page without data': [{ kind: 'shape', shape: 'noData', times: 2 }],
  'numbers as text': [{ kind: 'shape', shape: 'stringMeta', times: 2 }],
  'a lastPage of 0': [{ kind: 'shape', shape: 'lastPage0', times: 2 }],
  'another page than was asked for': [{ kind: 'shape', shape: 'wrongPage', times: 2 }],
  'an empty page that claims more': [{ kind: 'shape', shape: 'emptyData', times: 3 }],
  'an empty second page that claims more': [{ kind: 'shape', shape: 'emptyData', page: 2, times: 3 }],
  'a second page that fails after the first was good': [{ kind: 'status', status: 500, page: 2, times: 3 }],
  'a second page that is cut': [{ kind: 'cut', page: 2, times: 2 }],
  'a lastPage that shrinks between two pages': [
    { kind: 'between', page: 2, changes: Array.from({ length: 60 }, () => ({ removeAt: 0 })) },
  ],
  'news between two pages': [{ kind: 'between', page: 2, changes: [{ fire: 40 }] }],
  'a 403 that no documentation knows': [{ kind: 'status', status: 403, code: 'blocked', times: 3 }],
  'a redirect to another host': [{ kind: 'status', status: 302, location: 'http://127.0.0.1:1/', times: 2 }],
  'bad rows among the good': [{ kind: 'badRows' }],
  '429 five times, a second each': [
    { kind: 'status', status: 429, code: 'rate_limited', retryAfter: '1', times: 5 },
  ],
  '429 until a date': [
    {
      kind: 'status',
      status: 429,
      code: 'rate_limited',
      retryAfter: new Date(Date.now() + 6_000).toUTCString(),
      times: 1,
    },
  ],
}

describe('the API answers', () => {
  const names = Object.keys(faults)
  const sources = new Map<string, Source>()
  const lines: Record<string, unknown>[] = []
  let hook: WebhookReceiver
  let app: App
  let url: string

  // All of them at once, each a source of one bridge: the waits for timeouts add up to one.
  beforeAll(async () => {
    hook = await startWebhookReceiver()
    for (const [index, name] of names.entries()) {
      const sandbox = createSandbox({ history: rows })
      const shown = new Set(sandbox.rows.map(({ id }) => id))
      sandbox.on('fired', ({ id }) => shown.add(id))
      for (const fault of faults[name] ?? []) sandbox.fault(fault)
      const { url } = await sandbox.start()
      sources.set(name, { name: `s${index}`, url, sandbox, shown })
    }
    const text = configText([...sources.values()], hook.url)
    const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
    app = createApp(configOf(text), { log: createLogger({ level: 'info', destination: { write } }) })
    url = await app.start()
  }, 60_000)

  afterAll(async () => {
    await app.stop()
    for (const { sandbox } of sources.values()) await sandbox.stop()
    await hook.stop()
  }, 60_000)

  it.each(names)(
    '%s: everything arrives once, and so does what fires next',
    { timeout: 60_000 },
    async (name) => {
      const source = sources.get(name)
      if (!source) throw new Error(name)
      const { sandbox, shown } = source
      const came = () =>
        hook.requests.flatMap(({ headers }) => {
          const [from, id] = String(headers['webhook-id']).split('.')
          return from === source.name ? [Number(id)] : []
        })
      await until(`everything arrives (${source.name})`, () => new Set(came()).size >= shown.size, 45_000)
      sandbox.fire()
      await until('what fires next arrives', () => new Set(came()).size >= shown.size, 20_000)
      expect(came().sort((a, b) => a - b)).toEqual([...shown].sort((a, b) => a - b))
      const state = () => api<{ sources: { name: string; state: string }[] }>(url, '/api/v1/status')
      await until('the status is well again', async () =>
        (await state()).sources.some((each) => each.name === source.name && each.state === 'running'),
      )
      expect(lines.filter(({ msg, source: of }) => msg === 'poller.crashed' && of === source.name)).toEqual(
        [],
      )
      const waits = sandbox.requests.flatMap(({ status, atMs }, index) => {
        const next = sandbox.requests[index + 1]
        return status === 429 && next ? [next.atMs - atMs] : []
      })
      expect(Math.min(1_000, ...waits)).toBeGreaterThanOrEqual(990)
    },
  )
})

interface Source {
  readonly name: string
  readonly url: string
  readonly sandbox: Sandbox
  readonly shown: Set<number>
}

function configText(sources: readonly Source[], hook: string): string {
  const poll =
    'startFrom: beginning, poll: { every: 400ms, minInterval: 400ms, historyPages: 0 }, budget: { unitsPerDay: 1000000 }'
  return `
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources:
${sources.map(({ name, url }) => `  ${name}: { baseUrl: "${url}", token: sandbox-token, ${poll} }`).join('\n')}
sinks: { hook: { type: webhook, url: "${hook}", allowPrivateNetworks: true } }
routes: [{ sinks: [hook] }]
`
}

describe('the API refuses the token', () => {
  it.each([
    ['401', 'revoked', /does not accept the token/],
    ['403', 'scope', /lacks the scope/],
  ] as const)(
    '%s in the middle: the source stops where people see it, sends go on, and it resumes with the right token',
    {
      timeout: 30_000,
    },
    async (_status, how, reason) => {
      const sandbox = await startSandbox({
        tokens: [{ value: 'first-token-canary' }, { value: 'second-token-canary' }],
      })
      const hook = await startWebhookReceiver()
      const shown = showing(sandbox)
      let down = true
      const log = logOf('hook', hook, { status: 204 }, () => (down ? { status: 503 } : undefined))
      const tokenFile = join(testFolder(), 'token')
      writeFileSync(tokenFile, 'first-token-canary')
      const text = sceneConfig({
        ...{ redis, feed: sandbox.url, sinks: { hook: hook.url } },
        token: `tokenFile: ${tokenFile}`,
      })
      const { app, lines } = buildApp(text, { load: () => parseConfig(text, { env: {}, folder: '/' }) })
      const url = await app.start()
      shown.fire(3)
      await until('sends are tried', () => log.attempts() >= 3)
      if (how === 'revoked') sandbox.setTokenState('revoked', 'first-token-canary')
      else sandbox.fault({ kind: 'status', status: 403, code: 'scope_required', times: 0 })
      const source = async () => {
        const { sources } = await api<{ sources: { state: string; reason: string | null }[] }>(
          url,
          '/api/v1/status',
        )
        return sources[0]
      }
      await until('the status says so', async () => (await source())?.state === 'stopped')
      expect((await source())?.reason).toMatch(reason)
      expect(await (await fetch(url)).text()).toMatch(reason)
      expect(await readiness(url)).toBe('ok')
      const calls = sandbox.requests.length
      shown.fire(3)
      down = false
      await until('what was seen before is sent', () => log.taken.length === 3)
      expect(sandbox.requests.length).toBe(calls)
      expect(lines.filter(({ msg, level }) => msg === 'poller.state' && level === 'error')).toHaveLength(1)

      writeFileSync(tokenFile, 'second-token-canary')
      sandbox.clearFaults()
      expect(await app.reload()).toEqual({ ok: true })
      await until('everything arrives', () => hasAll(shown, log))
      expect(judge(shown, log)).toEqual(clean)
      await until('the status is well again', async () => (await source())?.state === 'running')
      const told =
        JSON.stringify(lines) +
        (await (await fetch(`${url}/metrics`)).text()) +
        (await (await fetch(url)).text())
      expect(told).not.toMatch(/token-canary/)
    },
  )
})

describe('the clock of the machine', () => {
  it('jumps a day ahead and two days back: every alert arrives once, and waiting ones wait no longer for it', {
    timeout: 60_000,
  }, async () => {
    const sandbox = await startSandbox({ requestsPerMinute: 1_000_000 })
    const hook = await startWebhookReceiver()
    const shown = showing(sandbox)
    let down = false
    const log = logOf('hook', hook, { status: 204 }, () => (down ? { status: 503 } : undefined))
    // A waiting alert that a jump makes older than its sink wants it would be a dead letter.
    const sink = `${impatient}, expireAfter: 7d`
    const config = writeConfig(sceneConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url }, sink }))
    const program = startProgram(['run', '--config', config], {
      NODE_OPTIONS: `--import=${join(import.meta.dirname, '../support/clock-shift.ts')}`,
      CLOCK_JUMPS: '25,-49,24',
    })
    const { address } = await program.logged('listening')
    shown.fire(3)
    await until('the first arrive', () => hasAll(shown, log))
    for (const direction of ['ahead', 'back', 'right again']) {
      down = true
      shown.fire(3)
      const attempts = log.attempts()
      await until('some wait for their next attempt', () => log.attempts() > attempts + 2)
      program.kill('SIGUSR2')
      shown.fire(3)
      down = false
      await until(`all arrive (${direction})`, () => hasAll(shown, log), 20_000)
    }
    expect(judge(shown, log)).toEqual(clean)
    expect(await readiness(String(address))).toBe('ok')
    expect(await metric(String(address), 'alert_bridge_poller_restarts_total{source="main"}')).toBe(0)
  })
})
