import { describe, expect, test } from 'vitest'
import { alertOf, english, englishDisplay, hostile, persian, persianDisplay } from '../samples.ts'
import { page, refusalPages, serve } from '../serving.ts'

const routingKey = 'k'.repeat(32)
const config = (baseUrl: string) => ({ type: 'pagerduty', baseUrl, routingKey, severity: 'critical' })

test.each([
  ['persian', persian, persianDisplay],
  ['english', english, englishDisplay],
  ['hostile', hostile, englishDisplay],
] as const)('the event of the %s sample is the one that was looked at', async (name, alert, display) => {
  const { request, body } = await serve({ config, alert, display })
  expect(request).toMatchObject({ method: 'POST', path: '/v2/enqueue' })
  await expect(`${JSON.stringify(body, null, 2)}\n`).toMatchFileSnapshot(`../golden/pagerduty-${name}.json`)
})

test('one alert is one incident, at whatever attempt', async () => {
  const [first, again] = await Promise.all([serve({ config }), serve({ config })])
  expect(first.body).toMatchObject({ dedup_key: 'main.4711', event_action: 'trigger' })
  expect(again.request.body).toBe(first.request.body)
})

test('the summary is never empty and never too long', async () => {
  const long = alertOf({ headline: 'ب'.repeat(5_000), why: 'x'.repeat(900_000) })
  const empty = alertOf({ headline: '', symbol: null, kind: '' })
  for (const alert of [long, empty]) {
    const { body, request } = await serve({ config, alert })
    const { summary } = body['payload'] as { summary: string }
    expect(summary.length).toBeGreaterThan(0)
    expect(summary.length).toBeLessThanOrEqual(1_024)
    expect(Buffer.byteLength(request.body)).toBeLessThan(512_000)
  }
})

test('component and class are one line, cut between characters as people see them, and left out where nothing is left', async () => {
  const family = '👩‍👩‍👧‍👦'
  const alert = alertOf({ symbol: `${'x'.repeat(299)}😀 evil`, kind: family.repeat(100) })
  const { component, class: kind } = (await serve({ config, alert })).body['payload'] as Record<
    string,
    string
  >
  expect(component).toBe(`${'x'.repeat(299)}…`)
  expect(kind?.slice(0, -1).replaceAll(family, '')).toBe('')
  expect(kind?.length).toBeGreaterThan(250)
  const controls = alertOf({ symbol: 'a\r\n\u202eb\ud800', kind: ' \u0000\u202e' })
  const payload = (await serve({ config, alert: controls })).body['payload']
  expect(payload).toMatchObject({ component: 'a b\ufffd' })
  expect(payload).not.toHaveProperty('class')
})

test('a date that is none is left to the service', async () => {
  const { body } = await serve({ config, alert: alertOf({ firedAt: 'yesterday' }) })
  expect(body['payload']).not.toHaveProperty('timestamp')
})

describe('the answer', () => {
  const invalid = (errors: string[]) => ({
    status: 400,
    body: JSON.stringify({ status: 'invalid event', message: 'Event object is invalid', errors }),
  })

  test.each([
    [page, { kind: 'retry', reason: 'bad_answer' }],
    ...refusalPages,
    [{ status: 202, body: '{"status":"success"}' }, { kind: 'delivered' }],
    [
      invalid(["'payload.summary' is missing or blank"]),
      { kind: 'dead', reason: 'rejected', sinkFault: false },
    ],
    [invalid(["'routing_key' is invalid"]), { kind: 'dead', reason: 'credentials', sinkFault: true }],
    [{ status: 429 }, { kind: 'retry', reason: 'rate_limited' }],
    [{ status: 500 }, { kind: 'retry', reason: 'server_error' }],
  ])('%o is %o', async (answer, expected) => {
    expect((await serve({ config, answer })).outcome).toMatchObject(expected)
  })
})
