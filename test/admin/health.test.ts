import { expect, test } from 'vitest'
import { bench } from './bench.ts'

test.each(['/healthz', '/-/healthy'])('%s says that the process lives, whatever Redis does', async (url) => {
  const { app } = bench({ readiness: () => Promise.reject(new Error('Redis is away')) })
  expect(await app.inject(url)).toMatchObject({ statusCode: 200, body: 'healthy\n' })
  expect(await app.inject({ method: 'HEAD', url })).toMatchObject({ statusCode: 200, body: '' })
})

test.each(['/readyz', '/-/ready'])('%s answers 200 when ready', async (url) => {
  const { app } = bench()
  expect(await app.inject(url)).toMatchObject({ statusCode: 200, body: 'ready\n' })
  expect(await app.inject({ method: 'HEAD', url })).toMatchObject({ statusCode: 200, body: '' })
})

test('/readyz stays green and says what a person should look at', async () => {
  const { app } = bench({ readiness: async () => ({ ok: true, reason: '3 alerts of sink old are left' }) })
  expect(await app.inject('/readyz')).toMatchObject({
    statusCode: 200,
    body: 'ready: 3 alerts of sink old are left\n',
  })
})

test.each(['/readyz', '/-/ready'])('%s answers 503 with the reason, as text and as JSON', async (url) => {
  const { app } = bench({ readiness: async () => ({ ok: false, reason: 'Redis does not answer' }) })
  const text = await app.inject(url)
  expect(text).toMatchObject({ statusCode: 503, body: 'not ready: Redis does not answer\n' })
  expect(text.headers['content-type']).toBe('text/plain; charset=utf-8')
  const json = await app.inject({ url, headers: { accept: 'application/json' } })
  expect(json.statusCode).toBe(503)
  expect(json.json()).toEqual({ ready: false, reason: 'Redis does not answer' })
  expect((await app.inject({ method: 'HEAD', url })).statusCode).toBe(503)
})

test('/metrics is Prometheus text', async () => {
  const { app } = bench()
  const response = await app.inject('/metrics')
  expect(response.statusCode).toBe(200)
  expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(response.body).toContain('alert_bridge_build_info')
})

test('/metrics asks only for the metrics: a Redis outage does not reach it', async () => {
  const away = () => Promise.reject(new Error('Redis is away'))
  const { app } = bench({ readiness: away, status: away })
  expect((await app.inject('/metrics')).statusCode).toBe(200)
})
