import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { DeliveryJob } from '../../src/alert/job.ts'
import type { FindContext } from '../../src/delivery/attempt/deliver.ts'
import type { SinkSettings } from '../../src/delivery/settings.ts'
import type { Outcome } from '../../src/sinks/outcome.ts'
import { pack } from '../../src/sinks/pack.ts'
import { createSink } from '../../src/sinks/registry.ts'
import type { BatchPlan, Sink } from '../../src/sinks/sink.ts'
import { sinkConfigSchema } from '../../src/sinks/sink-config.ts'
import { useRedis } from '../support/redis.ts'
import { startSlackReceiver } from '../support/slack-receiver.ts'
import { delivered, deliveryJob, hang, jobs, rejected, rig, testSink, unavailable, until } from './rig.ts'

const server = useRedis()

/** A sink that takes several alerts as one message, and what it got: the ids of each message. */
function batchSink(
  plan: BatchPlan,
  answer: (ids: number[], send: { signal: AbortSignal }) => Outcome | Promise<Outcome> = () => delivered,
  messageMax = Number.POSITIVE_INFINITY,
) {
  const messages: { ids: number[]; target?: string; atMs: number }[] = []
  const take = (ids: number[], { target, signal }: { target?: string; signal: AbortSignal }) => {
    messages.push({ ids, atMs: Date.now(), ...(target === undefined ? {} : { target }) })
    return answer(ids, { signal })
  }
  const sink: Sink = {
    ...testSink('ops', ({ id, ...send }) => take([id], send)),
    batch: {
      plan,
      split: (parcels) => pack(parcels, () => [1], [messageMax]),
      send: async (parcels, attempt) =>
        take(
          parcels.map(({ alert }) => alert.id),
          attempt,
        ),
    },
  }
  return { sink, messages, sizes: () => messages.map(({ ids }) => ids.length) }
}

const burst: BatchPlan = { kind: 'burst', max: 20, after: 2, windowMs: 400 }
const digest: BatchPlan = { kind: 'digest', max: 60, everyMs: 2_000, timeZone: 'Asia/Tehran' }
const unreached: Outcome = { ...unavailable, reason: 'timeout', answer: { text: 'no answer' } }
const quickRetry = { attempts: 4, initialDelayMs: 40, maxDelayMs: 3_600_000 }
const ids = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
const desks = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}@example.com`)
const toEachDesk = (id: number) => desks.map((target) => deliveryJob('ops', id, { target }))
/** All at one instant, so that no mark of the clock falls between them. */
function seenNow(all: DeliveryJob[]): DeliveryJob[] {
  const seenAtMs = Date.now()
  return all.map((job) => ({ ...job, seenAtMs }))
}

describe('a burst', () => {
  it('goes out as a few messages and one list, every alert once', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, messages, sizes } = batchSink(burst)
    await queues.enqueue(jobs('ops', 1, 12))
    sender([sink])
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 12)
    expect(sizes()).toEqual([1, 1, 10])
    expect(messages.flatMap((message) => message.ids).sort((a, b) => a - b)).toEqual(ids(12))
  })

  it('is shown in the story of each of its alerts', async () => {
    const { queues, sender, attempts } = rig(server, ['ops'])
    const { sink } = batchSink(burst)
    await queues.enqueue(jobs('ops', 1, 6))
    sender([sink])
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 6)
    for (const id of ids(6))
      expect((await queues.queue('ops').getJob(`main.${id}`))?.returnvalue).toMatchObject({
        number: 1,
        result: 'delivered',
      })
    expect(attempts()).toHaveLength(6)
  })

  it('of fewer alerts than that is sent one by one, at once', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, sizes } = batchSink({ ...burst, windowMs: 60_000 })
    await queues.enqueue(jobs('ops', 1, 2))
    sender([sink])
    await until('both completed', async () => (await queues.queue('ops').getCompletedCount()) === 2)
    expect(sizes()).toEqual([1, 1])
  })

  it('larger than a message goes out as several', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, messages, sizes } = batchSink({ ...burst, max: 5 })
    await queues.enqueue(jobs('ops', 1, 17))
    sender([sink])
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 17)
    expect(Math.max(...sizes())).toBe(5)
    expect(messages.flatMap((message) => message.ids).sort((a, b) => a - b)).toEqual(ids(17))
  })

  it('that is too large for the receiver goes out as several messages in order, each with an outcome of its own', async () => {
    const { queues, sender } = rig(server, ['ops'])
    let refusals = 1
    const { sink, messages } = batchSink(
      burst,
      (sent) => (sent.includes(7) && refusals-- > 0 ? unreached : delivered),
      4,
    )
    await queues.enqueue(jobs('ops', 1, 12))
    sender([sink])
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 12)
    expect(messages.slice(2, 5).map((message) => message.ids)).toEqual([
      [3, 4, 5, 6],
      [7, 8, 9, 10],
      [11, 12],
    ])
    const again = messages.slice(5).flatMap((message) => message.ids)
    expect(again.toSorted((a, b) => a - b)).toEqual([7, 8, 9, 10])
    expect((await queues.queue('ops').getJob('main.6'))?.returnvalue).toMatchObject({ number: 1 })
    expect((await queues.queue('ops').getJob('main.7'))?.returnvalue).toMatchObject({ number: 2 })
  })

  it('counts messages, not alerts, against the rate limit', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, messages } = batchSink(burst)
    const settings: Partial<SinkSettings> = { rateLimit: { max: 1, per: 300 } }
    await queues.enqueue(jobs('ops', 1, 20))
    const startMs = Date.now()
    sender([sink], { settings })
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 20)
    expect(messages.length).toBeLessThan(6)
    // From the start, not from message to message: one that a busy machine holds up makes the next gap shorter.
    for (const [index, { atMs }] of messages.entries())
      expect(atMs - startMs).toBeGreaterThanOrEqual(index * 300 - 5)
  })

  it('that the sink has not read is tried again whole, and burns one attempt of each alert', async () => {
    const { queues, sender } = rig(server, ['ops'])
    let refusals = 1
    const { sink, messages } = batchSink(burst, (sent) =>
      sent.length > 1 && refusals-- > 0 ? unreached : delivered,
    )
    await queues.enqueue(jobs('ops', 1, 8))
    sender([sink])
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 8)
    const [, , first = { ids: [] }] = messages
    expect(first.ids).toHaveLength(6)
    for (const id of first.ids)
      expect((await queues.queue('ops').getJob(`main.${id}`))?.returnvalue).toMatchObject({ number: 2 })
  })

  it('with an alert that the sink cannot take loses only that one', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink } = batchSink(burst, (sent) => (sent.includes(5) ? rejected : delivered))
    await queues.enqueue(jobs('ops', 1, 8))
    sender([sink])
    await until('seven completed', async () => (await queues.queue('ops').getCompletedCount()) === 7)
    const failed = await until('one failed', async () => (await queues.queue('ops').getFailed())[0])
    expect(failed.id).toBe('main.5')
  })

  it.each([unavailable, rejected])(
    'with some that the sink cannot take loses only those: %j',
    async (outcome) => {
      const { queues, sender } = rig(server, ['ops'])
      const bad = [4, 9, 17]
      const { sink, messages } = batchSink(burst, (sent) =>
        sent.some((id) => bad.includes(id)) ? outcome : delivered,
      )
      await queues.enqueue(jobs('ops', 1, 22))
      sender([sink], { settings: { retry: quickRetry }, tuning: { faultsToOpen: 1_000 } })
      await until('the others arrive', async () => (await queues.queue('ops').getCompletedCount()) === 19)
      // By quarters, and not one by one.
      const good = messages.filter(({ ids: sent }) => sent.every((id) => !bad.includes(id)))
      expect(good.length).toBeLessThan(19)
      // At the first attempt, or at the second where two of the three came first and looked like the sink's own fault.
      for (const { returnvalue } of await queues.queue('ops').getCompleted())
        expect(returnvalue.number).toBeLessThanOrEqual(2)
    },
  )

  it('that the sink cannot divide into messages goes out one by one, and loses only the alert that is at fault', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, sizes } = batchSink(burst, (sent) => {
      if (sent.includes(5)) throw new RangeError('a text that cannot be made')
      return delivered
    })
    const split = () => {
      throw new RangeError('a text that cannot be made')
    }
    await queues.enqueue(jobs('ops', 1, 8))
    sender([sink.batch ? { ...sink, batch: { ...sink.batch, split } } : sink], {
      settings: { retry: { ...quickRetry, initialDelayMs: 3_600_000 } },
    })
    await until('seven completed', async () => (await queues.queue('ops').getCompletedCount()) === 7)
    const waiting = await until('one waits', async () => (await queues.queue('ops').getDelayed())[0])
    expect(waiting.id).toBe('main.5')
    expect(sizes()).toEqual(Array.from({ length: 8 }, () => 1))
  })

  it('is not taken apart to the last alert where the sink takes none', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, messages } = batchSink(burst, (sent) =>
      sent.length > 1 || sent.some((id) => id > 2) ? unavailable : delivered,
    )
    await queues.enqueue(jobs('ops', 1, 22))
    sender([sink], {
      settings: { retry: { ...quickRetry, initialDelayMs: 3_600_000 } },
      tuning: { faultsToOpen: 1_000 },
    })
    await until('all wait', async () => (await queues.queue('ops').getDelayedCount()) === 20)
    expect(messages.length).toBeLessThanOrEqual(2 + 5)
  })

  it('leaves no alert to the company of one that the sink never answers, at the latest at the last attempt', async () => {
    for (const attempts of [1, 3]) {
      const { queues, sender } = rig(server, ['ops'])
      const { sink } = batchSink(burst, (sent) => (sent.includes(13) ? unreached : delivered))
      await queues.enqueue(jobs('ops', 10, 19))
      sender([sink], { settings: { retry: { ...quickRetry, attempts } }, tuning: { faultsToOpen: 1_000 } })
      const counts = () => queues.queue('ops').getJobCounts('completed', 'failed')
      await until('all end', async () => {
        const { completed = 0, failed = 0 } = await counts()
        return completed + failed === 10
      })
      expect(await counts()).toEqual({ completed: 9, failed: 1 })
      expect((await queues.queue('ops').getFailed())[0]?.id).toBe('main.13')
    }
  })

  it('goes out before an alert in it expires, though the window is longer', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, sizes } = batchSink({ ...burst, windowMs: 60_000 })
    const fired = seenNow(jobs('ops', 1, 9))
    await queues.enqueue(fired)
    sender([sink], { settings: { expireAfterMs: 5_000 } })
    await until('all have an end', async () => {
      const { completed = 0, failed = 0 } = await queues.queue('ops').getJobCounts('completed', 'failed')
      return completed + failed === 9
    })
    expect(sizes()).toEqual([1, 1, 7])
  })

  it('goes out at once when the process is asked to stop', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, sizes } = batchSink({ ...burst, windowMs: 60_000 })
    await queues.enqueue(jobs('ops', 1, 9))
    const running = sender([sink])
    await until('two are sent', () => sizes().length === 2)
    await until('the others wait in hand', () => running.states()[0]?.sending === 7)
    await running.stop(5_000)
    expect(sizes()).toEqual([1, 1, 7])
    expect(await queues.queue('ops').getCompletedCount()).toBe(9)
  })

  it('that was called off by the end of the process stands in the queue again, nothing burnt', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const stuck = batchSink(burst, (sent, { signal }) => (sent.length > 1 ? hang({ signal }) : delivered))
    await queues.enqueue(jobs('ops', 1, 7))
    const first = sender([stuck.sink], { settings: { timeoutMs: 60_000 } })
    await until('the list is on its way', () => stuck.sizes().includes(5))
    await first.stop(2_000)
    const next = batchSink(burst)
    sender([next.sink])
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 7)
    expect(next.messages.flatMap((message) => message.ids).sort((a, b) => a - b)).toEqual(ids(7).slice(2))
    expect((await queues.queue('ops').getJob('main.5'))?.returnvalue).toMatchObject({ number: 1 })
  })
})

describe('a digest', () => {
  it('waits for the mark of the clock, and holds all that came before it', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, messages, sizes } = batchSink(digest)
    sender([sink])
    const enqueuedAtMs = Date.now()
    await queues.enqueue(seenNow(jobs('ops', 1, 9)))
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 9)
    expect(sizes()).toEqual([9])
    const mark = Math.ceil(enqueuedAtMs / 2_000) * 2_000
    expect(messages[0]?.atMs).toBeGreaterThanOrEqual(mark)
    expect((await queues.queue('ops').getJob('main.3'))?.attemptsMade).toBe(1)
  })

  it('holds all of them also where the context of some takes longer than that of others', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, sizes } = batchSink(digest)
    const findContext: FindContext = async ({ alert: { id } }) =>
      id > 2 ? sleep(2_000, undefined) : undefined
    sender([sink], { more: { findContext } })
    await queues.enqueue(seenNow(jobs('ops', 1, 5)))
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 5)
    expect(sizes()).toEqual([5])
  })

  it('is one mail a recipient, each with an outcome of its own', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, messages } = batchSink(digest)
    const both = ['a@example.com', 'b@example.com']
    sender([{ ...sink, targets: both }])
    const each = ids(4).flatMap((id) => both.map((target) => deliveryJob('ops', id, { target })))
    await queues.enqueue(seenNow(each))
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 8)
    expect(messages.map(({ target, ids: sent }) => `${target} ${sent.join()}`).sort()).toEqual([
      'a@example.com 1,2,3,4',
      'b@example.com 1,2,3,4',
    ])
  })

  it('of many recipients is one mail each, and no more at a time than the concurrency', async () => {
    const { queues, sender } = rig(server, ['ops'])
    let [running, most] = [0, 0]
    const { sink, messages } = batchSink({ ...digest, max: 4 }, async () => {
      running += 1
      most = Math.max(most, running)
      await sleep(40)
      running -= 1
      return delivered
    })
    sender([{ ...sink, targets: desks }], { settings: { concurrency: 2 } })
    await queues.enqueue(seenNow(ids(3).flatMap(toEachDesk)))
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 15)
    expect(messages.map(({ target, ids: sent }) => `${target} ${sent.join()}`).sort()).toEqual(
      desks.map((desk) => `${desk} 1,2,3`),
    )
    expect(most).toBe(2)
  })

  it('of many recipients finds out with two of them that the sink is down: the others wait in the queue, nothing burnt', async () => {
    const { queues, sender, attempts } = rig(server, ['ops'])
    let down = true
    const { sink } = batchSink(digest, () => (down ? unreached : delivered))
    const onBreaker = () => {
      down = false
    }
    sender([{ ...sink, targets: desks }], {
      settings: { concurrency: 1 },
      tuning: { faultsToOpen: 1 },
      more: { onBreaker },
    })
    await queues.enqueue(seenNow(ids(2).flatMap(toEachDesk)))
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 10)
    expect(attempts().filter(({ result }) => result === 'retry')).toHaveLength(2 * 2)
  })

  it('of one recipient finds out with its own attempts that the sink is down, though they begin with the same alert', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, sizes } = batchSink(digest, () => unreached)
    const found: number[][] = []
    const retry = { attempts: 4, initialDelayMs: 40, maxDelayMs: 100 }
    const more = { onBreaker: () => found.push(sizes()) }
    sender([sink], { settings: { retry }, tuning: { faultsToOpen: 2 }, more })
    await queues.enqueue(seenNow(jobs('ops', 1, 3)))
    await until('it rests', () => found.length > 0)
    // At the last attempt each goes alone.
    expect(found[0]).toEqual([3, 3])
  })

  it('is gathered by each process for itself', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const held = Promise.withResolvers<Outcome>()
    const processes = [1, 2].map(() => batchSink({ ...digest, max: 5 }, () => held.promise))
    for (const { sink } of processes) sender([sink])
    await queues.enqueue(seenNow(jobs('ops', 1, 10)))
    await until('both send', () => processes.every(({ messages }) => messages.length === 1))
    expect(processes.map(({ sizes }) => sizes())).toEqual([[5], [5]])
    held.resolve(delivered)
    await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 10)
  })

  it('does not make an alert wait until it is too old', async () => {
    const { queues, sender } = rig(server, ['ops'])
    const { sink, messages } = batchSink({ ...digest, everyMs: 3_600_000 })
    sender([sink], { settings: { expireAfterMs: 30_000 } })
    // Where the mark happens to be near, the alert may wait for it.
    const leftMs = 3_600_000 - (Date.now() % 3_600_000)
    await queues.enqueue(seenNow(jobs('ops', 1, 1)))
    await until('sent', () => messages.length === 1, Math.min(leftMs, 30_000) + 12_000)
  })
})

describe('a real Slack sink', () => {
  it('posts a burst as single messages and one list', async () => {
    const receiver = await startSlackReceiver()
    const { queues, sender } = rig(server, ['ops'])
    const sink = createSink(
      'ops',
      sinkConfigSchema.parse({
        type: 'slack',
        url: receiver.url,
        allowPrivateNetworks: true,
        coalesce: { after: 2, window: '1s' },
      }),
      { display: { timeZone: 'Asia/Tehran', calendar: 'both', language: 'en' } },
    )
    try {
      await queues.enqueue(jobs('ops', 1, 9))
      sender([sink])
      await until('all completed', async () => (await queues.queue('ops').getCompletedCount()) === 9)
      expect(receiver.messages()).toHaveLength(3)
      expect(receiver.messages()[2]?.text).toContain('7 alerts')
      for (const id of ids(7).map((number) => number + 2))
        expect(receiver.messages()[2]?.text).toContain(`alert ${id}>`)
    } finally {
      await sink.close()
      await receiver.stop()
    }
  })
})
