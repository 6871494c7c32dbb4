import { describe, expect, test } from 'vitest'
import { ntfyMessage } from '../../../src/sinks/ntfy/message.ts'
import { alertOf, english, englishDisplay, hostile, persian, persianDisplay } from '../samples.ts'
import { page, refusalPages, serve } from '../serving.ts'

const config = (baseUrl: string) => ({
  type: 'ntfy',
  baseUrl,
  topic: 'desk-alerts',
  auth: { bearer: 'tk_token' },
  priority: 'high',
  tags: ['chart_with_upwards_trend'],
})
const options = { topic: 'desk-alerts', priority: 'default', tags: [] } as const

test.each([
  ['persian', persian, persianDisplay],
  ['english', english, englishDisplay],
  ['hostile', hostile, englishDisplay],
] as const)('the message of the %s sample is the one that was looked at', async (name, alert, display) => {
  const text = `${JSON.stringify(ntfyMessage({ alert }, display, options), null, 2)}\n`
  await expect(text).toMatchFileSnapshot(`../golden/ntfy-${name}.json`)
})

test('is published as JSON to the root of the server, with the token', async () => {
  const { request, body } = await serve({ config })
  expect(request).toMatchObject({ method: 'POST', path: '/', headers: { authorization: 'Bearer tk_token' } })
  expect(body).toMatchObject({
    topic: 'desk-alerts',
    priority: 4,
    tags: ['chart_with_upwards_trend'],
    click: 'https://example.com/alerts/4711?ref=feed&tab=rules',
  })
  expect(body['title']).toBe(`\u200f${persian.headline}`)
})

test('a message never grows into an attachment', () => {
  for (const piece of ['ب', '漢', '@a', '\\"', '👩‍👩‍👧‍👦', '漢\n'])
    for (const display of [persianDisplay, englishDisplay]) {
      const long = piece.repeat(5_000)
      const alert = alertOf({ headline: long, why: long, symbol: long, kind: long, ruleIds: [long] })
      const { message } = ntfyMessage({ alert }, display, options) as { message: string }
      expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4_096)
    }
})

test('hostile text links nowhere', () => {
  const { click: _, ...shown } = ntfyMessage({ alert: hostile }, englishDisplay, options) as Record<
    string,
    unknown
  >
  expect(JSON.stringify(shown)).not.toMatch(/:\/\/|evil\.example/)
})

describe('the answer', () => {
  test.each([
    [page, { kind: 'retry', reason: 'bad_answer' }],
    ...refusalPages,
    [
      { status: 200, body: '{"id":"x","message":"…"}' },
      { kind: 'delivered', answer: { text: '' } },
    ],
    [
      { status: 429, body: '{"code":42901,"http":429,"error":"limit reached: too many requests"}' },
      { kind: 'retry', reason: 'rate_limited', answer: { text: 'limit reached: too many requests' } },
    ],
    [
      { status: 403, body: '{"error":"forbidden"}' },
      { kind: 'dead', reason: 'credentials', sinkFault: true },
    ],
    [
      { status: 413, body: '{"error":"too large"}' },
      { kind: 'dead', reason: 'rejected', sinkFault: false },
    ],
    [{ status: 507 }, { kind: 'retry', reason: 'server_error' }],
  ])('%o is %o', async (answer, expected) => {
    expect((await serve({ config, answer })).outcome).toMatchObject(expected)
  })
})
