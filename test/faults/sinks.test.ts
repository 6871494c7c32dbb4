import dns from 'node:dns/promises'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createQueues } from '../../src/delivery/queues.ts'
import { deliveryJob, jobs } from '../delivery/support.ts'
import { startApp, until } from '../support/app.ts'
import { testAuthority, testServer } from '../support/certificates.ts'
import { clean, hasAll, judge, logOf, mailLog, type SinkLog, showing } from '../support/oracle.ts'
import { testFolder } from '../support/process.ts'
import { unusedPort } from '../support/raw-server.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { api, impatient, sceneConfig } from '../support/scene.ts'
import { startSlackReceiver } from '../support/slack-receiver.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { type ReceiverAnswer, startWebhookReceiver } from '../support/webhook-receiver.ts'

/** What receivers may do, under a whole bridge. What single attempts make of it is told by the contract of all sinks. */

const redis = useRedis()
const taken = { status: 204 } as const

const moods: Readonly<Record<string, ReceiverAnswer>> = {
  'takes it and hangs': { kind: 'hang' },
  'says 200 and breaks off its answer': { kind: 'broken', status: 200 },
  'answers a byte now and then': { kind: 'drip', status: 200, everyMs: 100 },
  'answers without end': { kind: 'flood', status: 200 },
  'breaks the connection': { kind: 'reset' },
  'speaks no http': { kind: 'garbage' },
  'says 503': { status: 503 },
  'says 429 and when to come again': { status: 429, headers: { 'retry-after': '1' } },
  'wants a login': { status: 401 },
}
/** Final: given up at once, with the reason. */
const final = new Set(['wants a login'])

it('each of many bad receivers gets everything once it is well, beside all the others, or it stands in the dead letters', {
  timeout: 60_000,
}, async () => {
  const sandbox = await startSandbox()
  const shown = showing(sandbox)
  const logs = new Map<string, SinkLog>()
  const addresses: Record<string, string> = {}
  for (const [name, mood] of Object.entries(moods)) {
    const receiver = await startWebhookReceiver()
    const sink = name.replaceAll(' ', '-')
    addresses[sink] = receiver.url
    logs.set(
      sink,
      logOf(sink, receiver, taken, (_mark, attempt) => (attempt <= 3 ? mood : undefined)),
    )
  }
  const { url } = await startApp(sceneConfig({ redis, feed: sandbox.url, sinks: addresses }))
  shown.fire(10)
  for (const [sink, log] of logs) {
    const dead = new Set<string>()
    if (final.has(sink.replaceAll('-', ' '))) {
      await until('three are given up', async () => {
        for (const mark of await deadMarks(url, sink)) dead.add(mark)
        return dead.size === 3
      })
    }
    await until(`${sink} has everything`, () => new Set(log.taken).size + dead.size >= shown.ids.size, 30_000)
    expect({ sink, ...judge(shown, log, { dead }) }).toEqual({ sink, ...clean })
  }
})

it('a receiver that has no listener, no certificate and no name for a while gets everything when it has', {
  timeout: 60_000,
}, async () => {
  const sandbox = await startSandbox()
  const shown = showing(sandbox)
  const ports = [await unusedPort(), await unusedPort(), await unusedPort()] as const
  const ca = join(testFolder(), 'ca.pem')
  writeFileSync(ca, testAuthority)
  // In place of TLS, another service answers at first.
  const wrong = await startWebhookReceiver({ port: ports[1], answer: { kind: 'garbage' } })
  const named = await startWebhookReceiver()
  const names = failNames('hooks.test')
  const text = sceneConfig({
    ...{ redis, feed: sandbox.url },
    sinks: {
      listener: `http://127.0.0.1:${ports[0]}/hook`,
      certificate: `https://localhost:${ports[1]}/hook`,
      name: named.url.replace('127.0.0.1', 'hooks.test'),
    },
    sink: `${impatient}`,
  })
  const { url } = await startApp(text.replace(/(certificate: \{)/, `$1 tls: { ca: ${ca} },`))
  shown.fire(5)
  const waiting = async () => {
    const { sinks } = await api<{
      sinks: { name: string; delayed: number | null; waiting: number | null }[]
    }>(url, '/api/v1/status')
    return sinks.every(({ delayed, waiting }) => (delayed ?? 0) + (waiting ?? 0) >= 4)
  }
  await until('all three wait', waiting)
  await until('all three were tried', async () => (await sends(url)).every((count) => count >= 5))
  await wrong.stop()
  const logs = [
    logOf('listener', await startWebhookReceiver({ port: ports[0] }), taken),
    logOf('certificate', await startWebhookReceiver({ port: ports[1], tls: testServer }), taken),
    logOf('name', named, taken),
  ]
  names.mend()
  for (const log of logs) {
    await until(`${log.name} has everything`, () => hasAll(shown, log), 20_000)
    expect({ sink: log.name, ...judge(shown, log) }).toEqual({ sink: log.name, ...clean })
  }
})

it('a mail server that dies after DATA, greets with 421 or puts off, and Slack that says 429, get everything', {
  timeout: 60_000,
}, async () => {
  const sandbox = await startSandbox()
  const shown = showing(sandbox)
  const smtp = await startSmtpReceiver()
  const slack = await startSlackReceiver()
  const mail = mailLog('desk', smtp, (attempt) =>
    attempt <= 3
      ? 'drop'
      : attempt <= 5
        ? { code: 421, text: 'closing' }
        : attempt <= 7
          ? { code: 451, text: 'later' }
          : undefined,
  )
  const chat = logOf('ops', slack, { status: 200, body: 'ok' }, (_mark, attempt) =>
    attempt <= 2 ? { status: 429, headers: { 'retry-after': '1' } } : undefined,
  )
  await startApp(`
redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: beginning, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 }, budget: { unitsPerDay: 1000000 } } }
sinks:
  desk: { type: email, smtp: "${smtp.url}", startTls: "off", from: Alerts <a@example.com>, to: [desk@example.com], rateLimit: { max: 100, per: 1s }, ${impatient} }
  ops: { type: slack, url: "${slack.url}", rateLimit: { max: 100, per: 1s }, ${impatient} }
routes: [{ sinks: [desk, ops] }]
`)
  shown.fire(10)
  for (const log of [mail, chat]) {
    await until(`${log.name} has everything`, () => hasAll(shown, log), 30_000)
    expect({ sink: log.name, ...judge(shown, log) }).toEqual({ sink: log.name, ...clean })
  }
})

it('a dead sink with 10,000 jobs waiting makes another no slower', { timeout: 90_000 }, async () => {
  const prefix = freshPrefix()
  const live = await startWebhookReceiver()
  const dead = await startWebhookReceiver({ answer: { kind: 'hang' } })
  const sandbox = await startSandbox()
  const text = sceneConfig({
    ...{ redis, prefix, feed: sandbox.url, sinks: { live: live.url, dead: dead.url } },
    sink: 'allowPrivateNetworks: true, timeout: 500ms, retry: { attempts: 100, initialDelay: 100ms, maxDelay: 1s }',
  })
  const { url } = await startApp(text)
  const client = redis.client()
  const queues = createQueues({
    redis: client,
    prefix,
    sinks: ['live', 'dead'],
    retention: { ageMs: 86_400_000, count: 100_000 },
  })
  onTestFinished(() => queues.close())
  let id = 1
  const measure = async (): Promise<number> => {
    const tookMs: number[] = []
    for (let sample = 0; sample < 100; sample += 1) {
      const before = live.requests.length
      const startMs = performance.now()
      await queues.enqueue([deliveryJob('live', id++)])
      await live.received(before + 1)
      tookMs.push(performance.now() - startMs)
    }
    return tookMs.sort((a, b) => a - b)[94] ?? Number.NaN
  }
  await measure()
  const aloneMs = await measure()
  for (let from = 100_001; from < 110_001; from += 1_000) await queues.enqueue(jobs('dead', from, from + 999))
  await until('the dead sink is tried', () => dead.requests.length > 0)
  const besideMs = await measure()
  const { sinks } = await api<{ sinks: { name: string; waiting: number; delayed: number }[] }>(
    url,
    '/api/v1/status',
  )
  const backlog = sinks.find(({ name }) => name === 'dead')
  expect((backlog?.waiting ?? 0) + (backlog?.delayed ?? 0)).toBeGreaterThan(9_900)
  process.stdout.write(
    `p95 alone ${aloneMs.toFixed(1)} ms, beside 10,000 waiting jobs ${besideMs.toFixed(1)} ms\n`,
  )
  expect(besideMs).toBeLessThan(aloneMs * 2 + 30)
})

async function deadMarks(url: string, sink: string): Promise<string[]> {
  const { data } = await api<{ data: { headline: string; reason: string }[] }>(
    url,
    `/api/v1/dead-letters?sink=${sink}`,
  )
  for (const { reason } of data) expect(reason).toMatch(/401/)
  return data.flatMap(({ headline }) => /A\d{5}/.exec(headline)?.[0] ?? [])
}

/** Attempts of every sink so far. */
async function sends(url: string): Promise<number[]> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return [...text.matchAll(/^alert_bridge_sends_total\{.*result="retry".*\} (\d+)$/gm)].map((match) =>
    Number(match[1]),
  )
}

/** A resolver that does not know the name until it is mended; then it is this machine. */
function failNames(name: string): { mend(): void } {
  const real = dns.lookup
  let known = false
  const lookup = async (host: string, options: object) => {
    if (host !== name) return real(host, options)
    if (!known) throw Object.assign(new Error(`getaddrinfo EAI_AGAIN ${host}`), { code: 'EAI_AGAIN' })
    return [{ address: '127.0.0.1', family: 4 }]
  }
  Object.assign(dns, { lookup })
  onTestFinished(() => {
    Object.assign(dns, { lookup: real })
  })
  return {
    mend() {
      known = true
    },
  }
}
