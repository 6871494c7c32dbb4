import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createSandbox, sandboxToken } from '../../src/sandbox/sandbox.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { residentMb, startBridge } from './sends/process.ts'
import { faults, type Rig } from './soak/faults.ts'
import { startCountingReceiver } from './soak/receiver.ts'
import { meansOf, slopeOf } from './soak/slope.ts'

/**
 * A whole bridge, as the image runs it, for an hour (`--minutes`) with a fault every twenty seconds (`--every`): what of the
 * alerts arrived, and by how much its memory grew after the first third, in which caches fill. Ends with 1 when an alert
 * is missing or the bridge has ended.
 */
const { values: given } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    /** Alerts a minute. */
    rate: { type: 'string', default: '600' },
    /** Seconds between two faults. */
    every: { type: 'string', default: '20' },
    json: { type: 'boolean', default: false },
  },
})
const lengthMs = Number(given.minutes) * 60_000
const warmMs = lengthMs / 3
const everyMs = Number(given.every) * 1_000
const outageMsMax = 4_000
/** Of the memory: one look, and the stretch that makes one point of the line. */
const lookMs = 1_000
const pointMs = Math.max(2 * lookMs, lengthMs / 120)
/** From the last fault on. */
const arrivalTimeoutMs = 120_000
const folder = mkdtempSync(join(tmpdir(), 'soak-'))
const sandbox = createSandbox({ requestsPerMinute: 1_000_000 })
const { url } = await sandbox.start()
const redis = await startRedis({ aof: true })
const receivers = await Promise.all([1, 2, 3].map(startCountingReceiver))
const config = join(folder, 'config.yaml')
const sink = ({ url }: { url: string }, index: number) =>
  `s${index}: { type: webhook, url: "${url}/hook", allowPrivateNetworks: true, timeout: 2s, retry: { attempts: 100, initialDelay: 200ms, maxDelay: 2s } }`
writeFileSync(
  config,
  `redis: { url: "${redis.url}", prefix: soak }
dataDir: ${folder}
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${url}", token: ${sandboxToken}, startFrom: beginning, budget: { unitsPerDay: 1000000, requestsPerMinute: 240 }, poll: { every: 1s, minInterval: 1s, historyPages: 0 } } }
sinks: { ${receivers.map(sink).join(', ')} }
routes: [{ sinks: [${receivers.map((_, index) => `s${index}`).join(', ')}] }]
`,
)
const bridge = startBridge(['--config', config])
const ended = once(bridge, 'exit')
const rig: Rig = { sandbox, redis, receivers, bridge, outageMs: Math.min(outageMsMax, everyMs / 2) }
const looks: { atMs: number; value: number }[] = []
let made = 0
let missing: string[] = []
try {
  await until('the bridge polls', () => !isAlive() || sandbox.requests.length > 0, 30_000)
  const startMs = performance.now()
  const passedMs = () => performance.now() - startMs
  sandbox.setRate(Number(given.rate))
  const looking = setInterval(() => {
    looks.push({ atMs: passedMs(), value: residentMb(bridge.pid ?? 0) })
  }, lookMs)
  let saidMs = 0
  // A fault lasts some seconds, so the next one begins when this one is over at the earliest.
  for (let nextMs = 0; passedMs() < lengthMs && isAlive(); nextMs += everyMs) {
    await sleep(Math.max(0, Math.min(nextMs, lengthMs) - passedMs()))
    const fault = faults[made % faults.length]
    if (passedMs() >= lengthMs || fault === undefined) break
    await fault.make(rig)
    made += 1
    if (passedMs() - saidMs < 60_000 || given.json) continue
    saidMs = passedMs()
    process.stderr.write(
      `${(saidMs / 60_000).toFixed(0)} min: ${sandbox.rows.length} fired, ${looks.at(-1)?.value.toFixed(0)} MB; ${fault.name}\n`,
    )
  }
  clearInterval(looking)
  sandbox.stopFiring()
  sandbox.clearFaults()
  const wanted = sandbox.rows.map(({ id }) => `main.${id}`)
  const find = () => receivers.flatMap(({ acknowledged }) => wanted.filter((id) => !acknowledged.has(id)))
  await until('all have arrived', () => !isAlive() || find().length === 0, arrivalTimeoutMs).catch(() => {})
  missing = find()
  report(wanted.length)
} finally {
  const lived = isAlive()
  if (lived) bridge.kill('SIGKILL')
  await ended
  for (const receiver of receivers) receiver.stop()
  await sandbox.stop()
  await redis.dispose()
  rmSync(folder, { recursive: true, force: true })
  process.exitCode = lived && missing.length === 0 ? 0 : 1
}

function isAlive(): boolean {
  return bridge.exitCode === null && bridge.signalCode === null
}

function report(fired: number): void {
  const counted = looks.filter(({ atMs }) => atMs >= warmMs)
  const { anHour, from, to } = slopeOf(meansOf(counted, pointMs))
  const said = {
    minutes: Number(given.minutes),
    fired,
    missing: missing.length,
    /** Acknowledged twice or more by one receiver: what a fault cut off is sent again. */
    twice: receivers.reduce(
      (sum, each) => sum + [...each.acknowledged.values()].filter((n) => n > 1).length,
      0,
    ),
    faults: made,
    mb: {
      first: counted[0]?.value,
      last: counted.at(-1)?.value,
      most: Math.max(...looks.map((l) => l.value)),
    },
    mbAnHour: { slope: anHour, from, to },
    node: process.version,
  }
  if (given.json) return void process.stdout.write(`${JSON.stringify(said, null, 2)}\n`)
  const mb = (value: number | undefined) => `${(value ?? Number.NaN).toFixed(1)} MB`
  process.stdout.write(
    `${given.minutes} minutes, ${made} faults: ${fired} alerts to ${receivers.length} webhooks, ${said.missing} missing, ${said.twice} acknowledged twice
memory after the first third ${mb(said.mb.first)}, at the end ${mb(said.mb.last)}, most ${mb(said.mb.most)}; slope ${mb(anHour)} an hour (95 %: ${from.toFixed(1)} to ${to.toFixed(1)})\n`,
  )
}
