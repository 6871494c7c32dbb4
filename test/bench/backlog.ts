import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createSandbox, sandboxToken } from '../../src/sandbox/sandbox.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { cpuOf, residentMb, startBridge } from './sends/process.ts'
import { median } from './sends/statistics.ts'
import { startCountingReceiver } from './soak/receiver.ts'

/**
 * A bridge as the image runs it catches up on alerts (`--alerts`) that fired before its start, at as many requests a minute as the
 * API allows, to three webhooks, while an alert fires now and then: how long it takes beside what the API would allow, what arrived,
 * how late the new ones did, and its memory. Ends with 1 when an alert did not arrive, or twice.
 */
const { values: given } = parseArgs({
  options: {
    alerts: { type: 'string', default: '100000' },
    /** Of each webhook; the config's own without it. */
    concurrency: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const alerts = Number(given.alerts)
const requestsPerMinute = 240
/** A tenth of the minute is kept for the head of the feed. */
const leftPerMinute = requestsPerMinute * 0.9
const pageRows = 100
const newEveryMs = 15_000
const lookMs = 100
const timeoutMs = 3 * 60_000 * Math.ceil(alerts / pageRows / leftPerMinute)
const folder = mkdtempSync(join(tmpdir(), 'backlog-'))
const sandbox = createSandbox({ history: alerts, requestsPerMinute })
const { url } = await sandbox.start()
const redis = await startRedis({ aof: true })
const receivers = await Promise.all([1, 2, 3].map(startCountingReceiver))
const config = join(folder, 'config.yaml')
const concurrency = given.concurrency === undefined ? '' : `, concurrency: ${given.concurrency}`
const sink = ({ url }: { url: string }, index: number) =>
  `s${index}: { type: webhook, url: "${url}/hook", allowPrivateNetworks: true${concurrency} }`
writeFileSync(
  config,
  `redis: { url: "${redis.url}", prefix: backlog }
dataDir: ${folder}
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${url}", token: ${sandboxToken}, startFrom: beginning, budget: { unitsPerDay: 1000000, requestsPerMinute: ${requestsPerMinute} }, poll: { historyPages: 0 } } }
sinks: { ${receivers.map(sink).join(', ')} }
routes: [{ sinks: [${receivers.map((_, index) => `s${index}`).join(', ')}] }]
`,
)
const bridge = startBridge(['--config', config])
const ended = once(bridge, 'exit')
let mostMb = 0
const looking = setInterval(() => {
  mostMb = Math.max(mostMb, residentMb(bridge.pid ?? 0))
}, lookMs)
const newLagsMs: number[] = []
let failed = true
try {
  await until('the bridge polls', () => sandbox.requests.length > 0, 30_000)
  const startMs = performance.now()
  const caughtUp = until('all have arrived', isEmpty, timeoutMs)
  caughtUp.catch(() => {})
  for (;;) {
    await Promise.race([sleep(newEveryMs), caughtUp])
    if (isEmpty()) break
    newLagsMs.push(await lagOfOne())
  }
  const seconds = (performance.now() - startMs) / 1_000
  clearInterval(looking)
  failed = report(seconds)
} finally {
  bridge.kill('SIGKILL')
  await ended
  for (const receiver of receivers) receiver.stop()
  await sandbox.stop()
  await redis.dispose()
  rmSync(folder, { recursive: true, force: true })
}
process.exit(failed ? 1 : 0)

function isEmpty(): boolean {
  return receivers.every(({ acknowledged }) => acknowledged.size >= alerts + newLagsMs.length)
}

/** From firing until the last of the receivers has acknowledged it. */
async function lagOfOne(): Promise<number> {
  const firedMs = performance.now()
  const id = `main.${sandbox.fire().id}`
  await until('a new alert arrives', () => receivers.every((each) => each.acknowledged.has(id)), 60_000)
  return performance.now() - firedMs
}

function report(seconds: number): boolean {
  const wanted = sandbox.rows.map(({ id }) => `main.${id}`)
  const missing = receivers.reduce(
    (sum, each) => sum + wanted.filter((id) => !each.acknowledged.has(id)).length,
    0,
  )
  const twice = receivers.reduce(
    (sum, each) => sum + [...each.acknowledged.values()].filter((n) => n > 1).length,
    0,
  )
  const times = sandbox.requests.map(({ atMs }) => atMs)
  const said = {
    ...{ alerts, seconds, missing, twice, calls: times.length },
    refused: sandbox.requests.filter(({ status }) => status === 429).length,
    /** Of what the API's minute leaves beside the tenth that is kept for the head. */
    share: alerts / pageRows / ((seconds / 60) * leftPerMinute),
    readSeconds: ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1_000,
    newSeconds: { median: median(newLagsMs) / 1_000, most: Math.max(...newLagsMs) / 1_000 },
    ...{ mostMb, cpuSeconds: cpuOf(bridge.pid ?? 0) / 1_000, node: process.version },
  }
  if (given.json) process.stdout.write(`${JSON.stringify(said, null, 2)}\n`)
  else
    process.stdout.write(
      `${alerts} alerts to ${receivers.length} webhooks in ${seconds.toFixed(1)} s: ${said.share.toFixed(2)} of what ${requestsPerMinute} requests a minute leave beside the head's tenth; ${missing} missing, ${twice} acknowledged twice
${newLagsMs.length} new alerts meanwhile: ${said.newSeconds.median.toFixed(1)} s in the median, ${said.newSeconds.most.toFixed(1)} s at most; ${mostMb.toFixed(0)} MB at most, ${said.cpuSeconds.toFixed(0)} s of CPU\n`,
    )
  return missing > 0 || twice > 0
}
