import { startApp } from '../support/app.ts'
import { adminToken, api, bridgeConfig } from '../support/bridge.ts'
import type { RedisServer } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const hostile = `"'><img src=x onerror=alert(1)><script>alert(2)</script>\u202E evil \u0000 ${'long'.repeat(80)}`

/** Four sinks, of which two work; alerts with texts that nobody would wish for. */
export async function brokenBridge(redis: RedisServer, language: 'en' | 'fa', history = 12) {
  const sandbox = await startSandbox({ history, requestsPerMinute: 1_000_000 })
  for (const headline of [hostile, 'فولاد از ۵٬۲۰۰ ریال گذشت', 'mixed متن with 12 of ۱۲'])
    sandbox.fire({ headline, symbol: 'فولاد', kind: 'price' })
  const good = await startWebhookReceiver()
  const refusing = await startWebhookReceiver({ answer: { status: 400, body: hostile } })
  const down = await startWebhookReceiver({ answer: { status: 503 } })
  const sink = 'allowPrivateNetworks: true, retry: { attempts: 9, initialDelay: 10m, maxDelay: 1h }'
  const sinks = { hook: good.url, refusing: refusing.url, down: down.url, desk: good.url }
  const text = bridgeConfig({ redis, feed: sandbox.url, sinks, sink }).replace(
    'every: 250ms, ',
    'maxInterval: 1s, ',
  )
  const { url } = await startApp(`${text}\ndisplay: { language: ${language} }\n`, {
    operatorsLookEveryMs: 50,
  })
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' }
  const post = (path: string, body: object) =>
    fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  await post('/api/v1/sinks/desk/pause', { for: '1h', comment: 'they migrate' })
  const total = async (state: string) =>
    (await api<{ data: unknown[] }>(url, `/api/v1/deliveries?state=${state}&limit=100`)).data.length
  await until('all are dead at one', async () => (await total('dead')) === history + 3, 30_000)
  await until(
    'one rests',
    async () => (await (await fetch(url)).text()).includes('/sinks/down/probe'),
    30_000,
  )
  return { url }
}
