import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import type { AdminPorts } from '../../src/admin/ports.ts'
import { bench, token } from './bench.ts'

/** The same server, on a real port. */
let stop: () => Promise<unknown> = async () => undefined
afterEach(() => stop())

async function listen(changes: Partial<AdminPorts> = {}) {
  const { app, calls } = bench(changes)
  stop = () => app.close()
  const base = await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return { app, base, port, calls }
}

test('nothing listens until it is told to', async () => {
  const { app } = bench()
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
