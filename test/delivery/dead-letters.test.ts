import { describe, expect, it } from 'vitest'
import { storedJob } from '../../src/alert/job.ts'
import { createDeadLetters } from '../../src/delivery/records/dead-letters.ts'
import { createDeliveryLog } from '../../src/delivery/records/delivery-log.ts'
import { createReplay, resend } from '../../src/delivery/records/resend.ts'
import { openReader } from '../../src/delivery/records/search.ts'
import { readSinkQueue } from '../../src/delivery/records/sink-queue.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { useRedis } from '../support/redis.ts'
import {
  delivered,
  deliveryJob,
  jobs,
  quickSettings,
  type Rig,
  rejected,
  rig,
  testSink,
  unavailable,
  until,
} from './rig.ts'

const server = useRedis()
const targets = new Map([['desk', ['a@example.com', 'b@example.com']]])

function letters({ queues }: Rig) {
  const options = { queues, targets, clock: systemClock }
  const dead = createDeadLetters(options)
  const list = async (query: Parameters<typeof dead.list>[0]) => (await dead.list(query)).letters
  return { dead, replays: createReplay(options), list }
}

const done = (handled: number) => ({ handled, gone: 0 })

/** A sink that refused alerts 1 to `count` for good. */
async function refused(count: number, name = 'hook') {
  const own = rig(server, [name])
  const sink = testSink(name, () => rejected)
  own.sender([sink])
  await own.queues.enqueue(jobs(name, 1, count))
  await until('dead', async () => (await own.queues.queue(name).getFailedCount()) === count)
  return { ...own, sink }
}

describe('dead letters', () => {
  it('are listed with the reason, the newest first, from a time on', async () => {
    const own = await refused(3)
    const { list } = letters(own)
    const all = await list({ limit: 10 })
    expect(all).toHaveLength(3)
    expect(all[0]).toMatchObject({ sink: 'hook', reason: 'rejected', alert: { source: 'main' }, attempts: 1 })
    expect(await list({ limit: 2 })).toHaveLength(2)
    expect(await list({ limit: 10, sinceMs: Date.now() + 60_000 })).toEqual([])
    expect(await list({ limit: 10, sinceMs: Date.now() - 60_000, sink: 'hook' })).toHaveLength(3)
  })

  it('are kept for ninety days, and no longer once another comes, whichever version stored it', async () => {
    const own = await refused(3)
    const hook = own.queues.queue('hook')
    const ids = async () => (await hook.getFailed()).map(({ id }) => id).sort()
    const dayMs = 24 * 3_600_000
    const age = (id: string, days: number) =>
      own.redis.zadd(hook.toKey('failed'), Date.now() - days * dayMs, id)
    await age('main.1', 91)
    await age('main.2', 89)
    await own.queues.enqueue(jobs('hook', 4, 4))
    await until('dead', async () => (await ids()).includes('main.4'))
    expect(await ids()).toEqual(['main.2', 'main.3', 'main.4'])
    await age('main.2', 91)
    // As earlier versions stored it.
    const removeOnFail = { age: 90 * 24 * 3_600, count: 1_000_000, limit: 1_000 }
    const job = { name: 'alert', data: storedJob(deliveryJob('hook', 5)).data }
    await hook.addBulk([{ ...job, opts: { jobId: 'main.5', attempts: 9, removeOnFail, stackTraceLimit: 0 } }])
    await until('dead', async () => (await ids()).includes('main.5'))
    expect(await ids()).toEqual(['main.3', 'main.4', 'main.5'])
  })

  it('keep the last hundred of their attempts, and no stack trace', async () => {
    const own = rig(server, ['hook'])
    const sink = testSink('hook', () => ({ ...unavailable, sinkFault: false }))
    own.sender([sink], { settings: { retry: { attempts: 103, initialDelayMs: 1, maxDelayMs: 1 } } })
    await own.queues.enqueue(jobs('hook', 1, 1))
    const { list } = letters(own)
    await until('given up on', async () => (await list({ limit: 1 })).length === 1)
    expect(sink.sends).toHaveLength(103)
    const queue = own.queues.queue('hook')
    const { logs } = await queue.getJobLogs('main.1')
    expect(logs.map((each) => JSON.parse(each).number)).toEqual(
      Array.from({ length: 100 }, (_, at) => at + 4),
    )
    expect((await queue.getJob('main.1'))?.stacktrace).toEqual([])
  })

  it('are sent again with a full schedule, once', async () => {
    const own = rig(server, ['hook'])
    const sink = testSink('hook', () => unavailable)
    own.sender([sink], { settings: { retry: { attempts: 2, initialDelayMs: 20, maxDelayMs: 20 } } })
    await own.queues.enqueue(jobs('hook', 1, 1))
    const { dead, list } = letters(own)
    await until('given up on', async () => (await list({ limit: 1 })).length === 1)
    sink.answer = ({ number }) => (number === 1 ? unavailable : delivered)
    expect(await dead.retry({ ids: ['main.1'] })).toMatchObject(done(1))
    await until('delivered', async () => (await own.queues.queue('hook').getCompletedCount()) === 1)
    expect(sink.sends.map(({ number }) => number)).toEqual([1, 2, 1, 2])
    expect(await list({ limit: 10 })).toEqual([])
    expect(await dead.retry({ ids: ['main.1'] })).toMatchObject(done(0))
    const [part] = await createDeliveryLog({ queues: own.queues, targets }).historiesOf({
      source: 'main',
      id: 1,
    })
    expect(part?.history.map(({ result }) => result)).toEqual(['retry', 'dead', 'retry', 'delivered'])
  })

  it('that expired are sent when an operator asks, old as they are', async () => {
    const own = rig(server, ['hook'])
    const sink = testSink('hook')
    own.sender([sink], { settings: { expireAfterMs: 60_000 } })
    await own.queues.enqueue([deliveryJob('hook', 1, { firedAt: '2024-01-01T00:00:00Z' })])
    const { dead, list } = letters(own)
    const [letter] = await until('expired', async () => (await list({ limit: 1 })).length > 0).then(() =>
      list({ limit: 1 }),
    )
    expect(letter?.reason).toBe('expired')
    await dead.retry({})
    await until('sent', () => sink.sends.length === 1)
  })

  it('that were too old before they were ever sent are no refusals of their sink', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook')
    sender([sink], { settings: { expireAfterMs: 60_000 } })
    const old = (id: number) => deliveryJob('hook', id, { firedAt: '2024-01-01T00:00:00Z' })
    const read = () => readSinkQueue('hook', queues, 0)
    const given = (count: number) => async () => (await read()).counts.failed === count
    await queues.enqueue(Array.from({ length: 30 }, (_, at) => old(at + 1)))
    await until('all expired', given(30))
    expect(await read()).toMatchObject({ refusedInARow: 0, lastDeadReason: 'expired: too old for this sink' })
    sink.answer = () => rejected
    await queues.enqueue(jobs('hook', 31, 33))
    await until('three are refused', given(33))
    await queues.enqueue([old(34)])
    await until('another expired', given(34))
    // What follows of the old ones does not hide that the sink refuses everything.
    expect((await read()).refusedInARow).toBe(34)
  })

  it('that were sent before they were too old are refusals, as of a sink that asks everybody to wait', async () => {
    const { queues, sender } = rig(server, ['hook'])
    const sink = testSink('hook', () => ({
      ...{ kind: 'retry', reason: 'rate_limited', sinkFault: true, afterMs: 300 },
      answer: { status: 429, text: 'later' },
    }))
    sender([sink], { settings: { expireAfterMs: 1_000 } })
    await queues.enqueue(Array.from({ length: 5 }, (_, at) => deliveryJob('hook', at + 1)))
    const read = () => readSinkQueue('hook', queues, 0)
    await until('all expired', async () => (await read()).counts.failed === 5)
    expect(await read()).toMatchObject({ refusedInARow: 5, lastDeadReason: 'expired: too old for this sink' })
  })

  it('of one mail are one refusal, however many recipients it had', async () => {
    const { queues, sender } = rig(server, ['desk'])
    const to = Array.from({ length: 30 }, (_, at) => `${at}@example.com`)
    sender([{ ...testSink('desk', () => rejected), targets: to }])
    const read = () => readSinkQueue('desk', queues, 0, to.length)
    const refuse = async (...ids: number[]) => {
      await queues.enqueue(ids.flatMap((id) => to.map((target) => deliveryJob('desk', id, { target }))))
      await until('refused', async () => (await read()).counts.failed === (ids.at(-1) ?? 0) * to.length)
    }
    await refuse(1)
    expect((await read()).refusedInARow).toBe(1)
    await refuse(2)
    expect((await read()).refusedInARow).toBe(2)
    await refuse(3, 4)
    expect((await read()).refusedInARow).toBe(4)
  })

  it('that one order has put back are not changed by another that had read them before', async () => {
    const own = await refused(1)
    const queue = own.queues.queue('hook')
    const job = await queue.getJob('main.1')
    if (!job) throw new Error('no dead letter')
    const found = { sink: 'hook', job, state: 'failed' as const }
    const answer = Promise.withResolvers<void>()
    own.sink.answer = async () => {
      await answer.promise
      return delivered
    }
    const order = (atMs: number) => ({ v: 1 as const, atMs, throughMs: atMs, total: 1, idsDone: 0 })
    const nowMs = Date.now()
    expect(await resend(own.queues, found, order(nowMs))).toBe(true)
    await until('on its way', () => own.sink.sends.length === 2)
    expect(await resend(own.queues, found, order(nowMs + 1))).toBe(false)
    expect((await queue.getJob('main.1'))?.data).toMatchObject({ requestedAtMs: nowMs })
    answer.resolve()
    await until('delivered', async () => (await queue.getCompletedCount()) === 1)
  })

  it('are grouped by reason, with the first, the last and a sample, and sent again by group', async () => {
    const own = await refused(2)
    own.sink.answer = () => ({ ...rejected, kind: 'dead', sinkFault: false, reason: 'gone' })
    await own.queues.enqueue(jobs('hook', 3, 3))
    await until('given up on', async () => (await own.queues.queue('hook').getFailedCount()) === 3)
    const { dead } = letters(own)
    const { groups, looked, total } = await dead.groups()
    expect([looked, total]).toEqual([3, 3])
    expect(groups).toMatchObject([
      { sink: 'hook', reason: 'rejected', count: 2, sampleJobId: 'main.2' },
      { sink: 'hook', reason: 'gone', count: 1, sampleJobId: 'main.3' },
    ])
    expect(groups[0]?.firstAtMs).toBeLessThanOrEqual(groups[0]?.lastAtMs ?? 0)
    expect(await dead.drop({ reason: 'rejected' })).toMatchObject({ handled: 2 })
    expect((await dead.groups()).groups).toMatchObject([{ reason: 'gone', count: 1 }])
  })

  it('can be dropped, and nothing else can', async () => {
    const own = await refused(3)
    own.sink.answer = () => delivered
    await own.queues.enqueue(jobs('hook', 4, 4))
    await until('delivered', async () => (await own.queues.queue('hook').getCompletedCount()) === 1)
    const { dead, list } = letters(own)
    expect(await dead.drop({ ids: ['main.2', 'main.4', 'main.99'] })).toMatchObject(done(1))
    expect((await list({ limit: 10 })).map(({ jobId }) => jobId).sort()).toEqual(['main.1', 'main.3'])
    expect(await own.queues.queue('hook').getCompletedCount()).toBe(1)
    // What is compared later knows that something of it is missing, also where nothing else is left.
    const readers = { withheldOf: async () => [], alertOf: () => undefined, orphans: async () => [] }
    const reader = await openReader({ queues: own.queues, targets, ...readers })
    expect(await reader.dropped(['main.1', 'main.2', 'main.4'])).toEqual([
      { name: 'main.2', sink: 'hook', atMs: expect.any(Number) },
    ])
  })

  it('of an alert are found in each of its targets', async () => {
    const own = rig(server, ['desk'])
    const sink = testSink('desk', () => rejected, targets.get('desk'))
    own.sender([sink])
    await own.queues.enqueue(
      ['a@example.com', 'b@example.com'].map((target) => deliveryJob('desk', 1, { target })),
    )
    await until('dead', async () => (await own.queues.queue('desk').getFailedCount()) === 2)
    expect(await letters(own).dead.drop({ ids: ['main.1'] })).toMatchObject(done(2))
    const readers = { withheldOf: async () => [], alertOf: () => undefined, orphans: async () => [] }
    const dropped = await (await openReader({ queues: own.queues, targets, ...readers })).dropped(['main.1'])
    expect(dropped.map(({ sink, target }) => `${sink} ${target}`).sort()).toEqual([
      'desk a@example.com',
      'desk b@example.com',
    ])
  })

  it.each([
    ['recipients, to a sink of a single target', targets.get('desk'), [undefined], 1],
    ['a single target, to recipients', [undefined], targets.get('desk'), 2],
  ])(
    'of %s are found by the id of their alert, told in its story and sent again to what it has now',
    async (_, from = [], to = [], sends) => {
      const own = rig(server, ['desk'])
      const running = own.sender([testSink('desk', () => rejected, from)])
      const queue = own.queues.queue('desk')
      await own.queues.enqueue(
        from.map((target) => deliveryJob('desk', 1, target === undefined ? {} : { target })),
      )
      await until('dead', async () => (await queue.getFailedCount()) === from.length)
      const after = testSink('desk', () => delivered, to)
      await running.swap(new Map([['desk', { sink: after, settings: quickSettings }]]))
      const today = { queues: own.queues, targets: new Map([['desk', to]]), clock: systemClock }
      const story = await createDeliveryLog(today).historiesOf({ source: 'main', id: 1 })
      expect(story.map(({ target, state }) => `${state} ${target}`).sort()).toEqual(
        from.map((target) => `failed ${target}`),
      )
      expect(await createDeadLetters(today).retry({ ids: ['main.1'] })).toMatchObject(done(from.length))
      await until('all are sent', async () => (await queue.getCompletedCount()) === sends)
      expect(after.sends.map(({ target }) => target).sort()).toEqual([...to].sort())
      expect(await queue.getJobCounts('wait', 'active', 'delayed', 'failed')).toEqual({
        wait: 0,
        active: 0,
        delayed: 0,
        failed: 0,
      })
    },
  )

  it('of an alert are found in targets that the sink has no more, and told in its story', async () => {
    const own = rig(server, ['desk'])
    own.sender([testSink('desk', () => rejected, targets.get('desk'))])
    await own.queues.enqueue([deliveryJob('desk', 1, { target: 'b@example.com' })])
    await until('dead', async () => (await own.queues.queue('desk').getFailedCount()) === 1)
    const today = new Map([['desk', ['a@example.com']]])
    const log = createDeliveryLog({ queues: own.queues, targets: today })
    expect(await log.historiesOf({ source: 'main', id: 1 })).toMatchObject([{ target: 'b@example.com' }])
    const gone = own.queues.reconfigured({ sinks: [] })
    const after = createDeliveryLog({ queues: gone, targets: new Map(), orphans: async () => ['desk'] })
    expect(await after.historiesOf({ source: 'main', id: 1 })).toMatchObject([{ target: 'b@example.com' }])
    const dead = createDeadLetters({ queues: own.queues, targets: today, clock: systemClock })
    expect(await dead.drop({ ids: ['main.1'] })).toMatchObject(done(1))
  })

  it('name an alert that took its process down again and again as stalled', async () => {
    const own = rig(server, ['hook'])
    const queue = own.queues.queue('hook')
    await own.queues.enqueue(jobs('hook', 1, 1))
    // What BullMQ writes when a job stalled more often than it may.
    const why = { defa: 'job stalled more than allowable limit', stc: 101 }
    await own.redis.hset(queue.toKey('main.1'), why)
    const sink = testSink('hook')
    const first = own.sender([sink])
    const { dead, list } = letters(own)
    await until('dead', async () => (await list({ limit: 1 })).length === 1)
    expect(await list({ limit: 1 })).toMatchObject([{ reason: 'stalled' }])

    await first.stop(1_000)
    expect(await dead.retry({ ids: ['main.1'] })).toMatchObject(done(1))
    // A process takes it, and is killed.
    await own.redis.lmove(queue.toKey('wait'), queue.toKey('active'), 'RIGHT', 'LEFT')
    own.sender([sink], { tuning: { stalledIntervalMs: 50, takeOverMs: 10 } })
    await until('sent', () => sink.sends.length === 1)
  })
})

describe('replay', () => {
  it('leaves out a recipient that its sink has no more: what it had stays delivered', async () => {
    const own = rig(server, ['desk'])
    const sink = testSink('desk', () => delivered, targets.get('desk'))
    own.sender([sink])
    const both = ['a@example.com', 'b@example.com'].map((target) => deliveryJob('desk', 1, { target }))
    await own.queues.enqueue(both)
    const completed = () => own.queues.queue('desk').getCompletedCount()
    await until('both have it', async () => (await completed()) === 2)
    const today = { queues: own.queues, targets: new Map([['desk', ['a@example.com']]]), clock: systemClock }
    for (const order of [{ ids: ['main.1'] }, {}]) {
      expect(await createReplay(today).replay(order)).toMatchObject({ handled: 1 })
      await until('sent again', async () => (await completed()) === 2)
    }
    expect(sink.sends.slice(2).map(({ target }) => target)).toEqual(['a@example.com', 'a@example.com'])
  })

  it('sends again what was delivered, and keeps the answers of both times', async () => {
    const own = rig(server, ['hook'])
    const sink = testSink('hook')
    own.sender([sink])
    await own.queues.enqueue(jobs('hook', 1, 3))
    const completed = () => own.queues.queue('hook').getCompletedCount()
    await until('delivered', async () => (await completed()) === 3)
    const { replays } = letters(own)
    expect(await replays.replay({ ids: ['main.2'] })).toMatchObject(done(1))
    await until('sent again', () => sink.sends.length === 4)
    await until('recorded', async () => (await completed()) === 3)
    expect(sink.sends[3]).toMatchObject({ id: 2, number: 1 })
    const [part] = await createDeliveryLog({ queues: own.queues, targets }).historiesOf({
      source: 'main',
      id: 2,
    })
    expect(part?.history.map(({ result }) => result)).toEqual(['delivered', 'delivered'])
    expect(part?.requestedAtMs).toBeGreaterThan(0)
  })

  it('takes a span by when the alerts fired, and leaves alone what is outside of it or still waiting', async () => {
    const own = rig(server, ['hook'])
    const sink = testSink('hook', ({ id }) => (id === 3 ? rejected : delivered))
    own.sender([sink])
    const nowMs = Date.now()
    const at = (id: number, firedAtMs: number) =>
      deliveryJob('hook', id, { firedAt: new Date(firedAtMs).toISOString() })
    // No alert was seen before it fired: a feed whose clock runs ahead makes none younger than it is.
    const ahead = { ...at(6, nowMs + 60_000), seenAtMs: nowMs - 1_200 }
    await own.queues.enqueue([
      at(1, nowMs - 3_000),
      at(2, nowMs - 2_000),
      at(3, nowMs - 1_500),
      at(4, nowMs),
      ahead,
    ])
    await until('ended', () => sink.sends.length === 5)
    await until(
      'recorded',
      async () => (await own.queues.queue('hook').getJobCounts('active'))['active'] === 0,
    )
    await own.queues.queue('hook').pause()
    await own.queues.enqueue([at(5, nowMs - 1_800)])
    const { replays } = letters(own)
    const answer = await replays.replay({ sinceMs: nowMs - 2_500, untilMs: nowMs - 1_000 })
    expect(answer).toMatchObject(done(3))
    await own.queues.queue('hook').resume()
    await until('sent', () => sink.sends.length === 9)
    const ids = sink.sends.slice(5).map(({ id }) => id)
    expect(ids.sort()).toEqual([2, 3, 5, 6])
  })
})
