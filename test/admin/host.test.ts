import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { problemOf, rig, token } from './rig.ts'

/**
 * A page that rebinds its own name to this address is, to the browser, of one origin with the bridge. Its name still
 * stands in `Host`, and that is what it is refused by.
 */

const paths = ['/', '/metrics', '/readyz', '/-/ready', '/api/v1/status', '/api/v1/deliveries', '/nothing']

test.each(paths)('a page under a foreign name reads nothing of GET %s', async (url) => {
  const { app, calls } = rig()
  const response = await app.inject({ url, headers: { host: 'rebound.example.com:8080' } })
  expect(problemOf(response, 421)).toMatch(/rebound\.example\.com.*http\.hosts/)
  expect(calls).toEqual([])
})

test('a page under a foreign name changes nothing, whatever token it has', async () => {
  const { post, calls } = rig()
  const headers = { authorization: `Bearer ${token}`, host: 'rebound.example.com' }
  expect(problemOf(await post('/-/reload', undefined, headers), 421)).toContain('http.hosts')
  expect(calls).toEqual([])
})

test.each([
  'localhost',
  'LocalHost:8080',
  'localhost.',
  'bridge.localhost:8080',
  '127.0.0.1:8080',
  '[::1]:8080',
  // What probes, scrapes and load balancers send: no page can rebind an address.
  '10.42.0.17:8080',
  '[fd00::17]',
])('Host %s is answered', async (host) => {
  const { app } = rig()
  for (const url of paths.slice(0, -1))
    expect((await app.inject({ url, headers: { host } })).statusCode, url).toBe(200)
})

test.each(['bridge.example.com', 'Bridge.Example.com:443', 'bridge.example.com.'])(
  'a name of http.listen or http.hosts is answered: %s',
  async (host) => {
    const { app } = rig({}, { hosts: () => ['Bridge.example.com'] })
    expect((await app.inject({ url: '/api/v1/status', headers: { host } })).statusCode).toBe(200)
  },
)

test.each([
  'bridge.example.com.evil.example',
  'x.bridge.example.com',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  'evil.example:127.0.0.1',
  'evil@localhost',
  'localhost@evil.example',
  '[::1',
  '::1',
  '1.2.3',
])('a name that only looks like one is refused: %s', async (host) => {
  const { app } = rig({}, { hosts: () => ['bridge.example.com'] })
  expect((await app.inject({ url: '/api/v1/status', headers: { host } })).statusCode).toBe(421)
})

test('a probe for life is answered under any name: it says one word, and refusing it restarts the process', async () => {
  const { app } = rig()
  for (const url of ['/healthz', '/-/healthy'])
    expect(await app.inject({ url, headers: { host: 'balancer.example' } })).toMatchObject({
      statusCode: 200,
      body: 'healthy\n',
    })
})

test('the names are asked for at every request, so that a reload can add one', async () => {
  const hosts: string[] = []
  const { app } = rig({}, { hosts: () => hosts })
  const ask = () => app.inject({ url: '/', headers: { host: 'bridge.example.com' } })
  expect((await ask()).statusCode).toBe(421)
  hosts.push('bridge.example.com')
  expect((await ask()).statusCode).toBe(200)
})

test('over HTTP too: a foreign name is refused, and a check of HTTP/1.0 without Host is no page', async () => {
  const { app } = rig()
  onTestFinished(() => app.close())
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const ask = (headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      request({ port, host: '127.0.0.1', path: '/api/v1/status', headers }, (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      })
        .on('error', reject)
        .end()
    })
  expect(await ask({ host: 'rebound.example.com' })).toBe(421)
  expect(await ask({})).toBe(200)
})

test('a request that names two hosts is refused: one of them may be what a proxy before the bridge has checked', async () => {
  const { app } = rig()
  onTestFinished(() => app.close())
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  for (const second of ['localhost', 'rebound.example.com']) {
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(`GET /healthz HTTP/1.1\r\nhost: localhost\r\nHost: ${second}\r\n\r\n`)
    const [answer] = await once(socket, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1\.1 400 [\s\S]*alert-bridge-version/)
  }
})
