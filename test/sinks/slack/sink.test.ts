import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../../src/lib/secret.ts'
import { createSink } from '../../../src/sinks/registry.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import { listMax } from '../../../src/sinks/slack/blocks.ts'
import { slackConfigSchema } from '../../../src/sinks/slack/config.ts'
import { withFiles } from '../../support/files.ts'
import { type SlackReceiver, slackOk, startSlackReceiver } from '../../support/slack-receiver.ts'
import { alertOf, hostile, persian, persianDisplay } from '../samples.ts'

let receiver: SlackReceiver
const sinks: Sink[] = []

beforeEach(async () => {
  receiver = await startSlackReceiver()
})

afterEach(async () => {
  await Promise.all(sinks.splice(0).map((sink) => sink.close()))
  await receiver.stop()
})

function sinkTo(url: string | Secret, fields: Record<string, unknown> = {}): Sink {
  const config = slackConfigSchema.parse({ type: 'slack', url, allowPrivateNetworks: true, ...fields })
  const sink = createSink('ops', config, { display: persianDisplay })
  sinks.push(sink)
  return sink
}

const attempt = () => ({ number: 1, nowMs: Date.now(), signal: new AbortController().signal })

test('the defaults are one message a second, and the contract’s', () => {
  expect(
    slackConfigSchema.parse({ type: 'slack', url: 'https://hooks.slack.com/services/T/B/x' }),
  ).toMatchObject({
    rateLimit: { max: 1, per: 1_000 },
    timeout: 10_000,
    retry: { attempts: 11 },
  })
})

test('an address that is none is refused without being quoted', () => {
  const result = slackConfigSchema.safeParse({ type: 'slack', url: 'hooks.slack.com/services/canary' })
  expect(result.error?.issues[0]?.path).toEqual(['url'])
  expect(JSON.stringify(result.error)).not.toContain('canary')
})

test('posts text and blocks as JSON', async () => {
  expect(await sinkTo(receiver.url).send(persian, attempt())).toEqual({
    kind: 'delivered',
    answer: { status: 200, text: 'ok' },
  })
  expect(receiver.requests[0]?.headers['content-type']).toBe('application/json')
  expect(receiver.messages()[0]).toMatchObject({
    text: expect.stringContaining('فولاد'),
    blocks: expect.any(Array),
  })
})

describe('the answer', () => {
  test.each([
    [
      { status: 200, body: 'invalid_token' },
      { kind: 'dead', reason: 'credentials', sinkFault: true },
    ],
    [
      { status: 200, body: '<html>' },
      { kind: 'retry', reason: 'bad_answer' },
    ],
    [{ status: 200, body: ' ok\n' }, { kind: 'delivered' }],
    [
      { status: 404, body: 'no_service' },
      { kind: 'dead', reason: 'gone', sinkFault: true },
    ],
    [
      { status: 429, headers: { 'retry-after': '30' }, body: 'rate_limited' },
      { kind: 'retry', reason: 'rate_limited', afterMs: 30_000 },
    ],
    [
      { status: 503, body: 'down' },
      { kind: 'retry', reason: 'server_error', answer: { status: 503, text: 'down' } },
    ],
    [{ kind: 'drip', status: 404, everyMs: 50 } as const, { kind: 'dead', reason: 'rejected' }],
    [{ kind: 'drip', status: 200, everyMs: 50 } as const, { kind: 'retry', reason: 'timeout' }],
    [{ kind: 'flood', status: 200 } as const, { kind: 'retry', reason: 'bad_answer' }],
  ])('%o is %o', async (answer, expected) => {
    receiver.answerWith(answer)
    // Only the answer that must not come in time gets a short one.
    const timeout = 'reason' in expected && expected.reason === 'timeout' ? '500ms' : '2s'
    expect(await sinkTo(receiver.url, { timeout }).send(persian, attempt())).toMatchObject(expected)
  })
})

describe('a message that Slack calls invalid', () => {
  test('goes out once more as plain text, with everything in it', async () => {
    receiver.answerWith(({ body }) =>
      body.includes('"blocks"') ? { status: 400, body: 'invalid_blocks' } : slackOk,
    )
    expect(await sinkTo(receiver.url).send(hostile, attempt())).toMatchObject({ kind: 'delivered' })
    const [first, second] = receiver.messages()
    expect(second).not.toHaveProperty('blocks')
    expect(second?.text).toBe(first?.text)
  })

  test('is given up when plain text fares no better', async () => {
    receiver.answerWith({ status: 400, body: 'invalid_payload' })
    const outcome = await sinkTo(receiver.url).send(persian, attempt())
    expect(outcome).toMatchObject({ kind: 'dead', reason: 'rejected', sinkFault: false })
    expect(receiver.requests).toHaveLength(2)
  })

  test('is not repeated where the sink is at fault', async () => {
    receiver.answerWith({ status: 403, body: 'action_prohibited' })
    await sinkTo(receiver.url).send(persian, attempt())
    expect(receiver.requests).toHaveLength(1)
  })
})

test('an address in a file is read anew at every attempt, and a bad one is not quoted', async () => {
  await withFiles({ url: `${receiver.url}\n`, bad: 'canary-no-address' }, async ({ url, bad }) => {
    expect(await sinkTo(Secret.fromFile(url)).send(persian, attempt())).toMatchObject({ kind: 'delivered' })
    const outcome = await sinkTo(Secret.fromFile(bad)).send(persian, attempt())
    expect(outcome).toMatchObject({ kind: 'retry', reason: 'credentials', sinkFault: true })
    expect(outcome.answer.text).not.toContain('canary')
  })
})

describe('a burst', () => {
  const parcels = [persian, hostile].map((alert) => ({ alert }))

  test('is put together only when the config asks for it', () => {
    expect(sinkTo(receiver.url).batch).toBeUndefined()
    expect(sinkTo(receiver.url, { coalesce: {} }).batch?.plan).toMatchObject({
      kind: 'burst',
      after: 5,
      windowMs: 10_000,
      max: listMax,
    })
  })

  test('of long alerts goes out as several messages, each of a length that Slack takes', async () => {
    const { batch } = sinkTo(receiver.url, { coalesce: {} })
    const long = Array.from({ length: listMax }, (_, index) => ({
      alert: alertOf({ id: index + 1, why: `${'reason '.repeat(300)}` }),
    }))
    const parts = batch?.split(long) ?? []
    expect(parts.flat()).toHaveLength(listMax)
    for (const part of parts) expect(await batch?.send(part, attempt())).toMatchObject({ kind: 'delivered' })
    const lengths = receiver.messages().map(({ text }) => text?.length ?? 0)
    expect(lengths.length).toBeGreaterThan(1)
    expect(Math.max(...lengths)).toBeLessThan(13_000)
  })

  test('goes out as one message', async () => {
    const { batch } = sinkTo(receiver.url, { coalesce: { after: 2, window: '5s' } })
    expect(await batch?.send(parcels, attempt())).toMatchObject({ kind: 'delivered' })
    expect(receiver.requests).toHaveLength(1)
    expect(receiver.messages()[0]?.text).toContain('۲ هشدار')
  })

  test('that Slack calls too long goes out as plain text', async () => {
    receiver.answerWith(({ body }) =>
      body.includes('"blocks"') ? { status: 400, body: 'msg_blocks_too_long' } : slackOk,
    )
    const { batch } = sinkTo(receiver.url, { coalesce: {} })
    expect(await batch?.send(parcels, attempt())).toMatchObject({ kind: 'delivered' })
    expect(receiver.messages()[1]).not.toHaveProperty('blocks')
  })
})
