import { expect, test } from 'vitest'
import { startApp } from '../support/app.ts'
import { adminToken, api, readiness } from '../support/bridge.ts'
import { ownRedis, redisRig } from '../support/redis-rig.ts'
import { until } from '../support/until.ts'

test('an order that Redis does not answer in time is not said to have failed: it may be carried out all the same', async () => {
  const redis = await ownRedis()
  const { text } = await redisRig(redis)
  const { url } = await startApp(text)
  const state = async () => {
    const { sinks } = await api<{ sinks: { state: string }[] }>(url, '/api/v1/status')
    return sinks[0]?.state
  }
  await until('the sink is known', async () => (await state()) === 'active')
  const order = async (what: 'pause' | 'resume') => {
    const headers = { authorization: `Bearer ${adminToken}` }
    const response = await fetch(`${url}/api/v1/sinks/hook/${what}`, { method: 'POST', headers })
    expect(response.status).toBe(503)
    return ((await response.json()) as { detail: string }).detail
  }
  redis.freeze()
  const unheard = await order('pause')
  redis.thaw()
  expect(unheard).toMatch(/did not say in time that it is done: look/)
  await until('the sink is paused', async () => (await state()) === 'paused')
  await redis.kill9()
  await until('the connection is lost', async () => (await readiness(url)) !== 'ok')
  expect(await order('resume')).toMatch(/^That could not be done now/)
})
