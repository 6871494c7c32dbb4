import { type AddressInfo, connect } from 'node:net'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../support/until.ts'
import { rig } from './rig.ts'

/** Listens; its list of actions is one row with a comment of so many characters, and `asked` says how often it was read. */
async function listing(characters: number) {
  const row = { at: '2026-11-21T08:45:00Z', action: 'reload', subject: '', comment: 'x'.repeat(characters) }
  let asked = 0
  const list = async () => {
    asked += 1
    return [{ ...row, ids: [], count: null, by: 'admin', from: '', order: null }]
  }
  const { app } = rig({ audit: { add: async () => {}, list } })
  onTestFinished(() => app.close())
  const base = await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const count = () => promisify(app.server.getConnections.bind(app.server))()
  return { base, port, count, asked: () => asked }
}

test('who asks again and again and takes nothing is disconnected before that fills the memory, and who reads gets all', async () => {
  const { base, port, count, asked } = await listing(4_000_000)
  const sockets = [1, 2, 3, 4].map(() => connect(port, '127.0.0.1').pause())
  onTestFinished(() => sockets.forEach((each) => void each.destroy()))
  for (const [at, socket] of sockets.entries()) {
    socket.on('error', () => {}).write('GET /api/v1/audit HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(10))
    await until('its answers are made', () => asked() === 10 * (at + 1))
  }
  // 160 MB were made, of which the system keeps some, and one client at least may keep its answers.
  await until('others are disconnected', async () => (await count()) <= 2)
  const read = await fetch(`${base}/api/v1/audit`)
  expect(read.status).toBe(200)
  expect((await read.text()).length).toBeGreaterThan(4_000_000)
})

test.each([
  ['ask whether the process lives', '/healthz', ''],
  ['ask for what is not there', '/nothing', ''],
  ['are no addresses', '/%zz', ''],
  ['come by a foreign name', '/', 'host: rebound.example.com\r\n'],
  ['expect what nobody knows', '/', 'host: localhost\r\nexpect: more\r\n'],
])(
  'who sends thousands of requests that %s and takes nothing is disconnected before that fills the memory',
  async (_, path, headers) => {
    const { base, port, count, asked } = await listing(5_000_000)
    const small = `GET ${path} HTTP/1.1\r\n${headers || 'host: localhost\r\n'}\r\n`
    const sockets = Array.from({ length: 6 }, () => connect(port, '127.0.0.1').pause())
    onTestFinished(() => sockets.forEach((each) => void each.destroy()))
    for (const [at, socket] of sockets.entries()) {
      // Behind one answer that the system does not keep, the others are kept here. Their bodies are few bytes.
      const packet = `GET /api/v1/audit HTTP/1.1\r\nhost: localhost\r\n\r\n${small.repeat(1_000)}`
      socket.on('error', () => {}).write(packet)
      await until('its answers are made', () => asked() === at + 1)
    }
    await until('others are disconnected', async () => (await count()) <= 5)
    expect((await fetch(`${base}/healthz`)).status).toBe(200)
  },
)
