import { createServer } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connectDaemon } from '../../src/cli/client/daemon.ts'
import { createFeedClient } from '../../src/feed/client.ts'
import { Secret } from '../../src/lib/secret.ts'
import { connectRedis, type RedisTarget } from '../../src/store/connection/redis.ts'
import { createTracer } from '../../src/telemetry/tracer.ts'
import { testServer } from '../support/certificates.ts'
import { captureLog } from '../support/log.ts'
import { type ForwardProxy, startProxy } from '../support/proxy.ts'
import { type SmtpReceiver, startSmtpReceiver } from '../support/smtp-receiver.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { sendOnce } from './sending.ts'

/** A variable that switches off the verification of certificates wherever a client does not ask for it itself. */
const variable = 'NODE_TLS_REJECT_UNAUTHORIZED'

beforeAll(() => {
  process.env[variable] = '0'
})
afterAll(() => {
  delete process.env[variable]
})

let receiver: WebhookReceiver
const closing: (() => unknown)[] = []

beforeEach(async () => {
  receiver = await startWebhookReceiver({ tls: testServer })
  closing.push(() => receiver.stop())
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const send = (fields: Readonly<Record<string, unknown>>) =>
  sendOnce({ allowPrivateNetworks: true, timeout: '3s', ...fields })

describe(`whatever ${variable} says, no byte goes over a connection whose certificate is not good`, () => {
  it('from the feed, which carries the token', async () => {
    const client = createFeedClient({
      ...{ source: 'main', token: new Secret('token') },
      baseUrl: `https://localhost:${receiver.port}`,
    })
    closing.push(() => client.close())
    await expect(client.deliveries(1)).rejects.toMatchObject({ name: 'FeedError' })
    expect(receiver.requests).toEqual([])
  })

  it('of traces, which carry the headers of their collector', async () => {
    const captured = captureLog()
    const url = `https://localhost:${receiver.port}/v1/traces`
    const tracer = createTracer({ url, headers: {} }, captured.log)
    tracer.found({ source: 'main', id: 1 }, { firedAtMs: 0, nowMs: 1 })
    await tracer.close()
    expect(receiver.requests).toEqual([])
    expect(captured.lines).toMatchObject([{ msg: 'traces: the collector does not accept spans' }])
  })

  it('from a command to a running bridge, which carries the admin token', async () => {
    const daemon = connectDaemon({ url: `https://localhost:${receiver.port}` })
    await expect(daemon.get('/api/v1/status')).rejects.toThrow('No bridge answers')
    expect(receiver.requests).toEqual([])
  })

  it.each([
    ['webhook', (url: string) => ({ type: 'webhook', url })],
    ['http', (url: string) => ({ type: 'http', url })],
    ['slack', (url: string) => ({ type: 'slack', url })],
    ['discord', (url: string) => ({ type: 'discord', url: `${url}api/webhooks/1/t` })],
    ['teams', (url: string) => ({ type: 'teams', url })],
    ['ntfy', (baseUrl: string) => ({ type: 'ntfy', baseUrl, topic: 'alerts' })],
    [
      'telegram',
      (baseUrl: string) => ({ type: 'telegram', baseUrl, token: `1:${'t'.repeat(30)}`, chatId: 1 }),
    ],
    ['pagerduty', (baseUrl: string) => ({ type: 'pagerduty', baseUrl, routingKey: 'k'.repeat(32) })],
  ])('from %s, directly and through a tunnel', async (_type, fields) => {
    const proxy = await startProxy()
    closing.push(() => proxy.stop())
    const config = fields(`https://localhost:${receiver.port}/`)
    expect(await send(config)).toMatchObject({ kind: 'retry', reason: 'tls' })
    expect(await send({ ...config, proxy: proxy.url })).toMatchObject({ kind: 'retry', reason: 'tls' })
    expect(proxy.seen[0]).toMatch(/^CONNECT localhost/)
    expect(receiver.requests).toEqual([])
  })

  it.each(['http', 'https'])('to a proxy that speaks TLS itself, on the way to %s', async (protocol) => {
    const proxy: ForwardProxy = await startProxy({ tls: testServer })
    closing.push(() => proxy.stop())
    const url = `${protocol}://localhost:${receiver.port}/`
    const outcome = await send({ type: 'webhook', url, proxy: proxy.url.replace('//', '//user:password@') })
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'tls' })
    expect([...proxy.seen, ...receiver.requests]).toEqual([])
  })

  it.each(['starttls', 'implicit'] as const)('from email, by %s', async (tls) => {
    const server: SmtpReceiver = await startSmtpReceiver({ tls, login: { user: 'me', password: 'secret' } })
    closing.push(() => server.stop())
    const smtp = `${tls === 'implicit' ? 'smtps' : 'smtp'}://me:secret@127.0.0.1:${server.port}`
    const addresses = { from: 'a@example.com', to: ['b@example.com'] }
    const outcome = await send({ type: 'email', smtp, startTls: 'required', ...addresses })
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'tls' })
    expect(server.mails).toEqual([])
  })

  it.each([
    ['one server', (port: number): RedisTarget => ({ url: `rediss://localhost:${port}` })],
    ['a cluster', (port: number): RedisTarget => ({ cluster: [`rediss://localhost:${port}`] })],
    [
      'sentinels',
      (port: number): RedisTarget => ({ sentinels: [{ host: 'localhost', port }], name: 'main', tls: {} }),
    ],
  ])('from Redis: %s', async (_form, targetOf) => {
    let bytes = 0
    const server = createServer(testServer, (socket) => {
      socket.on('error', () => {})
      socket.on('data', (data) => {
        bytes += data.length
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closing.push(() => server.close())
    const refused = new Promise<unknown>((resolve) => {
      server.once('tlsClientError', resolve)
      server.once('secureConnection', (socket) => socket.once('close', resolve).once('data', resolve))
    })
    const { port } = server.address() as { port: number }
    const redis = connectRedis({ target: targetOf(port), profile: 'commands' }, captureLog().log)
    closing.push(() => redis.disconnect())
    await refused
    expect(bytes).toBe(0)
  })
})
