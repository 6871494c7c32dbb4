import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { deadLettersCommand } from '../../src/cli/dead-letters.ts'
import { orphansCommand } from '../../src/cli/orphans.ts'
import { replayCommand } from '../../src/cli/replay.ts'
import { createQueues } from '../../src/delivery/queue/queues.ts'
import { versionHeader } from '../../src/telemetry/version.ts'
import { endWaiting, jobs } from '../delivery/rig.ts'
import { startApp } from '../support/app.ts'
import { run } from '../support/cli.ts'
import { writeConfig } from '../support/process.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'

/** Orders on more deliveries than one call of the API takes. */

const server = useRedis()

/** A bridge whose sink is paused, with that many dead letters. */
async function rig(count: number) {
  const sandbox = await startSandbox()
  const prefix = freshPrefix()
  const redis = server.client()
  const queues = createQueues({ redis, prefix, sinks: ['hook'] })
  onTestFinished(() => queues.close())
  await queues.queue('hook').pause()
  await queues.enqueue(jobs('hook', 1, count))
  await endWaiting({ redis, queues }, 'hook')
  const config = writeConfig(`
    redis: { url: "${server.url}", prefix: ${prefix} }
    http: { listen: "127.0.0.1:0", adminToken: operator-canary }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token } }
    sinks: { hook: { type: webhook, url: "http://127.0.0.1:9", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `)
  const { url } = await startApp(readFileSync(config, 'utf8'))
  return { url, config, queue: queues.queue('hook') }
}

/** What a proxy passes on: all but what concerns the connection. */
function ownHeaders(answer: Response): Record<string, string> {
  const all = Object.entries(Object.fromEntries(answer.headers))
  return Object.fromEntries(
    all.filter(([name]) => !['connection', 'keep-alive', 'content-length'].includes(name)),
  )
}

/** Passes requests on to the bridge; `spoil` says whose answers are lost or become another. */
async function badLine(
  url: string,
  spoil: (call: number) => 'lost' | 'half' | 500 | undefined,
): Promise<string> {
  let calls = 0
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await request.toArray())
    const { authorization = '', 'idempotency-key': key } = request.headers
    const keyed = key === undefined ? {} : { 'idempotency-key': String(key) }
    const headers = { authorization, 'content-type': 'application/json', ...keyed }
    const answer = await fetch(`${url}${request.url}`, { method: 'POST', headers, body })
    calls += 1
    const spoilt = spoil(calls)
    const bytes = Buffer.from(await answer.arrayBuffer())
    if (spoilt === 'lost') response.destroy()
    else if (spoilt === 'half')
      response
        .writeHead(answer.status, ownHeaders(answer))
        .write(bytes.subarray(0, 9), () => response.destroy())
    else response.writeHead(spoilt ?? answer.status, ownHeaders(answer)).end(bytes)
  }
  const line = createServer((request, response) => void pass(request, response))
  await once(line.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void line.close())
  return `http://127.0.0.1:${(line.address() as AddressInfo).port}`
}

it('retry and replay go on to the last one, list says how many there are, and a lost answer sends nothing twice', async () => {
  const { url, config, queue } = await rig(1_100)
  const at = ['--url', url, '--config', config]
  expect((await run(deadLettersCommand(), 'list', ...at)).out).toMatch(/50 of 1,100; --all lists them all/)
  expect((await run(deadLettersCommand(), 'list', 'main.7', ...at)).out).toContain('main.7')
  const all = JSON.parse((await run(deadLettersCommand(), 'list', '--all', '--json', ...at)).out) as unknown[]
  expect(all).toHaveLength(1_100)
  expect((await run(deadLettersCommand(), 'drop', 'main.90001', ...at)).out.trim()).toBe(
    '0 dropped; not known (any more): main.90001',
  )

  const spoilt = ['half', 'lost'] as const
  const line = await badLine(url, (call) => spoilt[call - 3])
  const replayed = await run(replayCommand(), '--since', '2h', '--url', line, '--config', config)
  // The bridge gives the answer that was lost once more.
  expect(replayed.out).toBe('1,100 queued\n')
  expect(await queue.getWaitingCount()).toBe(1_100)

  await endWaiting({ redis: server.client(), queues: { queue: () => queue } as never }, 'hook')
  const retried = await run(deadLettersCommand(), 'retry', '--all', '--json', ...at)
  expect(JSON.parse(retried.out)).toMatchObject({ retried: 1_100, gone: 0 })
}, 30_000)

it('an id that is not known is a failure, also beside others that are handled, and with nothing changed', async () => {
  const { url, config } = await rig(2)
  const at = ['--url', url, '--config', config]
  for (const order of [
    () => run(replayCommand(), 'main.1', 'main.90001', '--dry-run', ...at),
    () => run(deadLettersCommand(), 'retry', 'main.1', 'main.90001', '--dry-run', '--json', ...at),
    () => run(deadLettersCommand(), 'retry', 'main.1', 'main.90001', ...at),
    () => run(replayCommand(), 'main.90001', '--json', ...at),
    () => run(deadLettersCommand(), 'drop', 'main.90001', ...at),
  ]) {
    const { out, exitCode } = await order()
    expect({ out, exitCode }).toEqual({ out: expect.stringContaining('main.90001'), exitCode: 1 })
  }
  expect((await run(deadLettersCommand(), 'drop', 'main.2', ...at)).exitCode).toBe(0)
})

it('an order on orphans that breaks off goes on by the same command, which takes no time', async () => {
  const begun = { moved: 0, gone: 0, looked: 0, total: 2_000, at: '2026-11-22T00:00:00.000Z', cursor: 'next' }
  let calls = 0
  const bridgeThatFails = createServer((request, response) => {
    calls += 1
    request.resume()
    const headers = { [versionHeader]: 'test', 'content-type': 'application/json' }
    response.writeHead(calls === 1 ? 200 : 500, headers).end(JSON.stringify(calls === 1 ? begun : {}))
  })
  await once(bridgeThatFails.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void bridgeThatFails.close())
  const url = `http://127.0.0.1:${(bridgeThatFails.address() as AddressInfo).port}`
  const broken = await run(orphansCommand(), 'move', 'old', '--to', 'hook', '--url', url)
  expect(String(broken.thrown)).toMatch(/0 were moved before that; the same command goes on\.$/)
})

it('an order that breaks off says what was done and how to go on, and so it does', async () => {
  const { url, config, queue } = await rig(1_100)
  const line = await badLine(url, (call) => (call > 2 ? 500 : undefined))
  const broken = await run(replayCommand(), '--since', '2h', '--url', line, '--config', config)
  const said = String(broken.thrown)
  // The first portion had up to 1,000, or fewer where these took long; the next was carried out, and its answer lost.
  const before = / ([\d,]+) were queued before that; the same command with --since/.exec(said)?.[1]
  expect(Number(before?.replace(',', ''))).toBeGreaterThan(1)
  expect(Number(before?.replace(',', ''))).toBeLessThanOrEqual(1_000)
  const [, since = '', began = ''] = /--since (\S+) --at (\S+) goes on/.exec(said) ?? []
  const again = await run(replayCommand(), '--since', since, '--at', began, '--url', url, '--config', config)
  expect(again.out).toMatch(/^\d+ queued/)
  expect(await queue.getWaitingCount()).toBe(1_100)
}, 30_000)

/** A bridge that has begun a portion when its answer is lost, carries it out again, and says of that one what it did. */
async function forgetful(count: string): Promise<{ url: string; keys: unknown[] }> {
  const begun = { [count]: 0, gone: 0, looked: 0, total: 9, at: '2026-11-22T00:00:00.000Z', cursor: 'next' }
  const ended = { ...begun, [count]: 9, looked: 9, cursor: null }
  const keys: unknown[] = []
  const answers = [[200, begun], 'lost', [409, { detail: 'still being carried out' }], [200, ended]] as const
  const bridge = createServer((request, response) => {
    const answer = answers[keys.length] ?? 'lost'
    keys.push(request.headers['idempotency-key'])
    request.resume()
    if (answer === 'lost') return void response.destroy()
    const [status, body] = answer
    const more = status === 409 ? { 'retry-after': '1' } : {}
    const headers = { [versionHeader]: 'test', 'content-type': 'application/json', ...more }
    response.writeHead(status, headers).end(JSON.stringify(body))
  })
  await once(bridge.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void bridge.close())
  return { url: `http://127.0.0.1:${(bridge.address() as AddressInfo).port}`, keys }
}

it('a portion whose answer was lost is waited for while it runs, and counted where its answer comes after all', async () => {
  const { url, keys } = await forgetful('queued')
  // It was begun anew, so what the first had done is in no answer.
  expect((await run(replayCommand(), '--since', '2h', '--url', url)).out).toBe('at least 9 queued\n')
  expect([keys[0], new Set(keys.slice(1)).size]).toEqual([undefined, 1])
})

it.each([
  ['queued', replayCommand, ['--since', '2h']],
  ['retried', deadLettersCommand, ['retry', '--all']],
  ['dropped', deadLettersCommand, ['drop', '--all']],
  ['moved', orphansCommand, ['move', 'gone', '--to', 'hook']],
] as const)('so does its JSON say that more may be %s than it counts', async (count, command, order) => {
  const { url } = await forgetful(count)
  const { out } = await run(command(), ...order, '--url', url, '--json')
  expect(JSON.parse(out)).toMatchObject({ [count]: 9, uncounted: true })
})

const halfway = { gone: 0, looked: 0, total: 5, at: '2026-11-22T00:00:00.000Z', cursor: 'same' }

it.each([
  ['an empty object', {}],
  ['null', null],
  ['one portion for ever', halfway],
  ['one page for ever', { data: [], cursor: 'same' }],
])('what only says that it is a bridge, and answers with %s, is asked no more', async (_, answer) => {
  let calls = 0
  const forger = createServer((request, response) => {
    calls += 1
    request.resume()
    // A command that asks for ever ends here, too late.
    if (calls > 20) return void response.writeHead(500).end()
    const headers = { [versionHeader]: 'test', 'content-type': 'application/json' }
    response.writeHead(200, headers).end(JSON.stringify(answer))
  })
  await once(forger.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void forger.close())
  const at = ['--url', `http://127.0.0.1:${(forger.address() as AddressInfo).port}`]
  const asked = [
    () => run(replayCommand(), 'main.1', ...at),
    () => run(replayCommand(), 'main.1', '--dry-run', ...at),
    () => run(deadLettersCommand(), 'retry', '--all', ...at),
    () => run(deadLettersCommand(), 'drop', '--all', ...at),
    () => run(deadLettersCommand(), 'list', '--all', ...at),
    () => run(orphansCommand(), 'move', 'old', '--to', 'new', ...at),
    () => run(orphansCommand(), 'drop', 'old', ...at),
    () => run(orphansCommand(), 'list', ...at),
  ]
  for (const ask of asked) {
    calls = 0
    const { thrown } = await ask()
    expect(String(thrown)).toMatch(/no bridge of this version|does not get on with it/)
    expect(calls).toBeLessThan(20)
  }
})
