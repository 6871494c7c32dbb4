import dns from 'node:dns'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createFeedClient, type Exchange, type FeedClient } from '../../src/feed/client.ts'
import { FeedError } from '../../src/feed/errors.ts'
import { Secret } from '../../src/lib/secret.ts'
import type { InjectedFault } from '../../src/sandbox/sandbox.ts'
import { testServer } from '../support/certificates.ts'
import { connect, startSandbox } from '../support/sandbox.ts'
import { httpThread, standStill, startThreadServer } from '../support/thread-server.ts'

/** The error that a call ends in. */
async function failureOf(call: Promise<unknown>): Promise<FeedError> {
  const outcome = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (outcome instanceof FeedError) return outcome
  throw new Error(`expected a FeedError, got ${String(outcome)}`)
}

async function failWith(fault: InjectedFault): Promise<FeedError> {
  const sandbox = await startSandbox({ history: 3 })
  sandbox.fault(fault)
  return failureOf(connect(sandbox, { timeoutMs: 5_000 }).deliveries(1))
}

async function serve(listener: RequestListener): Promise<{ url: string }> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

describe('a call', () => {
  it('brings one page of deliveries, newest first', async () => {
    const sandbox = await startSandbox({ history: 250 })
    const page = await connect(sandbox).deliveries(3)
    expect(page).toMatchObject({ page: 3, perPage: 100, total: 250, lastPage: 3 })
    expect(page.rows.map(({ key }) => Number(key))).toEqual(
      Array.from({ length: 50 }, (_, index) => 50 - index),
    )
  })

  it('waits for a name that the second of two name servers finds, after the first was waited for', async () => {
    const sandbox = await startSandbox({ history: 3 })
    const found = [{ address: '127.0.0.1', family: 4 }]
    const slow = (_name: string, _options: object, done: (error: null, all: object[]) => void) =>
      setTimeout(() => done(null, found), 6_000)
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(slow as never)
    onTestFinished(() => lookup.mockRestore())
    const page = await connect({ url: sandbox.url.replace('127.0.0.1', 'feed.test') }).deliveries(1)
    expect(page.total).toBe(3)
  })

  it('brings one page of rules', async () => {
    const sandbox = await startSandbox()
    const page = await connect(sandbox).rules(1)
    expect(page).toMatchObject({ page: 1, total: sandbox.rules.length, skipped: 0 })
    expect(page.rules).toEqual(sandbox.rules)
  })

  it('asks for its page by number, says who asks, and takes gzip', async () => {
    const seen: unknown[] = []
    const api = await serve((request, response) => {
      const { authorization, accept, 'accept-encoding': encoding, 'user-agent': agent } = request.headers
      seen.push({ url: request.url, authorization, accept, encoding, agent })
      response.setHeader('content-type', 'application/json; charset=utf-8')
      response.end(JSON.stringify({ data: [], meta: { page: 1, perPage: 100, total: 0, lastPage: 1 } }))
    })
    await connect(api).deliveries(1)
    await connect({ url: `${api.url}/gateway/market/` }).rules(1)
    const common = {
      authorization: 'Bearer sandbox-token',
      accept: 'application/json',
      encoding: 'gzip, identity',
      agent: expect.stringMatching(/^alert-bridge\/\d+\.\d+\.\d+/),
    }
    expect(seen).toEqual([
      { url: '/api/v1/alerts/deliveries?page=1', ...common },
      { url: '/gateway/market/api/v1/alerts?page=1', ...common },
    ])
  })

  it('survives JSON of any depth: what is too deep is a quarantined row', async () => {
    const sandbox = await startSandbox()
    sandbox.fault({ kind: 'deep', depth: 200_000 })
    const { rows } = await connect(sandbox).deliveries(1)
    expect(rows).toMatchObject([{ ok: false }])
    expect(JSON.stringify(rows).length).toBeLessThan(1_000)
  })

  it('uses its connections again', async () => {
    const ports = new Set<number | undefined>()
    const api = await serve((request, response) => {
      ports.add(request.socket.remotePort)
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ data: [], meta: { page: 1, perPage: 100, total: 0, lastPage: 1 } }))
    })
    const client = connect(api)
    for (let n = 0; n < 10; n += 1) await client.deliveries(1)
    expect(ports.size).toBeLessThanOrEqual(2)
  })

  it('reads a token file at every call', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'feed-client-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'token')
    writeFileSync(file, 'old-token\n')
    const sandbox = await startSandbox()
    const client = connect(sandbox, { token: Secret.fromFile(file) })
    expect(await failureOf(client.deliveries(1))).toMatchObject({ code: 'unauthenticated', status: 401 })
    writeFileSync(file, 'sandbox-token\n')
    await client.deliveries(1)
    rmSync(file)
    const failure = await failureOf(client.deliveries(1))
    expect(failure).toMatchObject({ code: 'unauthenticated', status: undefined })
    expect(failure.message).toContain('ENOENT')
    expect(sandbox.requests).toHaveLength(2)
    // Who means a token gets that one or no call.
    writeFileSync(file, 'sandbox-token\n')
    const mark = client.tokenFingerprint()
    await client.deliveries(1, undefined, mark)
    writeFileSync(file, 'another-token\n')
    expect(await failureOf(client.deliveries(1, undefined, mark))).toMatchObject({ code: 'token_changed' })
    expect(sandbox.requests).toHaveLength(3)
  })

  it('names the file of a token that cannot be sent', async () => {
    const sandbox = await startSandbox()
    const folder = mkdtempSync(join(tmpdir(), 'feed-'))
    const file = join(folder, 'token')
    writeFileSync(file, 'two canaries\n')
    const failure = await failureOf(connect(sandbox, { token: Secret.fromFile(file) }).deliveries(1))
    rmSync(folder, { recursive: true })
    expect(failure).toMatchObject({ code: 'unauthenticated', message: expect.stringContaining(file) })
    expect(failure.message).not.toContain('canar')
  })

  it.each(['', 'two words', 'line\nbreak', 'tokén'])('is not sent with the token %j', async (value) => {
    const sandbox = await startSandbox()
    const failure = await failureOf(connect(sandbox, { token: new Secret(value) }).deliveries(1))
    expect(failure.code).toBe('unauthenticated')
    expect(sandbox.requests).toHaveLength(0)
  })

  it.each(['not a url', 'ftp://example.com', ''])('cannot be made against %j', (baseUrl) => {
    expect(() => createFeedClient({ source: 'main', baseUrl, token: new Secret('t') })).toThrow(/baseUrl/)
  })
})

describe('a call that fails', () => {
  it.each<[string, InjectedFault, Partial<FeedError>]>([
    ['500', { kind: 'status', status: 500 }, { code: 'server_error', status: 500 }],
    [
      "a proxy's 502",
      { kind: 'status', status: 502, body: '<h1>Bad gateway' },
      { code: 'server_error', status: 502 },
    ],
    ['401', { kind: 'status', status: 401 }, { code: 'unauthenticated', status: 401 }],
    ['a missing scope', { kind: 'status', status: 403 }, { code: 'scope_required', status: 403 }],
    ['a missing plan', { kind: 'status', status: 403, code: 'plan_required' }, { code: 'plan_required' }],
    [
      'a firewall',
      { kind: 'status', status: 403, body: '<html>' },
      { code: 'unexpected_status', status: 403 },
    ],
    ['404', { kind: 'status', status: 404 }, { code: 'not_found', status: 404 }],
    [
      '422',
      { kind: 'status', status: 422, detail: { fields: ['page'] } },
      { code: 'invalid_request', fields: ['page'] },
    ],
    [
      'the minute',
      { kind: 'status', status: 429, retryAfter: '7' },
      { code: 'rate_limited', limit: 'minute', retryAfterMs: 7_000 },
    ],
    [
      'the minute, unreadably',
      { kind: 'status', status: 429, retryAfter: 'in a while' },
      { code: 'rate_limited', limit: 'minute', retryAfterMs: undefined },
    ],
    [
      'the budget',
      { kind: 'status', status: 429, retryAfter: '7', detail: { retryAfter: 10_800 } },
      { code: 'rate_limited', limit: 'budget', retryAfterMs: 10_800_000 },
    ],
    ['201', { kind: 'status', status: 201, body: '{}' }, { code: 'unexpected_status', status: 201 }],
    ['304', { kind: 'status', status: 304, body: '' }, { code: 'unexpected_status', status: 304 }],
    ['half a JSON text', { kind: 'malformed' }, { code: 'not_json' }],
    ['an HTML page', { kind: 'html' }, { code: 'not_json' }],
    ['HTML that calls itself JSON', { kind: 'body', text: '<html>' }, { code: 'not_json' }],
    ['an empty body', { kind: 'body', text: '' }, { code: 'not_json' }],
    [
      'an encoding nobody asked for',
      { kind: 'body', text: '{}', contentEncoding: 'br' },
      { code: 'not_json' },
    ],
    [
      'text that calls itself gzip',
      { kind: 'body', text: '{}', contentEncoding: 'gzip' },
      { code: 'not_json' },
    ],
    ['a body that is cut', { kind: 'cut' }, { code: 'connection_lost' }],
    ['a body that never begins', { kind: 'cut', bytes: 0 }, { code: 'connection_lost' }],
    ['a body without end', { kind: 'huge', bytes: 300_000_000 }, { code: 'too_large' }],
    ['a gzip bomb', { kind: 'bomb', bytes: 2_000_000_000 }, { code: 'too_large' }],
    ['no meta', { kind: 'shape', shape: 'noMeta' }, { code: 'bad_shape', status: 200 }],
    ['no data', { kind: 'shape', shape: 'noData' }, { code: 'bad_shape' }],
    ['data as an object', { kind: 'shape', shape: 'dataObject' }, { code: 'bad_shape' }],
    ['figures as strings', { kind: 'shape', shape: 'stringMeta' }, { code: 'bad_shape' }],
    ['another page length', { kind: 'shape', shape: 'perPage50' }, { code: 'bad_shape' }],
    ['lastPage 0', { kind: 'shape', shape: 'lastPage0' }, { code: 'bad_shape' }],
    ['another page', { kind: 'shape', shape: 'wrongPage' }, { code: 'bad_shape' }],
    ['too many rows', { kind: 'shape', shape: 'extraRows' }, { code: 'bad_shape' }],
    ['rows that are missing', { kind: 'shape', shape: 'emptyData' }, { code: 'bad_shape' }],
  ])('tells %s', async (_what, fault, expected) => {
    expect(await failWith(fault)).toMatchObject(expected)
  })

  it('leaves the client fit for the next one', async () => {
    const sandbox = await startSandbox({ history: 3 })
    const client = connect(sandbox)
    const faults: InjectedFault[] = [{ kind: 'cut' }, { kind: 'html' }, { kind: 'huge', bytes: 50_000_000 }]
    for (const fault of faults) {
      sandbox.fault(fault)
      await failureOf(client.deliveries(1))
      expect((await client.deliveries(1)).rows).toHaveLength(3)
    }
  })

  it('is one attempt: the sandbox sees one request a call', async () => {
    const sandbox = await startSandbox()
    sandbox.fault({ kind: 'status', status: 500, times: 0 })
    await failureOf(connect(sandbox).deliveries(1))
    expect(sandbox.requests).toHaveLength(1)
  })

  it('has a message without the token, however the API answers', async () => {
    const message = 'who is sandbox-token?'
    expect((await failWith({ kind: 'status', status: 401, message })).message).not.toContain('sandbox-token')
  })

  it.each([301, 302, 303, 307, 308])('stays at its host when the API answers %i', async (status) => {
    const other = await startSandbox()
    const sandbox = await startSandbox()
    sandbox.fault({ kind: 'status', status, location: `${other.url}/api/v1/alerts/deliveries` })
    expect(await failureOf(connect(sandbox).deliveries(1))).toMatchObject({ code: 'redirect', status })
    expect(other.requests).toHaveLength(0)
  })

  it('tells that nobody listens', async () => {
    const sandbox = await startSandbox()
    await sandbox.stop()
    expect(await failureOf(connect(sandbox).deliveries(1))).toMatchObject({
      code: 'connect',
      status: undefined,
    })
  })

  it('tells that a name is unknown', async () => {
    expect((await failureOf(connect({ url: 'http://nowhere.invalid' }).deliveries(1))).code).toBe('connect')
  })

  it('tells that there is no TLS at the other end', async () => {
    const sandbox = await startSandbox()
    const url = sandbox.url.replace('http:', 'https:')
    expect((await failureOf(connect({ url }).deliveries(1))).code).toBe('connect')
  })

  it('does not trust a certificate that nobody vouches for: the token is not sent', async () => {
    let requests = 0
    const server = createTlsServer(testServer, (_request, response) => {
      requests += 1
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const url = `https://localhost:${(server.address() as AddressInfo).port}`
    expect((await failureOf(connect({ url }).deliveries(1))).code).toBe('connect')
    expect(requests).toBe(0)
  })

  it('tells that the other end speaks no HTTP', async () => {
    const server = createTcpServer((socket) => socket.on('error', () => {}).end('+PONG\r\n'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect((await failureOf(connect({ url }).deliveries(1))).code).toBe('connection_lost')
  })

  it('is known by its status even when its body never ends', async () => {
    const api = await serve((_request, response) => {
      response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '9' }).write('{"error":')
    })
    expect(await failureOf(connect(api, { timeoutMs: 300 }).deliveries(1))).toMatchObject({
      code: 'rate_limited',
      retryAfterMs: 9_000,
    })
  })

  it('never holds more than its limit of a gzip bomb', async () => {
    const before = process.memoryUsage().rss
    await failWith({ kind: 'bomb', bytes: 4_000_000_000 })
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000)
  })
})

describe('a gzip answer', () => {
  it('is unpacked', async () => {
    const sandbox = await startSandbox({ history: 120 })
    sandbox.fault({ kind: 'gzip' })
    expect((await connect(sandbox).deliveries(1)).rows).toHaveLength(100)
  })

  it('that ends early is a lost connection, even when its length is right', async () => {
    const half = gzipSync(JSON.stringify({ data: 'x'.repeat(10_000) })).subarray(0, 40)
    const api = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(half)
    })
    expect((await failureOf(connect(api).deliveries(1))).code).toBe('connection_lost')
  })
})

describe('the limits of a call', () => {
  it('are bytes of the body, to the byte', async () => {
    const body = JSON.stringify({ data: [], meta: { page: 1, perPage: 100, total: 0, lastPage: 1 } })
    const api = await serve((_request, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(body)
    })
    await connect(api, { bodyBytesMax: body.length }).deliveries(1)
    expect((await failureOf(connect(api, { bodyBytesMax: body.length - 1 }).deliveries(1))).code).toBe(
      'too_large',
    )
  })

  it.each<[string, InjectedFault]>([
    ['comes late', { kind: 'slow', delayMs: 60_000 }],
    ['never comes', { kind: 'hang' }],
    ['stops after its headers', { kind: 'hang', headersSent: true }],
    ['drips', { kind: 'drip', intervalMs: 20 }],
  ])('are the time until its last byte: an answer that %s', async (_what, fault) => {
    const sandbox = await startSandbox({ history: 3 })
    sandbox.fault(fault)
    const client = connect(sandbox, { timeoutMs: 250 })
    const startedMs = performance.now()
    expect((await failureOf(client.deliveries(1))).code).toBe('timeout')
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    // Its limit is short: on a busy machine it may be over before the sandbox was asked.
    await vi.waitFor(async () => expect((await client.deliveries(1)).rows).toHaveLength(3), 10_000)
  })

  it('do not count against an answer that came in time while the process stood still', async () => {
    const body = JSON.stringify({ data: [], meta: { page: 1, perPage: 100, total: 0, lastPage: 1 } })
    const api = await startThreadServer(httpThread, { status: 200, body })
    const came = api.nextRequest()
    const call = connect({ url: `http://127.0.0.1:${api.port}` }, { timeoutMs: 2_000 }).deliveries(1)
    await came
    standStill(2_500)
    expect((await call).total).toBe(0)
  })
})

describe('giving up', () => {
  async function startHanging(): Promise<{ client: FeedClient; arrived: Promise<void> }> {
    const sandbox = await startSandbox()
    sandbox.fault({ kind: 'hang', times: 0 })
    const arrived = new Promise<void>((resolve) => void sandbox.on('request', () => resolve()))
    return { client: connect(sandbox), arrived }
  }

  it("ends the call at once by the caller's signal", async () => {
    const { client, arrived } = await startHanging()
    const controller = new AbortController()
    const failure = failureOf(client.deliveries(1, controller.signal))
    await arrived
    controller.abort()
    expect((await failure).code).toBe('aborted')
  })

  it('asks nothing when the signal was aborted before', async () => {
    const sandbox = await startSandbox()
    expect((await failureOf(connect(sandbox).deliveries(1, AbortSignal.abort()))).code).toBe('aborted')
    expect(sandbox.requests).toHaveLength(0)
  })

  it('closes under the calls that still run, and refuses later ones', async () => {
    const { client, arrived } = await startHanging()
    const failure = failureOf(client.deliveries(1))
    await arrived
    await client.close()
    expect((await failure).code).toBe('aborted')
    expect((await failureOf(client.deliveries(1))).code).toBe('aborted')
  })
})

describe('every call', () => {
  it('is told once, with its endpoint, its status and its duration', async () => {
    const sandbox = await startSandbox()
    const told: Exchange[] = []
    const onExchange = (exchange: Exchange) => void told.push(exchange)
    const client = connect(sandbox, { onExchange })
    await client.deliveries(1)
    await client.rules(1)
    const answers: InjectedFault[] = [
      { kind: 'status', status: 500 },
      { kind: 'shape', shape: 'noMeta' },
    ]
    for (const fault of answers) {
      sandbox.fault(fault)
      await failureOf(client.deliveries(1))
    }
    sandbox.fault({ kind: 'hang' })
    await failureOf(connect(sandbox, { timeoutMs: 200, onExchange }).deliveries(1))
    expect(told.map(({ endpoint, status }) => [endpoint, status])).toEqual([
      ['alerts/deliveries', 200],
      ['alerts', 200],
      ['alerts/deliveries', 500],
      ['alerts/deliveries', 200],
      ['alerts/deliveries', 'error'],
    ])
    expect(told.every(({ durationMs }) => durationMs >= 0 && durationMs < 5_000)).toBe(true)
  })
})

describe('what a failure says of the answer', () => {
  const pageOf = (meta: object) =>
    JSON.stringify({ data: [], meta: { page: 1, perPage: 100, total: 0, ...meta } })

  it.each<[string, string, string]>([
    ['a page of another size', pageOf({ perPage: 50, lastPage: 1 }), 'meta.perPage: expected 100, found 50'],
    ['figures as text', pageOf({ lastPage: '1' }), 'meta.lastPage: expected number, found "1"'],
    ['something missing', pageOf({}), 'meta.lastPage: expected number, found nothing'],
  ])('is where it is wrong: %s', async (_, body, words) => {
    const { url } = await serve((_request, response) => {
      response.setHeader('content-type', 'application/json').end(body)
    })
    expect((await failureOf(client(url).deliveries(1))).message).toContain(words)
  })

  it('is what it is instead of JSON', async () => {
    expect((await failWith({ kind: 'html' })).message).toContain('text/html')
  })

  it('is never the token, nor the beginning of it, nor the key of a gateway in the address', async () => {
    const token = 'canary'.repeat(40)
    const key = 'gateway-canary-4711'
    const answers = [token, `a${token}`, key]
    let asked = 0
    const { url } = await serve((_request, response) => {
      const said = answers[asked - 1] ?? token
      const type = asked === 0 ? `text/${said}` : 'application/json'
      asked += 1
      response.setHeader('content-type', type).end(pageOf({ lastPage: said }))
    })
    const feed = client(`${url}/market/${key}`, token)
    for (let call = 0; call <= answers.length; call += 1) {
      const { message } = await failureOf(feed.deliveries(1))
      expect(message).toContain('[redacted]')
      expect(message).not.toContain('canary')
    }
  })

  function client(baseUrl: string, token = 'a-token'): FeedClient {
    const feed = createFeedClient({ source: 'main', baseUrl, token: new Secret(token) })
    onTestFinished(() => feed.close())
    return feed
  }
})
