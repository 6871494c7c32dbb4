import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createSink } from '../../src/sinks/registry.ts'
import type { Sink } from '../../src/sinks/sink.ts'
import { webhookConfigSchema } from '../../src/sinks/webhook/config.ts'
import { persianDisplay } from '../sinks/samples.ts'
import { useRedis } from '../support/redis.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { jobs, type Rig, rig, until } from './rig.ts'

const server = useRedis()
const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`

let receiver: WebhookReceiver
let sink: Sink

beforeEach(async () => {
  receiver = await startWebhookReceiver()
  const fields = { type: 'webhook', url: receiver.url, secret, allowPrivateNetworks: true }
  sink = createSink('hook', webhookConfigSchema.parse(fields), { display: persianDisplay })
})

afterEach(async () => {
  await sink.close()
  await receiver.stop()
})

function counts({ queues }: Rig, state: 'completed' | 'failed') {
  return queues.queue('hook').getJobCountByTypes(state)
}

describe('the real webhook sink behind its queue', () => {
  it('signs every attempt of an alert with the same id', async () => {
    const own = rig(server, ['hook'])
    receiver.answerWith((request) => ({ status: request === receiver.requests[0] ? 500 : 204 }))
    own.sender([sink])
    await own.queues.enqueue(jobs('hook', 9, 9))
    await until('delivered', async () => (await counts(own, 'completed')) === 1)
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual(['main.9', 'main.9'])
    for (const { body, headers } of receiver.requests)
      expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
        type: 'alert.fired',
        data: { source: 'main', delivery: { id: 9 } },
      })
  })

  it('is left alone for the seconds that a 429 names', async () => {
    const own = rig(server, ['hook'])
    receiver.answerWith((request) =>
      request === receiver.requests[0] ? { status: 429, headers: { 'retry-after': '1' } } : { status: 204 },
    )
    own.sender([sink], {
      settings: { concurrency: 1, retry: { attempts: 1, initialDelayMs: 10, maxDelayMs: 10 } },
    })
    await own.queues.enqueue(jobs('hook', 1, 5))
    await until('delivered', async () => (await counts(own, 'completed')) === 5)
    const [refused, next] = receiver.requests
    expect((next?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeGreaterThanOrEqual(990)
    expect(receiver.requests).toHaveLength(6)
  })

  it('gets an alert that it refuses for good no second time', async () => {
    const own = rig(server, ['hook'])
    receiver.answerWith({ status: 410 })
    own.sender([sink])
    await own.queues.enqueue(jobs('hook', 1, 8))
    await until('dead', async () => (await counts(own, 'failed')) === 8)
    expect(receiver.requests).toHaveLength(8)
  })
})
