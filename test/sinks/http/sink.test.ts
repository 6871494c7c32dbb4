import { expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../../src/lib/secret.ts'
import { createSink } from '../../../src/sinks/registry.ts'
import type { Sink } from '../../../src/sinks/sink.ts'
import { sinkConfigSchema } from '../../../src/sinks/sink-config.ts'
import { withFiles } from '../../support/files.ts'
import { contextOf } from '../contexts.ts'
import { alertOf, englishDisplay, hostile, persian } from '../samples.ts'
import { serve } from '../serving.ts'

test('the request is what the config says, filled with the alert', async () => {
  const { outcome, request } = await serve({
    config: (origin) => ({
      type: 'http',
      url: `${origin}/v1/{{ source }}/{{ symbol }}?kind={{ kind }}`,
      method: 'PATCH',
      contentType: 'text/plain; charset=utf-8',
      template: '{{ symbol }}: {{ headline }}',
      headers: { 'X-Env': 'prod' },
      auth: { basic: { username: 'me', password: 'secret' } },
    }),
    answer: { status: 200, body: 'thanks' },
  })
  expect(outcome).toEqual({ kind: 'delivered', answer: { status: 200, text: 'thanks' } })
  expect(request).toMatchObject({
    method: 'PATCH',
    path: `/v1/main/${encodeURIComponent('فولاد')}?kind=price`,
    body: `فولاد: ${persian.headline}`,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'x-env': 'prod',
      authorization: `Basic ${Buffer.from('me:secret').toString('base64')}`,
    },
  })
})

test('without a template the body is the one of webhooks, unsigned', async () => {
  const { request, body } = await serve({ config: (origin) => ({ type: 'http', url: `${origin}/x` }) })
  expect(body).toMatchObject({ type: 'alert.fired', data: { source: 'main', delivery: { id: 4711 } } })
  expect(Object.keys(request.headers).filter((name) => name.startsWith('webhook-'))).toEqual([])
})

test('an alert that would lead to another address is given up, and the sink is not blamed', async () => {
  const sending = serve({
    config: (origin) => ({ type: 'http', url: `${origin}/a/{{ symbol | default: "none" }}/b` }),
    alert: alertOf({ symbol: '..' }),
  })
  await expect(sending).rejects.toThrow('"reason":"unrenderable","sinkFault":false')
})

test('an alert that the template cannot write with its context goes out without it', async () => {
  const { body } = await serve({
    config: (origin) => ({
      type: 'http',
      url: origin,
      template:
        '{ "id": "{{ id }}", "last": {{ context.price.data.last | default: 0 | raw }}, "skipped": {{ context.skipped }} }',
    }),
    context: contextOf({ price: { last: '5,230' } }),
  })
  const skipped = [
    { what: 'indicators', why: 'budget' },
    { what: 'price', why: 'failed' },
  ]
  expect(body).toEqual({ id: 'main.4711', last: 0, skipped })
})

test('an alert goes out also where the template cannot write that all of its context is missing', async () => {
  const template =
    '{ "id": "{{ id }}"{% if context %}, "last": {{ context.price.data.last | raw }}{% endif %} }'
  const { body } = await serve({
    config: (origin) => ({ type: 'http', url: origin, template }),
    context: contextOf({}),
  })
  expect(body).toEqual({ id: 'main.4711' })
})

test('hostile text stays inside the body', async () => {
  const { body } = await serve({
    config: (origin) => ({
      type: 'http',
      url: origin,
      template: '{ "a": "{{ headline }}", "admin": false }',
    }),
    alert: hostile,
  })
  expect(Object.keys(body)).toEqual(['a', 'admin'])
  expect(body['admin']).toBe(false)
})

test('an address in a file is read anew, and one that is none waits for the operator unquoted', async () => {
  await withFiles({ bad: 'canary no address' }, async ({ bad }) => {
    await expect(serve({ config: () => ({ type: 'http', url: Secret.fromFile(bad) }) })).rejects.toThrow(
      /"reason":"credentials".*is no usable address/,
    )
    await expect(serve({ config: () => ({ type: 'http', url: Secret.fromFile(bad) }) })).rejects.not.toThrow(
      'canary',
    )
  })
})

test('between two bodies from a template that takes long, all else has its turn; short ones wait for none', async () => {
  const fields = { type: 'http', url: 'https://127.0.0.1:9', template: '{{ headline | json }}' }
  const [slow, other, hurried] = ['slow', 'other', 'hurried'].map((name) => {
    const timeout = name === 'hurried' ? '1s' : '10s'
    return createSink(name, sinkConfigSchema.parse({ ...fields, timeout }), { display: englishDisplay })
  })
  let turn = 0
  const ticking = setInterval(() => (turn += 1), 1)
  onTestFinished(() => clearInterval(ticking))
  const { signal } = new AbortController()
  const written: [sink: string | undefined, turn: number][] = []
  const send = (sink: Sink | undefined) => {
    const alert = Object.defineProperty({ ...persian }, 'headline', {
      get() {
        written.push([sink?.name, turn])
        const since = process.threadCpuUsage()
        while (sink !== other && process.threadCpuUsage(since).user < 15_000);
        return persian.headline
      },
    })
    return sink?.send(alert, { number: 1, nowMs: Date.now(), signal })
  }
  // A template is known as slow or short once it has been used.
  await Promise.all([other, slow].map(send))
  written.length = 0
  await Promise.all([slow, slow, slow, other, other].map(send))
  const turnsOf = (name: string) => new Set(written.flatMap(([sink, at]) => (sink === name ? at : [])))
  expect([turnsOf('slow').size, turnsOf('other').size]).toEqual([3, 1])
  expect(written.slice(0, 2).map(([sink]) => sink)).toEqual(['other', 'other'])
  // That no more texts can be made in time is no fault of the sink.
  const outcomes = await Promise.all(Array.from({ length: 50 }, () => send(hurried)))
  const late = outcomes.flatMap((outcome) =>
    outcome?.answer.text.startsWith('too many texts') ? outcome : [],
  )
  expect(
    new Set(late.map((outcome) => 'reason' in outcome && [outcome.reason, outcome.sinkFault].join())),
  ).toEqual(new Set(['aborted,false']))
})
