import { expect, it } from 'vitest'
import { startApp } from '../support/app.ts'
import { adminToken, bridgeConfig } from '../support/bridge.ts'
import { useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('more polls of a source with a fixed pace are refused, since they would not come', async () => {
  const [sandbox, hook] = [await startSandbox(), await startWebhookReceiver()]
  const text = bridgeConfig({ redis, feed: sandbox.url, sinks: { hook: hook.url }, every: '1h' })
  const { url } = await startApp(text)
  const response = await fetch(`${url}/api/v1/sources/main/hot`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: '{"for":"5m"}',
  })
  expect(response.status).toBe(409)
  expect(await response.json()).toMatchObject({
    detail: 'Source main polls at a fixed pace (poll.every 1h), which nothing makes faster.',
  })
})
