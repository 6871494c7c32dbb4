import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from '../config/load.ts'
import { systemClock } from '../lib/clock.ts'
import { formatDuration } from '../lib/duration.ts'
import { errorCode, UserError } from '../lib/errors.ts'
import { type Arrival, type Receivers, startReceivers } from '../sandbox/receivers.ts'
import { createSandbox, sandboxToken } from '../sandbox/sandbox.ts'
import { createLogger, type LogLevel } from '../telemetry/log.ts'
import { printable } from '../telemetry/printable.ts'
import { type App, createApp } from './app.ts'
import { untilSignal } from './signal.ts'
import { Teardown } from './teardown.ts'

/**
 * The whole bridge on one machine: the sandbox fires alerts, and the real daemon sends them to receivers in place of a
 * trading system, a Slack channel and a mailbox. Nothing is simulated between the feed and the receivers.
 */
interface DemoOptions {
  /** Without it the demo runs until it is interrupted. */
  readonly seconds?: number
  readonly ratePerMinute: number
  readonly json: boolean
  readonly logLevel?: LogLevel
}

interface DemoAlert {
  readonly headline: string
  readonly atMs: number
  readonly arrivedAtMs: Map<Arrival['sink'], number>
  readonly charts: Set<Arrival['sink']>
}

const sinks = ['webhook', 'slack', 'email'] as const
/** Alerts of the last second still need a poll, a queue and Slack's pace of one message a second. */
const settleTimeoutMs = 30_000
const stopStepTimeoutMs = 25_000
/** Longer than the limits of its parts together. */
const bridgeStopTimeoutMs = 120_000

/** Resolves to true when everything that fired arrived at every sink. */
export async function runDemo(options: DemoOptions): Promise<boolean> {
  const log = createLogger({ level: options.logLevel ?? 'warn', terminal: process.stdout.isTTY === true })
  const teardown = new Teardown(log)
  const fired = new Map<string, DemoAlert>()
  const say = (line: string) => void (options.json || process.stdout.write(`${line}\n`))
  // SIGHUP: also when the terminal is closed, everything is stopped and removed.
  const interrupted = untilSignal(['SIGTERM', 'SIGINT', 'SIGHUP'])
  try {
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    const receivers = await startReceivers(secret, (arrival) => record(fired, arrival, say))
    teardown.push('receivers', () => receivers.stop())
    const sandbox = createSandbox({
      unitsPerDay: unitsPerDay,
      requestsPerMinute: 240,
      seed: Date.now() % 100_000,
    })
    teardown.push('sandbox', () => sandbox.stop())
    const { url } = await sandbox.start()
    sandbox.on('fired', ({ id, headline, firedAt }) => {
      fired.set(`demo.${id}`, {
        headline,
        atMs: Date.parse(firedAt),
        arrivedAtMs: new Map(),
        charts: new Set(),
      })
    })
    const { app, address } = await startBridge({ url, receivers, secret, log, teardown })
    say(introduction(address, options))
    // The first at once, so that there is something to see, however short the demo.
    sandbox.fire()
    sandbox.setRate(options.ratePerMinute)
    await Promise.race([
      interrupted,
      app.failed,
      ...(options.seconds ? [systemClock.sleep(options.seconds * 1_000)] : []),
    ])
    sandbox.stopFiring()
    await settle(fired)
    const summary = await summarise(fired, app, sandbox.unitsUsed)
    process.stdout.write(options.json ? `${JSON.stringify(summary)}\n` : describe(summary))
    return summary.complete
  } finally {
    await teardown.run(stopStepTimeoutMs)
  }
}

const unitsPerDay = 50_000

async function startBridge(parts: {
  url: string
  receivers: Receivers
  secret: string
  log: ReturnType<typeof createLogger>
  teardown: Teardown
}): Promise<{ app: App; address: string }> {
  const { url, receivers, secret, log, teardown } = parts
  const folder = temporaryFolder()
  teardown.push('data', () => rmSync(folder, { recursive: true, force: true }))
  const listen = `127.0.0.1:${(await isFree(8080)) ? 8080 : 0}`
  const loaded = parseConfig(configText({ folder, listen, url, secret, receivers }), { env: {}, folder })
  if (!loaded.ok)
    throw new Error(loaded.mistakes.map(({ path, message }) => `${path}: ${message}`).join('; '))
  const app = createApp(loaded.config, { log })
  teardown.push(
    'bridge',
    () => app.stop(),
    () => bridgeStopTimeoutMs,
  )
  return { app, address: await app.start() }
}

/** A container may have no folder that can be written. */
function temporaryFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'alert-bridge-demo-'))
  } catch (cause) {
    const why = `where nothing can be written (${errorCode(cause) ?? 'unknown'}): name another folder in TMPDIR.`
    throw new UserError(`The demo keeps its data in ${printable(tmpdir())}, ${why}`, { cause })
  }
}

function configText(parts: {
  folder: string
  listen: string
  url: string
  secret: string
  receivers: Receivers
}): string {
  const { folder, listen, url, secret, receivers } = parts
  return `
redis: { url: embedded, prefix: demo }
dataDir: ${JSON.stringify(folder)}
http: { listen: "${listen}" }
sources:
  demo:
    baseUrl: ${url}
    token: ${sandboxToken}
    startFrom: beginning
    budget: { unitsPerDay: ${unitsPerDay}, requestsPerMinute: 200 }
    poll: { every: 2s }
    # The sandbox's change is a percentage; the API's document does not show what it is.
    context: { names: { changePercent: [change] } }
sinks:
  webhook: { type: webhook, url: "${receivers.webhookUrl}", secret: "${secret}", allowPrivateNetworks: [127.0.0.0/8] }
  slack: { type: slack, url: "${receivers.slackUrl}", allowPrivateNetworks: [127.0.0.0/8] }
  email:
    type: email
    smtp: ${receivers.smtpUrl}
    startTls: "off"
    from: Alerts <alerts@example.com>
    to: [desk@example.com]
    allowPrivateNetworks: [127.0.0.0/8]
routes:
  - sinks: [webhook, slack, email]
    context: [price, chart, filing]
`
}

/** Messages without an id (Slack's) are found by their headline, which the sandbox does not fire twice at a time. */
function record(fired: Map<string, DemoAlert>, arrival: Arrival, say: (line: string) => void): void {
  const byId = arrival.id === undefined ? undefined : fired.get(arrival.id)
  const alert =
    byId ??
    [...fired.values()].find(
      ({ headline, arrivedAtMs }) =>
        !arrivedAtMs.has(arrival.sink) && plain(arrival.text).includes(plain(headline)),
    )
  alert?.arrivedAtMs.set(arrival.sink, arrival.atMs)
  if (arrival.hasChart) alert?.charts.add(arrival.sink)
  const time = new Date(arrival.atMs).toLocaleTimeString('en-GB', { timeZone: 'Asia/Tehran' })
  const lag = alert ? `${((arrival.atMs - alert.atMs) / 1_000).toFixed(1)}s`.padStart(6) : '     ?'
  say(
    `${time}  ${arrival.sink.padEnd(7)} ${lag}  ${printable(alert?.headline ?? arrival.text.split('\n')[0] ?? '')}`,
  )
}

/** Text without what sinks add to make it safe: direction marks, entities, additional spaces. */
export function plain(text: string): string {
  return text
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&')
    .replace(/[\p{Cf}\s]+/gu, '')
}

async function settle(fired: ReadonlyMap<string, DemoAlert>): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + settleTimeoutMs
  const missing = () => [...fired.values()].some(({ arrivedAtMs }) => arrivedAtMs.size < sinks.length)
  while (missing() && systemClock.monotonicMs() < deadlineMs) await systemClock.sleep(100)
}

async function summarise(fired: ReadonlyMap<string, DemoAlert>, app: App, unitsUsed: number) {
  const alerts = [...fired.values()]
  const seen = await app.metrics.alertsSeen.get()
  const count = (of: (alert: DemoAlert) => { has(sink: Arrival['sink']): boolean }) =>
    Object.fromEntries(sinks.map((sink) => [sink, alerts.filter((alert) => of(alert).has(sink)).length]))
  const sent = count(({ arrivedAtMs }) => arrivedAtMs)
  const lags = alerts
    .flatMap(({ atMs, arrivedAtMs }) =>
      [...arrivedAtMs.values()].map((arrivedMs) => (arrivedMs - atMs) / 1_000),
    )
    .sort((a, b) => a - b)
  const quantile = (share: number) => lags[Math.max(0, Math.ceil(lags.length * share) - 1)] ?? null
  return {
    fired: alerts.length,
    seen: seen.values.reduce((sum, { value }) => sum + value, 0),
    sent,
    withChart: count(({ charts }) => charts),
    lagSeconds: { p50: quantile(0.5), p95: quantile(0.95) },
    unitsUsed,
    complete: alerts.length > 0 && Object.values(sent).every((count) => count === alerts.length),
  }
}

function describe({
  fired,
  seen,
  sent,
  withChart,
  lagSeconds,
  unitsUsed,
  complete,
}: Awaited<ReturnType<typeof summarise>>): string {
  const seconds = (value: number | null) => (value === null ? '-' : formatDuration(value * 1_000))
  const conclusion = complete
    ? 'Everything that fired arrived everywhere.'
    : 'NOT everything that fired arrived.'
  return `
fired   ${fired}
seen    ${seen}
sent    ${bySink(sent)}
charts  ${bySink(withChart)} (an alert of a whole screen has none)
lag     p50 ${seconds(lagSeconds.p50)}, p95 ${seconds(lagSeconds.p95)} (from firing to acknowledged)
units   ${unitsUsed}
${conclusion}
`
}

function bySink(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([sink, count]) => `${sink} ${count}`)
    .join(', ')
}

function introduction(address: string, { seconds, ratePerMinute }: DemoOptions): string {
  const end = seconds ? `for ${seconds} seconds` : 'until you press Ctrl-C'
  return [
    `Status page: ${address}/   Metrics: ${address}/metrics`,
    `About ${ratePerMinute} alerts a minute fire ${end}; the feed is polled every 2 seconds.`,
    '',
    'time      sink       lag  headline',
  ].join('\n')
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
