import { expect, test } from 'vitest'
import { rig } from './rig.ts'
import { sink, status } from './views.ts'

test.each(['/healthz', '/-/healthy'])('%s says that the process lives, whatever Redis does', async (url) => {
  const { app } = rig({ status: () => Promise.reject(new Error('Redis is away')) })
  expect(await app.inject(url)).toMatchObject({ statusCode: 200, body: 'healthy\n' })
  expect(await app.inject({ method: 'HEAD', url })).toMatchObject({ statusCode: 200, body: '' })
})

test.each(['/healthz', '/-/healthy'])('%s asks for a restart where only that helps', async (url) => {
  const { app } = rig({ hung: () => 'source main: the polling loop is stuck' })
  expect(await app.inject(url)).toMatchObject({
    statusCode: 503,
    body: 'not alive: source main: the polling loop is stuck\n',
  })
})

test.each(['/readyz', '/-/ready'])('%s answers 200 when ready', async (url) => {
  const { app } = rig()
  expect(await app.inject(url)).toMatchObject({ statusCode: 200, body: 'ready\n' })
  expect(await app.inject({ method: 'HEAD', url })).toMatchObject({ statusCode: 200, body: '' })
})

test('/readyz stays green and says what a person should look at', async () => {
  const { app } = rig({ status: async () => status({ sinks: [sink({ name: 'hook', dead: 3 })] }) })
  expect(await app.inject('/readyz')).toMatchObject({
    statusCode: 200,
    body: 'ready, with one thing to look at: Sink hook has 3 dead letters\n',
  })
})

test.each(['/readyz', '/-/ready'])('%s answers 503 with the reason, as text and as JSON', async (url) => {
  const reason = 'Redis does not answer: polling and sending wait for it'
  const { app } = rig({ status: async () => status({ redis: { ok: false } }) })
  const text = await app.inject(url)
  expect(text).toMatchObject({
    statusCode: 503,
    body: `not ready: something is broken: ${reason}\n`,
  })
  expect(text.headers['content-type']).toBe('text/plain; charset=utf-8')
  const json = await app.inject({ url, headers: { accept: 'application/json' } })
  expect(json.statusCode).toBe(503)
  expect(json.json()).toEqual({
    ready: false,
    reason,
    level: 'failed',
    headline: 'Not ready: something is broken',
  })
  expect((await app.inject({ method: 'HEAD', url })).statusCode).toBe(503)
})

test('/metrics is Prometheus text', async () => {
  const { app } = rig()
  const response = await app.inject('/metrics')
  expect(response.statusCode).toBe(200)
  expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.body).toContain('alert_bridge_build_info')
})

test('/metrics is OpenMetrics for who asks for that, as Prometheus does', async () => {
  const { app } = rig({ metricsText: async (format) => format })
  const accept = 'application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5'
  const { body, headers } = await app.inject({ url: '/metrics', headers: { accept } })
  expect([body, headers['content-type']]).toEqual([
    'openmetrics',
    'application/openmetrics-text; version=1.0.0; charset=utf-8',
  ])
  const refused = { accept: 'application/openmetrics-text; version=1.0.0; q=0.0, text/plain' }
  expect((await app.inject({ url: '/metrics', headers: refused })).body).toBe('prometheus')
})

test('/metrics asks only for the metrics: a Redis outage does not reach it', async () => {
  const away = () => Promise.reject(new Error('Redis is away'))
  const { app } = rig({ status: away })
  expect((await app.inject('/metrics')).statusCode).toBe(200)
})
