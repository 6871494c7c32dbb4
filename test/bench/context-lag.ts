import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../../src/app/app.ts'
import { parseConfig } from '../../src/config/load.ts'
import { createSandbox, sandboxToken } from '../../src/sandbox/sandbox.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { freePort } from '../support/ports.ts'

/**
 *   node test/bench/context-lag.ts [DELAY_MS]
 *
 * From firing to the webhook's answer, without and with `[price, chart]`, where board and prices each take so long (200 ms): some
 * alerts at a time, each group fired once the one before has arrived. The whole bridge, a real Redis, polls every 250 ms.
 */
const delayMs = Number(process.argv[2] ?? 200)
const folder = mkdtempSync(join(tmpdir(), 'context-lag-'))
const port = await freePort()
const redis = spawn('redis-server', ['--port', String(port), '--save', '', '--dir', folder], {
  stdio: 'ignore',
})
const say = (line: string) => process.stdout.write(`${line}\n`)
const waitMsMax = 60_000

try {
  for (const group of [1, 2, 5, 20]) {
    const without = await run(group, false)
    const withContext = await run(group, true)
    say(
      `${group} at a time: mean ${without.mean} ms without, ${withContext.mean} ms with (${withContext.found} of ${withContext.count} have both), p95 ${without.p95} and ${withContext.p95}; an endpoint takes ${delayMs}`,
    )
  }
} finally {
  redis.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

async function run(group: number, hasContext: boolean) {
  const sandbox = createSandbox({ history: 0, requestsPerMinute: 1_000_000 })
  const { url } = await sandbox.start()
  for (const endpoint of ['board', 'instruments/{instrument}/prices'] as const)
    sandbox.fault({ kind: 'slow', delayMs, endpoint, times: 0 })
  const firedMs = new Map<number, number>()
  const lagsMs: number[] = []
  let found = 0
  const receiver = createServer(async (request, answer) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    answer.writeHead(204).end()
    const { data } = JSON.parse(Buffer.concat(chunks).toString()) as {
      data: { delivery: { id: number }; context?: Record<string, unknown> }
    }
    lagsMs.push(performance.now() - (firedMs.get(data.delivery.id) ?? Number.NaN))
    if (data.context?.['price'] !== undefined && data.context['chart'] !== undefined) found += 1
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  const loaded = parseConfig(
    `
redis: { url: "redis://127.0.0.1:${port}", prefix: "lag-${group}-${hasContext}" }
http: { listen: "127.0.0.1:0" }
sources: { main: { baseUrl: "${url}", token: ${sandboxToken}, budget: { unitsPerDay: 1000000 }, poll: { every: 250ms, minInterval: 250ms, historyPages: 0 } } }
sinks: { hook: { type: webhook, url: "${hook}", allowPrivateNetworks: true } }
routes: [{ sinks: [hook]${hasContext ? ', context: [price, chart]' : ''} }]`,
    { env: {}, folder },
  )
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.mistakes))
  const app = createApp(loaded.config, { log: createLogger({ level: 'silent' }) })
  await app.start()
  await until(() => sandbox.requests.length > 1)
  for (let fired = 0; fired < 40; fired += group) {
    for (const { id } of sandbox.fireMany(group)) firedMs.set(id, performance.now())
    await until(() => lagsMs.length >= fired + group)
  }
  await app.stop()
  await sandbox.stop()
  receiver.closeAllConnections()
  receiver.close()
  const sorted = lagsMs.toSorted((a, b) => a - b)
  const mean = Math.round(sorted.reduce((sum, each) => sum + each, 0) / sorted.length)
  return {
    mean,
    p95: Math.round(sorted[Math.ceil(0.95 * sorted.length) - 1] ?? 0),
    found,
    count: sorted.length,
  }
}

async function until(condition: () => boolean): Promise<void> {
  const startMs = performance.now()
  while (!condition()) {
    if (performance.now() - startMs > waitMsMax) throw new Error(`not within ${waitMsMax} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
