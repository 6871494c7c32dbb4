import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { listenAt } from '../../src/admin/listen.ts'
import type { AdminDeps, AdminPorts } from '../../src/admin/ports.ts'
import type { AuditRow } from '../../src/admin/views/audit-view.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { until } from '../support/until.ts'
import { problemOf, rig, token } from './rig.ts'
import { sink, status } from './views.ts'

/** The same server, on a real port. */
let stop: () => Promise<unknown> = async () => undefined
afterEach(() => stop())

async function listen(changes: Partial<AdminPorts> = {}, deps: Partial<AdminDeps> = {}) {
  const { app, calls } = rig(changes, deps)
  stop = () => app.close()
  const base = await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return { app, base, port, calls }
}

test('nothing listens until it is told to', async () => {
  const { app } = rig()
  await app.ready()
  expect(app.server.listening).toBe(false)
})

test('health, metrics, page and API answer over HTTP', async () => {
  const { base } = await listen()
  for (const path of ['/healthz', '/readyz', '/metrics', '/', '/api/v1/status'])
    expect((await fetch(base + path)).status, path).toBe(200)
})

test('curl -X POST without a body and without a type reloads', async () => {
  const { base, calls } = await listen()
  const response = await fetch(`${base}/-/reload`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  })
  expect(await response.json()).toEqual({ ok: true })
  expect(calls).toEqual([['reload']])
})

test('who listens hears of every change, once, and of the end; while nobody listens nothing is read', async () => {
  let reads = 0
  let waiting = 0
  const done: unknown[] = []
  const silences: unknown[] = []
  /** Far more than pass while a change is looked for. */
  const beatsMax = 100
  let passedMs = 0
  const sleep = (ms: number, signal?: AbortSignal) => {
    passedMs += ms
    return systemClock.sleep(2, signal)
  }
  const { app, base } = await listen(
    {
      async status() {
        reads += 1
        // What becomes older, or nearer, with each look, as where a sink is slow.
        const sinks = [sink({ waiting, drainSeconds: 3_600 - reads / 100 })]
        const findings = [{ text: `for ${reads}s`, data: { oldestSeconds: 3_600 + reads / 100 } }]
        const ready = { ok: false, reason: `for ${reads}s` }
        return { ...status({ sinks }), ready, verdict: { findings } as never, uptimeSeconds: reads }
      },
      audit: { add: async () => {}, list: async () => done as never },
      silences: { list: async () => silences as never } as never,
    },
    { clock: { ...systemClock, sleep, now: () => 0, monotonicMs: () => passedMs } },
  )
  expect(reads).toBe(0)
  const response = await fetch(`${base}/api/v1/events`)
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let heard = ''
  const hear = async (count: number) => {
    while (heard.split('event: change\ndata: ').length <= count) {
      heard += (await reader?.read())?.value ?? ''
      if (heard.split('event: beat').length > beatsMax) throw new Error(`change ${count} is not heard of`)
    }
  }
  await hear(1)
  const seen = reads
  while (reads < seen + 5) await systemClock.sleep(2)
  waiting = 7
  await hear(2)
  // What operators did is shown, and a silence also when its end comes, which nobody did.
  done.push({ action: 'resume' })
  await hear(3)
  silences.push({ id: 's1' })
  await hear(4)
  expect(heard.match(/event: change/g)).toHaveLength(4)
  // A page cannot see comments: by these it notices that a bridge hangs, or that the network lost the connection.
  // One comes at once, before all changes: a proxy that gathers what it passes on is noticed by that, too.
  expect(heard).toMatch(/^retry: \d+\n\nevent: beat\ndata: ./)
  const beats = () => heard.match(/event: beat\ndata: ./g)?.length ?? 0
  const before = beats()
  while (beats() <= before) heard += (await reader?.read())?.value ?? ''
  await app.close()
  while (!(await reader?.read())?.done);
})

test('an empty body that calls itself JSON is no body', async () => {
  const { base } = await listen()
  const response = await fetch(`${base}/api/v1/sinks/ops-slack/pause`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  })
  expect(response.status).toBe(200)
})

test('a stranger is refused before the body is read', async () => {
  const { port } = await listen()
  const socket = connect(port, '127.0.0.1')
  socket.write(
    'POST /api/v1/replay HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n{',
  )
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1\.1 401 /)
  socket.destroy()
})

test('what is sent to an address that is not there is refused before the body is read', async () => {
  const { port } = await listen()
  for (const request of ['POST /nothing', 'PUT /api/v1/status', 'DELETE /api/v1/silences', 'OPTIONS /']) {
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `${request} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n{`,
    )
    const [answer] = await once(socket, 'data')
    expect(String(answer), request).toMatch(/^HTTP\/1\.1 404 /)
    socket.destroy()
  }
})

test('no preflight is ever answered: browsers keep foreign pages out', async () => {
  const { base } = await listen()
  const response = await fetch(`${base}/-/reload`, {
    method: 'OPTIONS',
    headers: { origin: 'https://evil.example.com', 'access-control-request-method': 'POST' },
  })
  expect(response.status).toBe(404)
  expect(response.headers.get('access-control-allow-origin')).toBeNull()
})

test('closing does not wait for connections that are merely kept open', async () => {
  const { app, base } = await listen()
  await (await fetch(`${base}/healthz`)).text()
  await app.close()
  await expect(fetch(`${base}/healthz`)).rejects.toThrow()
})

const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, 'host: localhost', ...headers, '', ''].join('\r\n')

/** Counts how many requests for the status are worked on at the same time. */
function countedStatus() {
  const counted = { begun: 0, now: 0, most: 0 }
  const read = async () => {
    counted.begun += 1
    counted.now += 1
    counted.most = Math.max(counted.most, counted.now)
    await systemClock.sleep(5)
    counted.now -= 1
    return status()
  }
  return { counted, read }
}

test('who sends many requests on one connection before reading an answer gets a few, and the others are refused', async () => {
  const { counted, read } = countedStatus()
  const { port } = await listen({ status: read })
  const socket = connect(port, '127.0.0.1')
  const requests = 1_000
  socket.write(get('/api/v1/status').repeat(requests))
  let heard = ''
  const answers = (statusCode: string) => heard.split(`HTTP/1.1 ${statusCode}`).length - 1
  while (answers('') < requests) heard += String((await once(socket, 'data'))[0])
  socket.destroy()
  expect(counted.most).toBe(10)
  expect([answers('200 '), answers('429 ')]).toEqual([10, requests - 10])
  expect(heard).toContain('wait for answers before you send more')
})

test('requests that come at the same time are answered a few at a time, in turns with other work of the process', async () => {
  const { counted, read } = countedStatus()
  let [inATurn, most] = [0, 0]
  const { app } = rig({
    status: read,
    async metricsText() {
      if (inATurn === 0) setTimeout(() => (inATurn = 0))
      inATurn += 1
      most = Math.max(most, inATurn)
      return ''
    },
  })
  await app.ready()
  for (const path of ['/api/v1/status', '/metrics']) {
    const answers = await Promise.all(Array.from({ length: 300 }, () => app.inject(path)))
    expect(answers.map((each) => each.statusCode)).toEqual(answers.map(() => 200))
  }
  expect(counted.most).toBe(10)
  expect(most).toBeLessThan(100)
})

test('while more requests wait than are kept, further ones are refused, but not those that ask whether the process lives', async () => {
  const go = Promise.withResolvers<void>()
  const { app } = rig({
    async status() {
      await go.promise
      return status()
    },
  })
  // An injected request begins when somebody waits for it.
  const ask = async (url: string) => app.inject(url)
  await app.ready()
  const first = Array.from({ length: 310 }, () => ask('/readyz'))
  const refused = await ask('/api/v1/openapi.json')
  expect(problemOf(refused, 503)).toContain('300 requests wait for their turn already')
  expect(refused.headers['retry-after']).toBe('1')
  expect((await ask('/healthz')).statusCode).toBe(200)
  go.resolve()
  expect((await Promise.all(first)).every((each) => each.statusCode === 200)).toBe(true)
  expect((await ask('/readyz')).statusCode).toBe(200)
})

test('who shows the token gives orders while as many others wait as may', async () => {
  const go = Promise.withResolvers<void>()
  const { app, post } = rig({
    async status() {
      await go.promise
      return status()
    },
  })
  const ask = async (url: string) => app.inject(url)
  await app.ready()
  const others = Array.from({ length: 310 }, () => ask('/readyz'))
  expect((await ask('/readyz')).statusCode).toBe(503)
  expect((await post('/api/v1/sinks/ops-slack/pause')).statusCode).toBe(200)
  const stranger = await app.inject({ method: 'POST', url: '/api/v1/sinks/ops-slack/pause' })
  expect(stranger.statusCode).toBe(401)
  go.resolve()
  await Promise.all(others)
})

test.each([
  ['ask whether the process lives', '/healthz', ''],
  ['are no addresses', '/%zz', ''],
  ['expect what nobody knows', '/', 'expect: more'],
])(
  'thousands of requests that %s, at the same time on many connections, are read in turns with other work of the process',
  async (_, path, header) => {
    let [inATurn, most, all] = [0, 0, 0]
    const { app, port } = await listen()
    for (const event of ['request', 'checkExpectation'])
      app.server.prependListener(event, () => {
        if (inATurn === 0) setTimeout(() => (inATurn = 0))
        inATurn += 1
        all += 1
        most = Math.max(most, inATurn)
      })
    const count = () => promisify(app.server.getConnections.bind(app.server))()
    const sockets = Array.from({ length: 10 }, () => connect(port, '127.0.0.1'))
    await until('they are connected', async () => (await count()) === 10)
    const request = header === '' ? get(path) : get(path, header)
    for (const socket of sockets) socket.resume().write(request.repeat(1_000))
    await until('all have come', () => all === 10_000)
    expect(most).toBeLessThan(4_000)
    for (const socket of sockets) socket.destroy()
  },
)

/** On a connection of its own: one that was used before may be closed as idle in a process that is so busy. */
async function askAnew(port: number) {
  const socket = connect(port, '127.0.0.1', () => socket.write(get('/healthz')))
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toContain('200 OK')
  socket.destroy()
}

/** A connection that sends thousands of requests, and takes the answers; `left` of them have not come yet. */
async function flood(server: Server, port: number, packets: number) {
  const flooding = { left: packets * 1_000 }
  const socket = connect(port, '127.0.0.1').resume()
  await once(socket, 'connect')
  server.on('request', ({ url }) => {
    if (url === '/healthz?flood') flooding.left -= 1
  })
  for (let packet = 0; packet < packets; packet += 1) socket.write(get('/healthz?flood').repeat(1_000))
  return flooding
}

test('who sends thousands of requests one after the other keeps nobody else from being answered', async () => {
  const { app, port } = await listen()
  const flooding = await flood(app.server, port, 20)
  const answered: number[] = []
  while (answered.length < 5) {
    await askAnew(port)
    answered.push(flooding.left)
  }
  expect(Math.min(...answered)).toBeGreaterThan(1_000)
  await until('all have come', () => flooding.left === 0)
})

test('while thousands of requests come on one new connection after the other, who has asked before waits for few of them', async () => {
  const { app, port } = await listen()
  let requests = 0
  app.server.on('request', ({ url }) => {
    if (url === '/healthz?flood') requests += 1
  })
  const asker = connect(port, '127.0.0.1')
  const ask = async () => {
    asker.write(get('/healthz'))
    const [answer] = await once(asker, 'data')
    expect(String(answer)).toContain('200 OK')
  }
  await ask()
  const floods = new Set<Socket>()
  const packet = get('/healthz?flood').repeat(1_000)
  const flood = () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    floods.add(socket)
    socket.write(packet)
    socket.once('data', () => {
      socket.destroy()
      if (floods.delete(socket)) flood()
    })
  }
  for (let each = 0; each < 30; each += 1) flood()
  await until('some are read', () => requests >= 5_000)
  const waits: number[] = []
  while (waits.length < 5) {
    const before = requests
    await ask()
    waits.push(requests - before)
  }
  const left = [asker, ...floods]
  floods.clear()
  for (const socket of left) socket.destroy()
  expect(Math.max(...waits), waits.join(' ')).toBeLessThan(6_000)
})

test('while sixty connections that came just before send thousands of requests, who comes anew waits for few of them', async () => {
  const { app, port } = await listen()
  let requests = 0
  app.server.on('request', ({ url }) => {
    if (url === '/healthz?flood') requests += 1
  })
  const packet = get('/healthz?flood').repeat(1_000)
  const floods = Array.from({ length: 60 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  for (const socket of floods) socket.resume().write(packet)
  await until('some are read', () => requests >= 2_000)
  const before = requests
  for (let each = 0; each < 3; each += 1) await askAnew(port)
  for (const socket of floods) socket.destroy()
  expect(requests - before).toBeLessThan(30_000)
})

test('while hundreds ask without end, each for little, who comes anew waits for few of them', async () => {
  const { app, port } = await listen()
  let requests = 0
  app.server.on('request', ({ url }) => {
    if (url === '/healthz?loop') requests += 1
  })
  const each = 10
  const ask = get('/healthz?loop').repeat(each)
  const sockets = Array.from({ length: 200 }, () => {
    let left = each
    const socket = connect(port, '127.0.0.1')
    return socket.on('data', (part) => {
      left -= String(part).split('200 OK').length - 1
      if (left > 0 || requests > 50_000) return
      left = each
      socket.write(ask)
    })
  })
  const count = () => promisify(app.server.getConnections.bind(app.server))()
  await until('they are connected', async () => (await count()) === 200)
  for (const socket of sockets) socket.write(ask)
  await until('they are read again and again', () => requests >= 10_000)
  const waits: number[] = []
  while (waits.length < 5) {
    const before = requests
    await askAnew(port)
    waits.push(requests - before)
  }
  for (const socket of sockets) socket.destroy()
  expect(Math.max(...waits), waits.join(' ')).toBeLessThan(10_000)
})

test('at each address of localhost, the limits and the answers are the same, and nothing is open after the end', async () => {
  const { app } = rig()
  stop = () => app.close()
  // A machine without IPv6 has more than one address of the other kind.
  const interfaces = Object.values(networkInterfaces()).flat()
  const second = interfaces.some((each) => each?.address === '::1') ? '::1' : '127.0.0.2'
  const addresses = ['127.0.0.1', second]
  const base = await listenAt(app, { host: 'localhost', port: 0 }, async () =>
    addresses.map((address) => ({ address })),
  )
  const { port } = app.server.address() as AddressInfo
  expect(base).toBe(`http://127.0.0.1:${port}`)
  const answered = async (address: string, request: string) => {
    const socket = connect(port, address, () => socket.write(request))
    const [answer] = await once(socket, 'data')
    socket.destroy()
    return String(answer)
  }
  for (const address of addresses) {
    expect(await answered(address, get('/healthz'))).toMatch(/^HTTP\/1.1 200 /)
    expect(await answered(address, 'no HTTP\r\n\r\n')).toMatch(/^HTTP\/1.1 400 .*\r\nalert-bridge-version: /)
    expect(await answered(address, get('/', 'expect: more'))).toMatch(/^HTTP\/1.1 417 /)
  }
  const listeners = addresses.map((address) => {
    const socket = connect(port, address, () => socket.write(get('/api/v1/events')))
    return socket
  })
  await Promise.all(listeners.map((socket) => once(socket, 'data')))
  const ended = listeners.map((socket) => once(socket.resume(), 'close'))
  await app.close()
  await Promise.all(ended)
  for (const address of addresses)
    await expect(once(connect(port, address), 'connect')).rejects.toThrow('ECONNREFUSED')
})

test('of what nobody takes no more is read while others send thousands of requests', async () => {
  const { app, port } = await listen()
  const accepted = once(app.server, 'connection')
  const listener = connect(port, '127.0.0.1').on('error', () => {})
  const [socket] = (await accepted) as [Socket]
  listener.write('GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 90000000\r\n\r\n')
  listener.write(Buffer.alloc(10_000_000))
  await until('it is paused', () => socket.isPaused())
  const before = socket.bytesRead
  const flooding = await flood(app.server, port, 5)
  await until('all have come', () => flooding.left === 0)
  // One part more may have been on its way.
  expect(socket.bytesRead - before).toBeLessThan(200_000)
  listener.destroy()
})

test('of thousands of connections on which nothing is asked for, the oldest are closed, and who asks is answered', async () => {
  const go = Promise.withResolvers<void>()
  const { app, port, base } = await listen({
    async status() {
      await go.promise
      return status()
    },
  })
  const count = () => promisify(app.server.getConnections.bind(app.server))()
  const asked = fetch(`${base}/readyz`)
  await until('one asks', async () => (await count()) === 1)
  const sockets: Socket[] = []
  for (let wave = 1; wave <= 11; wave += 1) {
    for (let each = 0; each < 200; each += 1) sockets.push(connect(port, '127.0.0.1').on('error', () => {}))
    await until('all are connected', () => sockets.every((socket) => !socket.connecting))
    for (const socket of sockets.slice(-200)) socket.resume().write('GET /readyz HTTP/1.1\r\nx')
  }
  await until('some are closed', async () => (await count()) <= 2_000)
  await until('they hear of it', () => sockets.filter((socket) => !socket.destroyed).length === 1_999)
  expect(sockets.slice(0, 201).every((socket) => socket.destroyed)).toBe(true)
  go.resolve()
  expect((await asked).status).toBe(200)
  expect((await fetch(`${base}/readyz`)).status).toBe(200)
  for (const socket of sockets) socket.destroy()
})

test('thousands of requests of which the bodies do not come keep nobody else from being answered', async () => {
  const { app, port, base } = await listen()
  const count = () => promisify(app.server.getConnections.bind(app.server))()
  const sockets: Socket[] = []
  for (let wave = 1; wave <= 10; wave += 1) {
    for (let each = 0; each < 200; each += 1) sockets.push(connect(port, '127.0.0.1').on('error', () => {}))
    await until('all are connected', async () => (await count()) === sockets.length)
  }
  let begun = 0
  app.server.on('request', () => (begun += 1))
  // Of whom the token is known the body is waited for.
  const head = `POST /-/reload HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n`
  for (const socket of sockets) socket.resume().write(head)
  await until('all heads have come', () => begun === 2_000)
  expect((await fetch(`${base}/healthz`)).status).toBe(200)
  for (const socket of sockets) socket.destroy()
})

test('a client that leaves while its request waits, or is answered, keeps no other from being answered', async () => {
  const go = Promise.withResolvers<void>()
  let asked = 0
  const { app, port, base } = await listen({
    async status() {
      asked += 1
      await go.promise
      return status()
    },
  })
  const count = () => promisify(app.server.getConnections.bind(app.server))()
  const sockets = Array.from({ length: 30 }, () => connect(port, '127.0.0.1'))
  for (const socket of sockets) socket.write(get('/readyz'))
  await until('thirty ask', async () => asked >= 10 && (await count()) === 30)
  for (const socket of sockets) socket.destroy()
  await until('all have left', async () => (await count()) === 0)
  go.resolve()
  const answers = await Promise.all(Array.from({ length: 30 }, () => fetch(`${base}/readyz`)))
  expect(answers.every((each) => each.status === 200)).toBe(true)
})

/** An audit that is read on every status page, and counts how many read it at the same time. */
function countedAudit(found: AuditRow[] = []) {
  const { counted, read } = countedStatus()
  const list = async () => {
    await read()
    return found
  }
  return { counted, audit: { add: async () => {}, list } }
}

test('status pages that are asked for at the same time are made a few at a time, to their end', async () => {
  const { counted, audit } = countedAudit()
  const { app } = rig({ audit })
  await app.ready()
  const pages = await Promise.all(Array.from({ length: 100 }, () => app.inject('/')))
  expect(pages.every((each) => each.body.includes('</html>'))).toBe(true)
  expect(counted.most).toBe(10)
})

test('of what clients asked for that have left, no more is worked on at a time, and nothing is begun', async () => {
  const go = Promise.withResolvers<void>()
  let asked = 0
  const list = async () => {
    asked += 1
    await go.promise
    return []
  }
  const { app, port, base } = await listen({ audit: { add: async () => {}, list } })
  const count = () => promisify(app.server.getConnections.bind(app.server))()
  const sockets = Array.from({ length: 30 }, () => connect(port, '127.0.0.1'))
  // Every second client sends several requests in one packet.
  for (const [at, socket] of sockets.entries())
    socket.write(get('/api/v1/audit').repeat(at % 2 === 0 ? 1 : 5))
  await until('thirty ask', async () => asked >= 10 && (await count()) === 30)
  for (const socket of sockets) socket.destroy()
  await until('all have left', async () => (await count()) === 0)
  // It waits for its turn behind all of them.
  const last = fetch(`${base}/api/v1/audit`)
  await until('another asks', async () => (await count()) === 1)
  expect(asked).toBe(10)
  go.resolve()
  expect((await last).status).toBe(200)
  expect(asked).toBe(11)
})

test('who asks for pages and takes nothing of them keeps no other from being answered', async () => {
  const large = { at: '2026-11-21T08:45:00Z', action: 'reload', subject: '', comment: 'x'.repeat(1_000_000) }
  const { counted, audit } = countedAudit([
    { ...large, ids: [], count: null, by: 'admin', from: '', order: null },
  ])
  const { port, base } = await listen({ audit })
  const sockets = Array.from({ length: 2 }, () => connect(port, '127.0.0.1').pause())
  for (const socket of sockets) socket.write(get('/').repeat(10))
  await until('all are made', async () => counted.begun === 20)
  expect((await fetch(`${base}/readyz`)).status).toBe(200)
  for (const socket of sockets) socket.destroy()
})

test.each([
  ['an address that cannot be decoded', get('/api/v1/deliveries/main/%zz'), 400],
  ['a name that is too long', get(`/api/v1/orphans/${'a'.repeat(201)}`), 414],
  ['headers that are too long', get('/healthz', `x: ${'a'.repeat(20_000)}`), 431],
  ['what is no HTTP', '\u0016\u0003\u0001\r\n\r\n', 400],
  ['a method that is none', get('/').replace('GET', 'FOO'), 400],
  ['no Host', 'GET / HTTP/1.1\r\n\r\n', 400],
  ['an expectation that nobody knows', get('/', 'expect: more'), 417],
])('%s is refused by a bridge that says so', async (_, request, status) => {
  const { port } = await listen()
  const socket = connect(port, '127.0.0.1')
  socket.write(request)
  const [answer] = await once(socket, 'data')
  socket.destroy()
  expect(String(answer)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  expect(String(answer).toLowerCase()).toContain('\r\nalert-bridge-version: ')
  expect(String(answer).toLowerCase()).toContain('\r\nx-content-type-options: nosniff')
})

test('what an operator ordered is recorded with the address, also where who ordered it has hung up meanwhile', async () => {
  const began = Promise.withResolvers<void>()
  const hungUp = Promise.withResolvers<void>()
  const recorded = Promise.withResolvers<unknown>()
  const { app, port } = await listen({
    reload: async () => {
      began.resolve()
      await hungUp.promise
      return { ok: true }
    },
    audit: { add: async (row) => recorded.resolve(row), list: async () => [] },
  })
  const left = new Promise<void>((resolve) =>
    app.server.once('connection', (socket) => socket.once('close', () => resolve())),
  )
  const socket = connect(port, '127.0.0.1')
  socket.write(`POST /-/reload HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token}\r\n\r\n`)
  await began.promise
  socket.destroy()
  await left
  hungUp.resolve()
  expect(await recorded.promise).toMatchObject({ action: 'reload', from: '127.0.0.1' })
})
