import { expect, it } from 'vitest'
import { startApp } from '../support/app.ts'
import { bridgeConfig } from '../support/bridge.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

it('the page draws the queue and the sends of a sink, also after a restart and of another process', async () => {
  const sandbox = await startSandbox({ history: 5 })
  const hook = await startWebhookReceiver()
  const text = bridgeConfig({ prefix: freshPrefix(), redis, feed: sandbox.url, sinks: { hook: hook.url } })
  const page = async (url: string) => (await fetch(url)).text()
  const first = await startApp(text, { operatorsLookEveryMs: 50 })
  await until('sends are drawn', async () => (await page(first.url)).includes('a send takes '))
  expect(await page(first.url)).toMatch(/aria-label="How long sends took over 24 hours, [\d.]+m?s at most/)
  await first.app.stop()
  // Its sink takes nothing: what fired meanwhile waits.
  hook.answerWith({ status: 503 })
  for (let count = 0; count < 20; count += 1) sandbox.fire({})
  const next = await startApp(text, { operatorsLookEveryMs: 50 })
  await until('its queue is drawn', async () =>
    (await page(next.url)).includes('Queue over 24 hours, 20 at most'),
  )
  expect(await page(next.url)).toContain('a send takes ')
})
