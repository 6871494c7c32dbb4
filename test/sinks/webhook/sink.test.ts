import { createHmac, generateKeyPairSync, verify as verifySignature } from 'node:crypto'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../../src/lib/secret.ts'
import { createSink } from '../../../src/sinks/registry.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import { webhookConfigSchema } from '../../../src/sinks/webhook/config.ts'
import { testAuthority, testServer } from '../../support/certificates.ts'
import { withFiles } from '../../support/files.ts'
import {
  type ReceivedRequest,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../../support/webhook-receiver.ts'
import { whole } from '../contexts.ts'
import { alertOf, englishDisplay, hostile, persian } from '../samples.ts'

const oldSecret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const newSecret = `whsec_${Buffer.alloc(24, 2).toString('base64')}`

let receiver: WebhookReceiver
const sinks: Sink[] = []

beforeEach(async () => {
  receiver = await startWebhookReceiver()
})

afterEach(async () => {
  await Promise.all(sinks.splice(0).map((sink) => sink.close()))
  await receiver.stop()
})

function sinkTo(url: string, fields: Record<string, unknown> = {}): Sink {
  const config = webhookConfigSchema.parse({ type: 'webhook', url, allowPrivateNetworks: true, ...fields })
  const sink = createSink('hook', config, { display: englishDisplay })
  sinks.push(sink)
  return sink
}

const attempt = (number = 1, nowMs = Date.now()) => ({ number, nowMs, signal: new AbortController().signal })

function verify(secret: string, request: ReceivedRequest | undefined): unknown {
  if (request === undefined) throw new Error('nothing arrived')
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  )
  return new Webhook(secret).verify(request.body, headers)
}

describe('what receivers get', () => {
  test('is the upstream row, every field untouched, in the envelope of the contract', async () => {
    const alert = alertOf({ addedTomorrow: { deep: [1, 'دو', null] }, payload: { a: 1 }, id: 99 })
    await sinkTo(receiver.url).send(alert, attempt())
    const [request] = receiver.requests
    expect(request).toMatchObject({
      method: 'POST',
      path: '/hook',
      headers: { 'content-type': 'application/json', 'webhook-id': 'main.99' },
    })
    expect(JSON.parse(request?.body ?? '')).toEqual({
      type: 'alert.fired',
      timestamp: alert.firedAt,
      data: { source: 'main', delivery: alert.row },
    })
  })

  test('has the same id and bytes at every attempt, and the time of each', async () => {
    const sink = sinkTo(receiver.url, { secret: oldSecret })
    const nowMs = Date.now()
    await sink.send(persian, attempt(1, nowMs - 60_000))
    await sink.send(persian, attempt(2, nowMs))
    const [first, second] = receiver.requests
    expect(second?.body).toBe(first?.body)
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect(Number(second?.headers['webhook-timestamp'])).toBe(Math.floor(nowMs / 1_000))
    expect(Number(first?.headers['webhook-timestamp'])).toBe(Math.floor(nowMs / 1_000) - 60)
  })

  test('keeps hostile text inside the body', async () => {
    await sinkTo(receiver.url, { secret: oldSecret }).send(hostile, attempt())
    expect(verify(oldSecret, receiver.requests[0])).toMatchObject({
      data: { delivery: { symbol: hostile.symbol } },
    })
    expect(Object.values(receiver.requests[0]?.headers ?? {}).join()).not.toContain('evil')
  })
})

test('an alert that the receiver finds too large goes out without its context, in the same attempt', async () => {
  receiver.answerWith(({ body }) => ({ status: body.includes('points') ? 413 : 204 }))
  const sink = sinkTo(receiver.url, { secret: oldSecret })
  const outcome = await sink.send(persian, { ...attempt(), context: whole })
  const [large, small] = receiver.requests
  expect(receiver.requests).toHaveLength(2)
  expect(small?.headers['webhook-id']).toBe(large?.headers['webhook-id'])
  const { data } = verify(oldSecret, small) as { data: { context: unknown } }
  const tooLarge = Object.keys(whole.parts).map((what) => ({ what, why: 'too_large' }))
  const skipped = [...whole.skipped, ...tooLarge]
  expect(data.context).toEqual({ skipped })
  expect(outcome).toMatchObject({ kind: 'delivered', skipped })
  // A receiver that is slow to say so would else use up the time of every attempt.
  const again = { ...attempt(), number: 2, context: whole }
  expect(await sink.send(persian, again)).toMatchObject({ kind: 'delivered', skipped })
  expect(receiver.requests).toHaveLength(3)
  // One that counts both requests of an attempt asks for a pause, which costs no attempt.
  const limited = { status: 429, headers: { 'retry-after': '1' } }
  receiver.answerWith(({ body }) => (body.includes('points') ? { status: 413 } : limited))
  const first = { ...attempt(), context: whole }
  expect(await sink.send(persian, first)).toMatchObject({ kind: 'retry', reason: 'rate_limited' })
  receiver.answerWith(() => ({ status: 204 }))
  expect(await sink.send(persian, first)).toMatchObject({ kind: 'delivered', skipped })
  expect(receiver.requests).toHaveLength(6)
  receiver.answerWith(() => ({ status: 413 }))
  expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'dead', reason: 'rejected' })
  expect(receiver.requests).toHaveLength(7)
})

test('an alert that cannot be written as JSON is given up, not thrown over', async () => {
  // Depth is no such case: Node.js 26 writes any.
  const endless: unknown[] = []
  endless.push(endless)
  const outcome = await sinkTo(receiver.url).send(alertOf({ payload: [endless] }), attempt())
  expect(outcome).toMatchObject({ kind: 'dead', reason: 'unrenderable', sinkFault: false })
  expect(receiver.requests).toHaveLength(0)
})

describe('the signature', () => {
  test('is verified by an independent library', async () => {
    await sinkTo(receiver.url, { secret: oldSecret }).send(persian, attempt())
    expect(verify(oldSecret, receiver.requests[0])).toMatchObject({ type: 'alert.fired' })
    expect(() => verify(newSecret, receiver.requests[0])).toThrow()
  })

  test('is made by every secret while one is being replaced, the first one first', async () => {
    await sinkTo(receiver.url, { secret: [newSecret, oldSecret] }).send(persian, attempt())
    const [request] = receiver.requests
    expect(verify(newSecret, request)).toEqual(verify(oldSecret, request))
    const [first] = String(request?.headers['webhook-signature']).split(' ')
    await sinkTo(receiver.url, { secret: newSecret }).send(
      persian,
      attempt(1, Number(request?.headers['webhook-timestamp']) * 1_000),
    )
    expect(receiver.requests[1]?.headers['webhook-signature']).toBe(first)
  })

  test('by an Ed25519 key is verified by its public half, also beside a shared secret', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const seed = Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url')
    const both = Buffer.concat([seed, Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')])
    for (const key of [seed, both]) {
      const secret = [`whsk_${key.toString('base64')}`, oldSecret]
      await sinkTo(receiver.url, { secret }).send(persian, attempt())
      const request = receiver.requests.at(-1)
      const headers = request?.headers ?? {}
      const [asymmetric = ''] = String(headers['webhook-signature']).split(' ')
      const signed = Buffer.from(`main.4711.${headers['webhook-timestamp']}.${request?.body}`)
      expect(asymmetric).toMatch(/^v1a,/)
      expect(verifySignature(null, signed, publicKey, Buffer.from(asymmetric.slice(4), 'base64'))).toBe(true)
      // A receiver that knows the shared secret alone passes over the other one.
      expect(verify(oldSecret, request)).toBeTruthy()
    }
  })

  test('is absent without a secret', async () => {
    await sinkTo(receiver.url).send(persian, attempt())
    expect(receiver.requests[0]?.headers).not.toHaveProperty('webhook-signature')
    expect(receiver.requests[0]?.headers).toHaveProperty('webhook-timestamp')
  })

  test('by a secret file with anything else in it is not attempted', async () => {
    await withFiles({ secret: 'canary, no key at all\n' }, async ({ secret }) => {
      const outcome = await sinkTo(receiver.url, { secret: Secret.fromFile(secret) }).send(persian, attempt())
      expect(outcome).toMatchObject({ kind: 'retry', reason: 'credentials', sinkFault: true })
      expect(outcome.answer.text).not.toContain('canary')
      expect(receiver.requests).toHaveLength(0)
    })
  })
})

describe('another form of the body', () => {
  test('as a CloudEvent is signed like any other', async () => {
    await sinkTo(receiver.url, { format: 'cloudevents', secret: oldSecret }).send(persian, attempt())
    const [request] = receiver.requests
    expect(request?.headers['content-type']).toBe('application/cloudevents+json; charset=UTF-8')
    expect(verify(oldSecret, request)).toMatchObject({
      specversion: '1.0',
      id: 'main.4711',
      type: 'alert.fired',
    })
  })

  test('by a template is signed over its bytes, and has its content type', async () => {
    const template = '<a t="{{ headline }}">{{ why }}</a>'
    const fields = { template, contentType: 'text/html; charset=utf-8', secret: oldSecret }
    await sinkTo(receiver.url, fields).send(hostile, attempt())
    const [request] = receiver.requests
    expect(request?.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(request?.body.match(/<[^>]*>/g)).toHaveLength(2)
    const headers = Object.fromEntries(
      Object.entries(request?.headers ?? {}).map(([name, value]) => [name, `${value}`]),
    )
    const id = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${request?.body}`
    const key = Buffer.from(oldSecret.slice('whsec_'.length), 'base64')
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(id).digest('base64')}`)
  })
})

describe('headers', () => {
  test('of the config are sent, and those of the sink stay its own', async () => {
    await sinkTo(receiver.url, { headers: { 'X-Env': 'prod', 'USER-AGENT': 'mine' } }).send(
      persian,
      attempt(),
    )
    expect(receiver.requests[0]?.headers).toMatchObject({
      'x-env': 'prod',
      'user-agent': 'mine',
      'accept-encoding': 'identity',
    })
  })

  test.each([
    [{ bearer: 'tok' }, 'Bearer tok'],
    [
      { basic: { username: 'bridge', password: 'پ:s' } },
      `Basic ${Buffer.from('bridge:پ:s').toString('base64')}`,
    ],
  ])('carry the login %o', async (auth, expected) => {
    await sinkTo(receiver.url, { auth }).send(persian, attempt())
    expect(receiver.requests[0]?.headers.authorization).toBe(expected)
  })
})

describe('the answer', () => {
  test.each([
    ['in seconds', () => '7', 7_000],
    ['as a date', () => new Date(Date.now() + 90_000).toUTCString(), expect.closeTo(90_000, -4)],
    ['as neither', () => 'soon', undefined],
  ])('with Retry-After %s asks for that pause', async (_form, header, afterMs) => {
    receiver.answerWith({ status: 429, headers: { 'retry-after': header() }, body: 'slow down' })
    const outcome = await sinkTo(receiver.url).send(persian, attempt())
    expect(outcome).toMatchObject({
      kind: 'retry',
      reason: 'rate_limited',
      answer: { status: 429, text: 'slow down' },
    })
    expect('afterMs' in outcome ? outcome.afterMs : undefined).toEqual(afterMs)
  })

  test('that redirects is final, but where it is for now, and the other address hears nothing', async () => {
    const other = await startWebhookReceiver()
    try {
      for (const status of [301, 302, 303, 307, 308]) {
        receiver.answerWith({ status, headers: { location: other.url } })
        expect(await sinkTo(receiver.url).send(persian, attempt())).toMatchObject({
          kind: status === 302 || status === 307 ? 'retry' : 'dead',
          reason: 'redirect',
        })
      }
      expect(other.connections()).toBe(0)
    } finally {
      await other.stop()
    }
  })

  test.each(['drip', 'flood'] as const)('counts by its status when its body does %s', async (kind) => {
    const sink = sinkTo(receiver.url, { timeout: '400ms' })
    receiver.answerWith({ kind, status: 202, everyMs: 50 })
    expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'delivered', answer: { status: 202 } })
    receiver.answerWith({ kind, status: 410, everyMs: 50 })
    expect(await sink.send(persian, attempt())).toMatchObject({ kind: 'dead', reason: 'gone' })
  })

  test('that breaks off is tried again, even after a 2xx: whoever broke it may not have kept the alert', async () => {
    receiver.answerWith({ kind: 'broken', status: 200 })
    expect(await sinkTo(receiver.url).send(persian, attempt())).toMatchObject({
      kind: 'retry',
      reason: 'connection_lost',
    })
  })

  test('in a compressed form is shown as it came, not unpacked', async () => {
    receiver.answerWith({ status: 400, headers: { 'content-encoding': 'gzip' }, body: 'not really' })
    expect((await sinkTo(receiver.url).send(persian, attempt())).answer.text).toBe('not really')
  })
})

test('many sends share few connections', async () => {
  const sink = sinkTo(receiver.url, { concurrency: 3 })
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, (_, id) => sink.send(alertOf({ id: id + 1 }), attempt())),
  )
  expect(outcomes.every((outcome) => outcome.kind === 'delivered')).toBe(true)
  expect(receiver.connections()).toBeLessThanOrEqual(3)
})

describe('over TLS', () => {
  let secure: WebhookReceiver

  beforeEach(async () => {
    secure = await startWebhookReceiver({ tls: testServer })
  })
  afterEach(() => secure.stop())

  test('an authority of the config is trusted, with the name that the config names', async () => {
    await withFiles({ ca: testAuthority, ...testServer }, async ({ ca, cert, key }) => {
      const named = { ca, cert, key, serverName: 'hooks.test' }
      expect(await sinkTo(secure.url, { tls: named }).send(persian, attempt())).toMatchObject({
        kind: 'delivered',
      })
      const other = await sinkTo(secure.url, { tls: { ca, serverName: 'other.test' } }).send(
        persian,
        attempt(),
      )
      expect(other).toMatchObject({ kind: 'retry', reason: 'tls' })
      expect(secure.requests).toHaveLength(1)
    })
  })

  test('a receiver that asks for a certificate gets the one of the config, and no other sink is let in', async () => {
    const names: unknown[] = []
    const server = createServer(
      { ...testServer, ca: testAuthority, requestCert: true, rejectUnauthorized: true },
      (request, response) => {
        names.push((request.socket as TLSSocket).getPeerCertificate().subject.CN)
        response.writeHead(204).end()
      },
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`
    try {
      await withFiles({ ca: testAuthority, ...testServer }, async ({ ca, cert, key }) => {
        const known = await sinkTo(url, { tls: { ca, cert, key } }).send(persian, attempt())
        expect([known.kind, names]).toEqual(['delivered', ['localhost']])
        const stranger = await sinkTo(url, { tls: { ca } }).send(persian, attempt())
        expect(stranger).toMatchObject({ kind: 'retry', sinkFault: true })
        expect(names).toHaveLength(1)
      })
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test('the environment cannot switch the check off', async () => {
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    try {
      expect(await sinkTo(secure.url).send(persian, attempt())).toMatchObject({
        kind: 'retry',
        reason: 'tls',
      })
    } finally {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    }
  })

  test('a file that cannot be read is told when the sink is built', () => {
    expect(() => sinkTo(secure.url, { tls: { ca: '/nowhere/ca.pem' } })).toThrow(
      'cannot read /nowhere/ca.pem (ENOENT)',
    )
  })
})
