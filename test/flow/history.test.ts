import { expect, it } from 'vitest'
import { startApp } from '../support/app.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

const redis = useRedis()

/** How many pages of the past were read, in one go or in several. */
function pagesTold(lines: readonly { readonly msg?: unknown; readonly pages?: unknown }[]): number {
  return lines.reduce((sum, { msg, pages }) => sum + (msg === 'poll.history' ? Number(pages) : 0), 0)
}

it('a cold start buys pages of the past once, sends nothing of them, and a restart buys none', async () => {
  const sandbox = await startSandbox({ history: 1_500 })
  const hook = await startWebhookReceiver()
  const config = `
    redis: { url: "${redis.url}", prefix: ${freshPrefix()} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: sandbox-token, startFrom: now, budget: { unitsPerDay: 80000 }, poll: { historyPages: 4, maxInterval: 3s } } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `
  const first = await startApp(config)
  await until('the pages were read', () => pagesTold(first.lines) === 4)
  expect(sandbox.requests[0]?.page).toBe(1)
  // Polls may come between them.
  expect(sandbox.requests.map(({ page }) => page).filter((page) => page !== 1)).toEqual([2, 3, 4, 5])
  const purposes = (await first.app.metrics.budgetUnits.get()).values
  expect(purposes.find(({ labels }) => labels.purpose === 'history')?.value).toBe(4)
  await first.app.stop()

  sandbox.fire()
  const calls = sandbox.requests.length
  await startApp(config)
  await hook.received(1, 30_000)
  expect(sandbox.requests.slice(calls).every(({ page }) => page === 1)).toBe(true)
  expect(hook.requests).toHaveLength(1)
}, 60_000)

it('pages of the past are bought once the token is right, also when the bridge was started anew for it', async () => {
  const sandbox = await startSandbox({ history: 1_500 })
  const hook = await startWebhookReceiver()
  const prefix = freshPrefix()
  const config = (token: string) => `
    redis: { url: "${redis.url}", prefix: ${prefix} }
    http: { listen: "127.0.0.1:0" }
    sources: { main: { baseUrl: "${sandbox.url}", token: ${token}, startFrom: now, budget: { unitsPerDay: 80000 }, poll: { historyPages: 4, maxInterval: 3s } } }
    sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
    routes: [{ sinks: [hook] }]
  `
  const first = await startApp(config('another'))
  await until('it is refused', () => first.lines.some(({ msg }) => msg === 'poll.done'))
  await first.app.stop()

  const second = await startApp(config('sandbox-token'))
  await until('pages were read', () => pagesTold(second.lines) === 4)
}, 60_000)
