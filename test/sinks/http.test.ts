import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { settlesWithin } from '../../src/lib/time-limit.ts'
import { bodyBytesMax } from '../../src/sinks/transport/exchange.ts'
import { classifyFault } from '../../src/sinks/transport/fault.ts'
import { createGuard } from '../../src/sinks/transport/guard.ts'
import { createHttpClient, type HttpClient, type HttpOptions } from '../../src/sinks/transport/http-client.ts'
import { testAuthority, testServer } from '../support/certificates.ts'
import { withFiles } from '../support/files.ts'
import { type ForwardProxy, startProxy } from '../support/proxy.ts'
import { startRawServer, unusedPort } from '../support/raw-server.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

let receiver: WebhookReceiver
const transports: HttpClient[] = []

beforeEach(async () => {
  receiver = await startWebhookReceiver()
})

afterEach(async () => {
  await Promise.all(transports.splice(0).map((transport) => transport.close()))
  await receiver.stop()
})

function transportOf(options: Partial<HttpOptions> = {}): HttpClient {
  const transport = createHttpClient({
    guard: createGuard(true),
    connections: 2,
    timeoutMs: 2_000,
    ...options,
  })
  transports.push(transport)
  return transport
}

const postTo = (url: string, proxy?: string) => ({
  url,
  proxy,
  headers: {},
  body: '{}',
  signal: AbortSignal.timeout(5_000),
  nowMs: Date.now(),
})

test('no more of an answer is read than people are shown', async () => {
  receiver.answerWith({ kind: 'flood', status: 500 })
  const reply = await transportOf().post(postTo(receiver.url))
  expect(reply.body).toBe('x'.repeat(bodyBytesMax))
  // One that has come whole leaves its connection to the next request.
  receiver.answerWith({ status: 500, body: `${reply.body}y` })
  const [transport, before] = [transportOf({ connections: 1 }), receiver.connections()]
  for (let sent = 0; sent < 3; sent += 1)
    expect((await transport.post(postTo(receiver.url))).body).toBe(reply.body)
  expect(receiver.connections() - before).toBe(1)
})

test('what comes before the answer is not taken for it, and what is late of it is not waited for', async () => {
  const parts = [
    'HTTP/1.1 103 Early Hints\r\nretry-after: 9',
    'HTTP/1.1 202 Accepted\r\ncontent-length: 9',
    'late',
  ]
  const [first, more] = [parts.join('\r\n\r\n'), { text: 'r', everyMs: 1_000 }]
  const server = await startRawServer({ kind: 'say', after: 'request', first, more })
  const told: unknown[] = []
  const onStatus = (early: unknown) => void told.push(early)
  const message = { ...postTo(`http://127.0.0.1:${server.port}/`), bodyWaitMs: 20, onStatus }
  try {
    expect(await transportOf().post(message)).toEqual({ status: 202, retryAfterMs: undefined, body: 'late' })
    expect(told).toEqual([{ status: 202, retryAfterMs: undefined, body: '' }])
  } finally {
    await server.stop()
  }
})

test('a request that is called off while it waits for a connection ends then, and never begins', async () => {
  receiver.answerWith({ kind: 'hang' })
  const transport = transportOf({ connections: 1 })
  const [running, waiting] = [new AbortController(), new AbortController()]
  const first = transport.post({ ...postTo(receiver.url), signal: running.signal })
  const onSending = vi.fn()
  const second = transport.post({ ...postTo(receiver.url), signal: waiting.signal, onSending })
  waiting.abort(new Error('called off'))
  await expect(second).rejects.toThrow('called off')
  running.abort(new Error('called off'))
  await expect(first).rejects.toThrow('called off')
  await transport.close()
  expect(onSending).not.toHaveBeenCalled()
})

test('a name that the second of two name servers finds, after the first was waited for, is reached', async () => {
  const slow = async () => {
    await new Promise((resolve) => setTimeout(resolve, 6_000))
    return [{ address: '127.0.0.1', family: 4 }]
  }
  const transport = transportOf({ guard: createGuard(true, slow), timeoutMs: 10_000 })
  const place = {
    ...postTo(receiver.url.replace('127.0.0.1', 'receiver.test')),
    signal: AbortSignal.timeout(10_000),
  }
  expect(await transport.post(place)).toMatchObject({ status: 204 })
})

test('a connection is used again', async () => {
  const transport = transportOf({ connections: 1 })
  for (let count = 0; count < 5; count += 1) await transport.post(postTo(receiver.url))
  expect(receiver.connections()).toBe(1)
})

test('an address that turns private at the moment of connecting is refused', async () => {
  // The guard's list of answers and the address in the socket are two checks: this one passes the first.
  const lenient = createGuard(true)
  const guard = { ...createGuard(false), checkLiteral: () => {}, lookup: lenient.lookup }
  const error = await transportOf({ guard })
    .post(postTo(receiver.url))
    .catch((thrown: unknown) => thrown)
  expect(classifyFault(error).fault).toBe('blocked_address')
  expect(receiver.requests).toHaveLength(0)
})

test('a name is checked over TLS as well, before any byte is sent', async () => {
  const secure = await startWebhookReceiver({ tls: testServer })
  try {
    const error = await transportOf({ guard: createGuard(false) })
      .post(postTo(`https://localhost:${secure.port}/`))
      .catch((thrown: unknown) => thrown)
    expect(classifyFault(error).fault).toBe('blocked_address')
    expect(secure.connections()).toBe(0)
  } finally {
    await secure.stop()
  }
})

describe('through a proxy', () => {
  let proxy: ForwardProxy

  beforeEach(async () => {
    proxy = await startProxy()
  })
  afterEach(() => proxy.stop())

  test('a plain address is asked for by name, with the login of the proxy', async () => {
    const port = new URL(receiver.url).port
    const transport = transportOf({ guard: createGuard(false) })
    const through = `${proxy.url.replace('//', '//user:pass@')}/ignored`
    expect((await transport.post(postTo(`http://localhost:${port}/hook`, through))).status).toBe(204)
    expect(proxy.seen).toEqual([
      `POST http://localhost:${port}/hook Basic ${Buffer.from('user:pass').toString('base64')}`,
    ])
  })

  test('a secure address goes through a tunnel, checked end to end', async () => {
    const secure = await startWebhookReceiver({ tls: testServer })
    try {
      await withFiles({ ca: testAuthority }, async ({ ca }) => {
        const address = `https://localhost:${secure.port}/hook`
        const through = proxy.url
        expect((await transportOf({ tls: { ca } }).post(postTo(address, through))).status).toBe(204)
        const error = await transportOf()
          .post(postTo(address, through))
          .catch((thrown: unknown) => thrown)
        expect(classifyFault(error).fault).toBe('tls')
        expect(proxy.seen[0]).toBe(`CONNECT localhost:${secure.port} undefined`)
      })
    } finally {
      await secure.stop()
    }
  })

  test('another address of it counts from the next request on, and the one that runs is finished', async () => {
    const answered = Promise.withResolvers<void>()
    receiver.answerWith({ status: 204, after: answered.promise })
    const transport = transportOf()
    const address = `http://localhost:${new URL(receiver.url).port}/hook`
    const through = (user: string) => proxy.url.replace('//', `//${user}:pass@`)
    const first = transport.post(postTo(address, through('one')))
    await receiver.received(1)
    const second = transport.post(postTo(address, through('two')))
    await receiver.received(2)
    answered.resolve()
    expect([(await first).status, (await second).status]).toEqual([204, 204])
    const logins = proxy.seen.map((each) => Buffer.from(each.split(' ').at(-1) ?? '', 'base64').toString())
    expect(logins).toEqual(['one:pass', 'two:pass'])
  })

  test('one that never answers the call for a tunnel keeps neither a connection nor the end of the sink', async () => {
    const silent = await startRawServer({ kind: 'hang' })
    try {
      const transport = transportOf({ connections: 1, timeoutMs: 1_000 })
      const address = 'https://receiver.test/hook'
      const ask = () => transport.post(postTo(address, `http://127.0.0.1:${silent.port}`))
      await expect(ask()).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_TIMEOUT' })
      const second = ask()
      expect(await settlesWithin(4_000, transport.close())).toBe(true)
      await expect(second).rejects.toThrow()
    } finally {
      await silent.stop()
    }
  })

  test.each([
    ['drips', { more: { text: 'x', everyMs: 100 } }],
    ['floods', { more: { text: 'x'.repeat(65_536), everyMs: 0 } }],
    ['is silent then', { more: { text: '', everyMs: 100 } }],
  ])(
    'one whose refusal does not end and %s is let go at once, and does not keep the end of the sink',
    async (_what, more) => {
      const first = 'HTTP/1.1 407 no\r\ncontent-length: 99999999999\r\n\r\n'
      const endless = await startRawServer({ kind: 'say', after: 'request', first, ...more })
      try {
        const transport = transportOf({ timeoutMs: 60_000 })
        const proxy = `http://127.0.0.1:${endless.port}`
        for (let attempt = 0; attempt < 3; attempt += 1)
          await expect(transport.post(postTo('http://receiver.test/hook', proxy))).rejects.toThrow(/\(407\)/)
        await until('nothing of it is read any more', () => endless.open() === 0, 4_000)
        expect(endless.connections()).toBe(3)
        expect(await settlesWithin(4_000, transport.close())).toBe(true)
      } finally {
        await endless.stop()
      }
    },
  )

  test.each(['http://receiver.test/hook', 'https://receiver.test/hook'])(
    'one that cannot be reached, or is no TLS server, fails each attempt for %s, and nothing else',
    async (address) => {
      const garbled = await startRawServer({ kind: 'say', after: 'request', first: 'no TLS at all' })
      const loose: unknown[] = []
      const note = (thrown: unknown) => void loose.push(thrown)
      process.prependListener('uncaughtException', note)
      try {
        const port = await unusedPort()
        const places = [
          `http://127.0.0.1:${port}`,
          `https://127.0.0.1:${port}`,
          `https://127.0.0.1:${garbled.port}`,
        ]
        for (const place of places) {
          const transport = transportOf()
          for (let attempt = 0; attempt < 2; attempt += 1) {
            const error = await transport.post(postTo(address, place)).catch((thrown: unknown) => thrown)
            expect(classifyFault(error).fault).toBe(place.endsWith(`:${port}`) ? 'connect' : 'tls')
            expect(loose).toEqual([])
          }
        }
      } finally {
        process.off('uncaughtException', note)
        await garbled.stop()
      }
    },
  )

  test('a private literal is refused before the proxy hears of it', async () => {
    const transport = transportOf({ guard: createGuard(false) })
    const places = [receiver.url, 'https://10.0.0.5/', 'http://0x7f.1/', 'https://[::ffff:127.0.0.1]/']
    for (const url of places)
      await expect(transport.post(postTo(url, proxy.url))).rejects.toMatchObject({ fault: 'blocked_address' })
    expect(proxy.seen).toEqual([])
  })

  test('a proxy that refuses the tunnel is a fault of the connection', async () => {
    proxy.refuse()
    const error = await transportOf()
      .post(postTo('https://hooks.test/', proxy.url))
      .catch((thrown: unknown) => thrown)
    expect(classifyFault(error)).toEqual({
      fault: 'connect',
      text: 'the proxy refuses the login that the bridge gave, or asks for one (407)',
    })
  })
})
