import { afterEach, describe, expect, test } from 'vitest'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { answerTextMax } from '../../src/sinks/outcome.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import { evil, whole } from '../sinks/contexts.ts'
import { alertOf, english, hostile, persian } from '../sinks/samples.ts'
import { type RawBehaviour, startRawServer, unusedPort } from '../support/raw-server.ts'
import { attemptOf, type Rig, rigs } from './rig.ts'

/** What every sink keeps, whatever it speaks: one suite, against real servers that behave well or badly. */

const cleanUps: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

function used<T extends { close?(): Promise<unknown>; stop?(): Promise<unknown> }>(resource: T): T {
  cleanUps.push(async () => (resource.stop ?? resource.close)?.call(resource))
  return resource
}

describe.each(rigs)('a $type sink', (rig: Rig) => {
  const sinkAt = (port: number, over: Record<string, unknown> = {}): Sink =>
    used(rig.sink(rig.address(port), over))

  /** One attempt against a server that behaves so. */
  async function meets(behaviour: RawBehaviour, over: Record<string, unknown> = {}): Promise<Outcome> {
    const server = used(await startRawServer(behaviour))
    return sinkAt(server.port, over).send(english, attemptOf(rig))
  }

  const first = rig.speaksFirst ? 'connect' : 'request'

  test('delivers, and says what was answered', async () => {
    const receiver = used(await rig.receiver())
    const outcome = await used(rig.sink(receiver.url)).send(persian, attemptOf(rig))
    expect(outcome).toMatchObject({ kind: 'delivered', answer: { status: expect.any(Number) } })
    expect(receiver.arrived()).toBe(1)
  })

  test('delivers hostile, huge and empty text', async () => {
    const receiver = used(await rig.receiver())
    const sink = used(rig.sink(receiver.url))
    const big = 'ب'.repeat(400_000)
    const alerts = [
      hostile,
      alertOf({
        headline: big,
        why: `${big}\n${big}`,
        symbol: big,
        kind: big,
        url: `https://example.com/${big}`,
      }),
      alertOf({ headline: `a${'\u0301'.repeat(200_000)}`, why: '\n'.repeat(100_000) }),
      alertOf({ headline: '', why: '', symbol: null, kind: '', url: '', ruleIds: [], firedAt: 'yesterday' }),
    ]
    for (const alert of alerts)
      expect(await sink.send(alert, attemptOf(rig))).toMatchObject({ kind: 'delivered' })
    expect(receiver.arrived()).toBe(alerts.length)
  })

  test('delivers an alert with its context, also where that is hostile', async () => {
    const receiver = used(await rig.receiver())
    const sink = used(rig.sink(receiver.url))
    for (const context of [whole, evil])
      expect(await sink.send(hostile, { ...attemptOf(rig), context })).toMatchObject({ kind: 'delivered' })
    expect(receiver.arrived()).toBe(2)
  })

  test('waits no longer than its timeout for a server that never speaks', async () => {
    const startedAt = performance.now()
    const outcome = await meets({ kind: 'hang' }, { timeout: '300ms' })
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'timeout', sinkFault: true })
    expect(performance.now() - startedAt).toBeLessThan(3_000)
  })

  test('counts the timeout over the whole attempt, however slowly the answer drips', async () => {
    const startedAt = performance.now()
    const outcome = await meets(
      {
        kind: 'say',
        after: first,
        first: rig.slowStart,
        more: { text: '.', everyMs: 50 },
      },
      { timeout: '400ms' },
    )
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'timeout' })
    expect(performance.now() - startedAt).toBeLessThan(3_000)
  })

  test('stops reading an answer without end', async () => {
    const before = process.memoryUsage().rss
    const text = rig.endless.more.repeat(10_000)
    const outcome = await meets(
      { kind: 'say', after: first, first: rig.endless.start, more: { text, everyMs: 0 } },
      { timeout: '5s' },
    )
    expect(outcome).toMatchObject({ kind: 'retry', reason: rig.endless.reason })
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000)
  })

  test('tries again after a reset', async () => {
    expect(await meets({ kind: 'reset', after: first })).toMatchObject({
      kind: 'retry',
      reason: 'connection_lost',
      sinkFault: true,
    })
  })

  test('tries again after an answer in no known protocol', async () => {
    expect(await meets({ kind: 'say', after: first, first: 'hello, who is this?\r\n\r\n' })).toMatchObject({
      kind: 'retry',
      reason: 'bad_answer',
    })
  })

  test('tries again where nobody listens', async () => {
    const outcome = await sinkAt(await unusedPort()).send(english, attemptOf(rig))
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'connect', sinkFault: true })
  })

  test('tries again where the name is unknown', async () => {
    const sink = used(
      rig.sink(rig.address(1, 'nowhere.test'), {}, async () => {
        throw Object.assign(new Error('getaddrinfo ENOTFOUND nowhere.test'), { code: 'ENOTFOUND' })
      }),
    )
    const outcome = await sink.send(english, attemptOf(rig))
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'dns', sinkFault: true })
  })

  test('tries again where the certificate is not trusted, and sends nothing', async () => {
    const receiver = used(await rig.receiver({ tls: true }))
    const outcome = await used(rig.sink(receiver.url)).send(english, attemptOf(rig))
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'tls', sinkFault: true })
    expect(receiver.arrived()).toBe(0)
  })

  test('makes no connection to a private address unless it is allowed', async () => {
    const receiver = used(await rig.receiver())
    const refused = await used(rig.sink(receiver.url, { allowPrivateNetworks: false })).send(
      english,
      attemptOf(rig),
    )
    expect(refused).toMatchObject({ kind: 'dead', reason: 'blocked_address', sinkFault: true })
    expect(refused.answer.text).toContain('allowPrivateNetworks')
    expect(receiver.connections()).toBe(0)
    const allowed = used(rig.sink(receiver.url, { allowPrivateNetworks: ['127.0.0.0/8'] }))
    expect(await allowed.send(english, attemptOf(rig))).toMatchObject({ kind: 'delivered' })
  })

  test('makes no connection when a name turns to a private address between two attempts', async () => {
    const receiver = used(await rig.receiver())
    const answers = [['127.0.0.1'], ['93.184.216.34', '127.0.0.1'], ['169.254.169.254']]
    const port = Number(new URL(receiver.url).port)
    const sink = used(
      rig.sink(rig.address(port, 'rebinding.test'), { allowPrivateNetworks: false }, async () =>
        (answers.shift() ?? []).map((address) => ({ address, family: 4 })),
      ),
    )
    for (let attempt = 0; attempt < 3; attempt += 1)
      expect(await sink.send(english, attemptOf(rig))).toMatchObject({
        kind: 'retry',
        reason: 'blocked_address',
        sinkFault: true,
      })
    expect(receiver.connections()).toBe(0)
  })

  test('never connects to a metadata address, even where private networks are allowed', async () => {
    const sink = used(
      rig.sink(rig.address(80, 'metadata.test'), {}, async () => [
        { address: '::ffff:a9fe:a9fe', family: 6 },
      ]),
    )
    const outcome = await sink.send(english, attemptOf(rig))
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'blocked_address' })
    expect(outcome.answer.text).toContain('metadata')
  })

  test('lets go at once when it is called off', async () => {
    const server = used(await startRawServer({ kind: 'hang' }))
    const stop = new AbortController()
    const startedAt = performance.now()
    const sending = sinkAt(server.port, { timeout: '60s' }).send(english, attemptOf(rig, stop.signal))
    setTimeout(() => stop.abort(), 100)
    expect(await sending).toMatchObject({ kind: 'retry', reason: 'aborted', sinkFault: false })
    expect(performance.now() - startedAt).toBeLessThan(3_000)
  })

  test('sends nothing when it was called off before', async () => {
    const receiver = used(await rig.receiver())
    const outcome = await used(rig.sink(receiver.url)).send(english, attemptOf(rig, AbortSignal.abort()))
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'aborted' })
    expect(receiver.arrived()).toBe(0)
  })

  test('shows no secret, even when the receiver echoes it, and no more than a line', async () => {
    const receiver = used(await rig.receiver())
    receiver.refuseWith(`\u001b[31m${rig.secrets.join(' ')}\u0000 ${'x'.repeat(2_000)}`)
    const outcome = await used(rig.sink(receiver.url)).send(english, attemptOf(rig))
    expect(outcome.kind).not.toBe('delivered')
    expect(outcome.answer.text).toContain('[redacted]')
    for (const secret of rig.secrets) expect(JSON.stringify(outcome)).not.toContain(secret)
    expect(outcome.answer.text.length).toBeLessThanOrEqual(answerTextMax)
    expect(outcome.answer.text).not.toMatch(/\p{Cc}/u)
  })

  test('shows no secret in any fault', async () => {
    const outcomes = [
      await meets({ kind: 'reset', after: first }),
      await meets({ kind: 'say', after: first, first: `${rig.secrets.join('\r\n')}\r\n\r\n` }),
      await sinkAt(await unusedPort()).send(english, attemptOf(rig)),
    ]
    for (const secret of rig.secrets) expect(JSON.stringify(outcomes)).not.toContain(secret)
  })

  test('waits for the operator when a secret file cannot be read', async () => {
    const receiver = used(await rig.receiver())
    const outcome = await used(rig.sinkWithMissingSecretFile(receiver.url)).send(english, attemptOf(rig))
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'credentials', sinkFault: true })
    expect(outcome.answer.text).toContain('/nowhere/secret')
    expect(receiver.arrived()).toBe(0)
  })

  test('can be closed twice, and without ever having sent', async () => {
    const sink = rig.sink(rig.address(1))
    await sink.close()
    await sink.close()
  })
})

describe.each(rigs.filter(({ batching }) => batching !== undefined))(
  'several alerts as one message of a $type sink',
  (rig: Rig) => {
    const parcels = [persian, english, hostile].map((alert) => ({ alert }))

    async function sendTo(address: string, over: Record<string, unknown> = {}, signal?: AbortSignal) {
      const { batch } = used(rig.sink(address, { ...rig.batching, ...over }))
      if (batch === undefined) throw new Error('it takes one alert at a time')
      return batch.send(parcels, attemptOf(rig, signal))
    }

    test('are delivered, and acknowledged once', async () => {
      const receiver = used(await rig.receiver())
      expect(await sendTo(receiver.url)).toMatchObject({ kind: 'delivered' })
      expect(receiver.arrived()).toBe(1)
    })

    test('wait no longer than the timeout, and let go at once when called off', async () => {
      const server = used(await startRawServer({ kind: 'hang' }))
      const late = await sendTo(rig.address(server.port), { timeout: '300ms' })
      expect(late).toMatchObject({ kind: 'retry', reason: 'timeout', sinkFault: true })
      const stop = new AbortController()
      setTimeout(() => stop.abort(), 100)
      const off = await sendTo(rig.address(server.port), { timeout: '60s' }, stop.signal)
      expect(off).toMatchObject({ kind: 'retry', reason: 'aborted', sinkFault: false })
    })

    test('show no secret in what became of them', async () => {
      const receiver = used(await rig.receiver())
      receiver.refuseWith(rig.secrets.join(' '))
      const outcome = await sendTo(receiver.url)
      expect(outcome.kind).not.toBe('delivered')
      for (const secret of rig.secrets) expect(JSON.stringify(outcome)).not.toContain(secret)
    })

    test('make no connection to a private address', async () => {
      const receiver = used(await rig.receiver())
      const outcome = await sendTo(receiver.url, { allowPrivateNetworks: false })
      expect(outcome).toMatchObject({ kind: 'dead', reason: 'blocked_address' })
      expect(receiver.connections()).toBe(0)
    })
  },
)
