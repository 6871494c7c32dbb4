import tls, { createServer } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { tlsOptions } from '../../src/sinks/transport/tls.ts'
import { connectRedis } from '../../src/store/connection/redis.ts'
import { addressServer, testAuthority, testServer } from '../support/certificates.ts'
import { withFiles } from '../support/files.ts'
import { captureLog } from '../support/log.ts'
import { startProxy } from '../support/proxy.ts'
import { startSmtpReceiver } from '../support/smtp-receiver.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { sendOnce } from './sending.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const send = (fields: Readonly<Record<string, unknown>>) =>
  sendOnce({ allowPrivateNetworks: true, timeout: '3s', ...fields })

/** A certificate, and the server names that clients choose it by. */
function noting(pair: { key: string; cert: string }) {
  const names: string[] = []
  const context = tls.createSecureContext(pair)
  const SNICallback = (name: string, done: (error: null, context: tls.SecureContext) => void) => {
    names.push(name)
    done(null, context)
  }
  return { names, server: { ...pair, SNICallback } }
}

describe('a proxy that speaks TLS', () => {
  const before = tls.getCACertificates('default')
  beforeAll(() => tls.setDefaultCACertificates([...before, addressServer.cert, testAuthority]))
  afterAll(() => tls.setDefaultCACertificates(before))

  it.each([
    ['127.0.0.1', 'http'],
    ['127.0.0.1', 'https'],
    ['::1', 'http'],
    ['::1', 'https'],
  ])(
    'is reached by its address %s, for which its certificate is, on the way to %s',
    async (host, protocol) => {
      const { names, server } = noting(addressServer)
      const proxy = await startProxy({ host, tls: server })
      const receiver = await startWebhookReceiver(protocol === 'https' ? { tls: testServer } : {})
      closing.push(() => receiver.stop(), proxy.stop)
      const url = `${protocol}://localhost:${receiver.port}/`
      const config = { type: 'webhook', url, proxy: proxy.url.replace('//', '//user:password@') }
      expect(await send(config)).toMatchObject({ kind: 'delivered' })
      expect(proxy.seen).toHaveLength(1)
      expect(names).toEqual([])
    },
  )

  it.each([
    ['name', '127.0.0.1', addressServer],
    ['address', '::1', testServer],
  ])('is not reached by a %s for which its certificate is not', async (_what, host, server) => {
    const proxy = await startProxy({ host, tls: server })
    closing.push(proxy.stop)
    const address = proxy.url.replace('127.0.0.1', 'localhost')
    const outcome = await send({ type: 'webhook', url: 'http://localhost:1/', proxy: address })
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'tls' })
    expect(proxy.seen).toEqual([])
  })
})

describe('an address as serverName is what the certificate must be for, and is sent to nobody as a name', () => {
  it('of a webhook, directly and through a tunnel', async () => {
    const { names, server } = noting(addressServer)
    const receiver = await startWebhookReceiver({ tls: server })
    const proxy = await startProxy()
    closing.push(() => receiver.stop(), proxy.stop)
    const url = `https://localhost:${receiver.port}/`
    await withFiles({ ca: addressServer.cert }, async ({ ca }) => {
      for (const through of [{}, { proxy: proxy.url }]) {
        const config = { type: 'webhook', url, ...through }
        for (const serverName of ['127.0.0.1', '::1'])
          expect(await send({ ...config, tls: { ca, serverName } })).toMatchObject({ kind: 'delivered' })
        for (const serverName of ['127.0.0.2', undefined])
          expect(await send({ ...config, tls: { ca, serverName } })).toMatchObject({ reason: 'tls' })
      }
    })
    expect(new Set(names)).toEqual(new Set(['localhost']))
  })

  it.each(['starttls', 'implicit'] as const)('of a mail server, by %s', async (mode) => {
    const server = await startSmtpReceiver({ tls: mode })
    closing.push(() => server.stop())
    const smtp = `${mode === 'implicit' ? 'smtps' : 'smtp'}://localhost:${server.port}`
    const config = { type: 'email', smtp, from: 'a@example.com', to: ['b@example.com'] }
    await withFiles({ ca: testAuthority }, async ({ ca }) => {
      const to = (serverName: string) => send({ ...config, startTls: 'required', tls: { ca, serverName } })
      expect(await to('127.0.0.1')).toMatchObject({ kind: 'delivered' })
      expect(await to('127.0.0.2')).toMatchObject({ kind: 'retry', reason: 'tls' })
    })
  })

  it('of Redis', async () => {
    const { names, server } = noting(addressServer)
    const connected: (() => void)[] = []
    const listener = createServer(server, (socket) => {
      socket.on('error', () => {}).on('data', () => connected.shift()?.())
    })
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    closing.push(() => listener.close())
    const { port } = listener.address() as { port: number }
    await withFiles({ ca: addressServer.cert }, async ({ ca }) => {
      const ask = (serverName: string) => {
        const target = { url: `rediss://localhost:${port}`, tls: tlsOptions({ ca, serverName }) }
        const redis = connectRedis({ target, profile: 'commands' }, captureLog().log)
        closing.push(() => redis.disconnect())
        return new Promise<string>((resolve) => {
          connected.push(() => resolve('connected'))
          redis.once('error', ({ message }) => resolve(message))
        })
      }
      expect(await ask('127.0.0.2')).toContain('IP: 127.0.0.2 is not in the cert')
      connected.length = 0
      expect(await ask('127.0.0.1')).toBe('connected')
    })
    expect(new Set(names)).toEqual(new Set(['localhost']))
  })
})
