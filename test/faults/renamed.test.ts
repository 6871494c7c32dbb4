import { setImmediate as untilNextTurn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createLogger } from '../../src/telemetry/log.ts'
import { startApp } from '../support/app.ts'
import { onTestFinished } from '../support/finished.ts'
import { startRedis } from '../support/redis.ts'
import { startSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'

it('a source whose new name Redis forgets, coming back without its last second, goes on where it was', async () => {
  const own = await startRedis()
  onTestFinished(() => own.dispose())
  const client = own.client()
  const [sandbox, hook] = [await startSandbox({ requestsPerMinute: 1_000_000 }), await startWebhookReceiver()]
  const text = (source: string) => `
redis: { url: "${own.url}" }
http: { listen: "127.0.0.1:0" }
sources:
  ${source}: { baseUrl: "${sandbox.url}", token: sandbox-token, poll: { every: 250ms, minInterval: 250ms }, budget: { unitsPerDay: 1000000 } }
sinks: { hook: { type: webhook, url: "${hook.url}", allowPrivateNetworks: true } }
routes: [{ sinks: [hook] }]
`
  const before = await startApp(text('main'))
  await until('the first poll', () => before.lines.some(({ msg }) => msg === 'poll.done'))
  const seen = sandbox.fireMany(2)
  await hook.received(2)
  await before.app.stop()
  const meanwhile = sandbox.fireMany(3)
  await client.save()

  let back: Promise<void> | undefined
  const rewind = async () => {
    // What is asked next is on its way when the server dies, and the driver asks it again of the one that comes back.
    own.freeze()
    for (let turn = 0; turn < 20; turn += 1) await untilNextTurn()
    await own.kill9()
    await own.start()
  }
  const write = (line: string) => {
    if (line.includes('this source has a new name')) back ??= rewind()
  }
  await startApp(text('desk'), { log: createLogger({ level: 'info', destination: { write } }) })
  await hook.received(5)
  await back
  const expected = [...seen.map(({ id }) => `main.${id}`), ...meanwhile.map(({ id }) => `desk.${id}`)]
  expect(hook.requests.map(({ headers }) => String(headers['webhook-id'])).sort()).toEqual(expected.sort())
})
