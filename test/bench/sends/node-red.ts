import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { endsWithUs } from './process.ts'
import { rowOf } from './stored.ts'
import { sinks } from './work.ts'

/**
 * A flow of Node-RED that asks a feed each second for the rows after the last one, signs a post of each row to each sink, and asks
 * on when all of a page were answered. Its one memory is the last id, in the store of files that Node-RED has for it.
 */
export const nodeRedVersion = '5.0.7'
const cache = join(import.meta.dirname, '../../../.cache')
const program = join(cache, 'node-red/node_modules/node-red/red.js')
const fetchTimeoutMs = 300_000
const pageRows = 100

/** Fetches it from the npm registry, once. */
export function fetchNodeRed(): void {
  if (existsSync(program)) return
  mkdirSync(cache, { recursive: true })
  const work = mkdtempSync(join(cache, 'fetch-'))
  const quiet = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error']
  try {
    execFileSync('npm', ['install', '--prefix', work, ...quiet, `node-red@${nodeRedVersion}`], {
      ...{ cwd: work, timeout: fetchTimeoutMs, stdio: 'pipe' },
    })
    renameSync(work, join(cache, 'node-red'))
  } catch (cause) {
    rmSync(work, { recursive: true, force: true })
    throw new Error(`node-red@${nodeRedVersion} could not be fetched from the npm registry.`, { cause })
  }
}

/** `folder` has its flow and what it remembers, which it finds again after a kill. */
export function startNodeRed(folder: string, feed: string, receiver: string): ChildProcess {
  const settings = join(folder, 'settings.cjs')
  writeFileSync(
    settings,
    `module.exports = {
  uiHost: '127.0.0.1', uiPort: 0, httpAdminRoot: false, httpNodeRoot: false, telemetry: { enabled: false },
  functionGlobalContext: { crypto: require('node:crypto') },
  contextStorage: { default: { module: 'memory' }, file: { module: 'localfilesystem' } },
  logging: { console: { level: 'fatal' } },
}`,
  )
  writeFileSync(join(folder, 'flows.json'), JSON.stringify(flowOf(feed, receiver)))
  const args = [program, '--userDir', folder, '--settings', settings, 'flows.json']
  return endsWithUs(spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] }))
}

function flowOf(feed: string, receiver: string): object[] {
  const ask = `if (flow.get('asking')) return null
flow.set('asking', true)
return { method: 'GET', url: '${feed}/rows?after=' + (flow.get('last', 'file') ?? 0) }`
  const sign = `const { data } = msg.payload
if (data.length === 0) return flow.set('asking', false), null
flow.set('last', data.at(-1).id, 'file')
flow.set('left', data.length * ${sinks.length})
const { createHmac } = global.get('crypto')
return [data.flatMap((row) => ${JSON.stringify(sinks)}.map((sink) => {
  const id = 'main.' + row.id
  const payload = JSON.stringify({ type: 'alert.fired', timestamp: row.firedAt, data: { source: 'main', delivery: row } })
  const at = String(Math.floor(Date.now() / 1000))
  const signature = createHmac('sha256', 'a secret of thirty-two bytes, ok').update(id + '.' + at + '.' + payload).digest('base64')
  const headers = { 'content-type': 'application/json', 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': 'v1,' + signature }
  return { method: 'POST', url: '${receiver}/' + sink, headers, payload }
}))]`
  const next = `const left = flow.get('left') - 1
flow.set('left', left)
if (left > 0) return null
flow.set('asking', false)
return {}`
  const node = (id: string, type: string, wires: string[], more: object) => ({
    ...{ id, type, z: 'flow', wires: [wires] },
    ...more,
  })
  return [
    { id: 'flow', type: 'tab', label: 'poll and post' },
    node('tick', 'inject', ['ask'], { once: true, onceDelay: 0.1, repeat: '1', props: [] }),
    node('ask', 'function', ['get'], { func: ask, outputs: 1 }),
    node('get', 'http request', ['sign'], { method: 'use', ret: 'obj', persist: true }),
    node('sign', 'function', ['post'], { func: sign, outputs: 1 }),
    node('post', 'http request', ['next'], { method: 'use', ret: 'txt', persist: true }),
    node('next', 'function', ['ask'], { func: next, outputs: 1 }),
  ]
}

/** The rows that the flow polls, oldest first. */
export async function startFeed(count: number) {
  const server = createServer((request, response) => {
    const after = Number(new URL(request.url ?? '', 'http://feed').searchParams.get('after'))
    const length = Math.max(0, Math.min(pageRows, count - after))
    const data = Array.from({ length }, (_, index) => rowOf(after + 1 + index))
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}
