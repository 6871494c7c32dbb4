import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { createSandbox, sandboxToken } from '../../src/sandbox/sandbox.ts'
import { freePort } from '../support/ports.ts'

/**
 * What many sources and sinks in one deployment cost one process:
 *
 *   node test/bench/many.ts [--sources 1000] [--sinks 100] [--seconds 180]
 *
 * Every source polls once a minute; each has a sink of its own among them. One alert fires every 20 s, which every source sees.
 */
const option = (name: string, usual: number) => {
  const at = process.argv.indexOf(name)
  return at < 0 ? usual : Number(process.argv[at + 1])
}
const [sources, sinks, seconds] = [
  option('--sources', 1_000),
  option('--sinks', 100),
  option('--seconds', 180),
]
const fireEverySeconds = 20
const readySecondsMax = 300
const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'many-'))
const children: ChildProcess[] = []
const print = (facts: object) => process.stdout.write(`${JSON.stringify(facts)}\n`)

const seen = new Map<string, number>()
const receiver = createServer((request, answer) => {
  request.resume()
  const id = String(request.headers['webhook-id'])
  seen.set(id, (seen.get(id) ?? 0) + 1)
  answer.writeHead(204).end()
})
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
const { port: hookPort } = receiver.address() as AddressInfo
const sandbox = createSandbox({
  history: 0,
  ratePerMinute: 0,
  requestsPerMinute: 10_000_000,
  unitsPerDay: 100_000_000,
})
const { url: api } = await sandbox.start()
const [redisPort, httpPort] = [await freePort(), await freePort()]
const bridge = `http://127.0.0.1:${httpPort}`
const redis = new Redis({ port: redisPort, maxRetriesPerRequest: null })
redis.on('error', () => {})

try {
  start('redis-server', ['--port', String(redisPort), '--save', '', '--appendonly', 'yes', '--dir', folder])
  await redis.ping()
  const config = join(folder, 'config.yaml')
  writeFileSync(config, configText())
  const startMs = performance.now()
  const flags = ['--max-semi-space-size=16', 'src/main.ts', 'run', '--config', config]
  const { pid = 0 } = start(process.execPath, flags)
  await until(async () => (await fetch(`${bridge}/readyz`)).ok, readySecondsMax)
  print({
    sources,
    sinks,
    readySeconds: round((performance.now() - startMs) / 1_000),
    processorSeconds: secondsOf(pid),
    ...(await costs(pid)),
  })

  let [fired, before, beforeMs] = [0, await commands(), performance.now()]
  for (let at = 0; at < seconds; at += fireEverySeconds) {
    if (at + 2 * fireEverySeconds < seconds) {
      sandbox.fire({})
      fired += 1
    }
    const used = secondsOf(pid)
    await pause(fireEverySeconds * 1_000)
    const done = await commands()
    const tookMs = performance.now() - beforeMs
    print({
      atSeconds: at + fireEverySeconds,
      arrived: seen.size,
      of: fired * sources,
      commandsPerSecond: round(((done - before) * 1_000) / tookMs),
      processorPercent: round(((secondsOf(pid) - used) / fireEverySeconds) * 100),
      ...(await costs(pid)),
    })
    ;[before, beforeMs] = [await commands(), performance.now()]
  }
  const twice = [...seen.values()].filter((times) => times > 1).length
  print({ arrived: seen.size, of: fired * sources, twice })
} finally {
  redis.disconnect()
  for (const child of children.toReversed()) {
    const ended = new Promise((resolve) => child.once('close', resolve))
    child.kill('SIGKILL')
    await ended
  }
  await sandbox.stop()
  receiver.closeAllConnections()
  receiver.close()
  rmSync(folder, { recursive: true, force: true })
}

function configText(): string {
  const each = (count: number, line: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => line(at)).join('\n')
  return `redis: { url: "redis://127.0.0.1:${redisPort}" }
http: { listen: "127.0.0.1:${httpPort}" }
sources:
${each(sources, (at) => `  account-${at}: { baseUrl: "${api}", token: ${sandboxToken}, startFrom: beginning, budget: { unitsPerDay: 10000 }, poll: { every: 60s, historyPages: 0 } }`)}
sinks:
${each(sinks, (at) => `  sink-${at}: { type: webhook, url: "http://127.0.0.1:${hookPort}/${at}", allowPrivateNetworks: true }`)}
routes:
${each(sinks, (at) => `  - { match: { source: [${Array.from({ length: Math.ceil((sources - at) / sinks) }, (_, times) => `account-${at + times * sinks}`).join(', ')}] }, sinks: [sink-${at}] }`)}
`
}

/** What is read of the bridge, how large it is and how long it takes, and what the bridge holds meanwhile. */
async function costs(pid: number) {
  const pages: Record<string, unknown> = {}
  for (const path of ['/metrics', '/', '/api/v1/status']) {
    const startMs = performance.now()
    const usedBefore = secondsOf(pid)
    const response = await fetch(`${bridge}${path}`)
    const { length } = await response.text()
    pages[path] =
      `${response.status}: ${Math.round(length / 1_024)} KB in ${Math.round(performance.now() - startMs)} ms, ${Math.round((secondsOf(pid) - usedBefore) * 1_000)} ms of processor`
  }
  return { megabytes: memoryOf(pid), connections: await connections(), ...pages }
}

function start(command: string, parameters: readonly string[]): ChildProcess {
  const child = spawn(command, parameters, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  children.push(child)
  return child
}

function round(value: number): number {
  return Number(value.toFixed(1))
}

/** User and system time of a process, of all its threads. */
function secondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

function memoryOf(pid: number): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024)
}

/** Of the bridge, without this program's own. */
async function connections(): Promise<number> {
  return Number(/connected_clients:(\d+)/.exec(await redis.info('clients'))?.[1]) - 1
}

async function commands(): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1])
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function until(condition: () => Promise<boolean>, secondsMax: number): Promise<void> {
  const startMs = performance.now()
  while (!(await condition().catch(() => false))) {
    if (performance.now() - startMs > secondsMax * 1_000) throw new Error(`not within ${secondsMax} s`)
    await pause(200)
  }
}
