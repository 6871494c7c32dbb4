import { Worker } from 'bullmq'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openQueue } from '../../src/delivery/queue/queues.ts'
import { type LaneView, type QueueView, readLaneViews } from '../../src/delivery/queue/view.ts'
import { standstill } from '../../src/delivery/worker/watchdog.ts'
import { useRedis } from '../support/redis.ts'
import { delivered, deliveryJob, jobs, rig, testSink, until } from './rig.ts'

const server = useRedis()
const quick = { watchEveryMs: 50, stuckMs: 200 }

describe('a standstill', () => {
  const waits: QueueView = { waiting: 3, locked: 0, next: 'a', paused: false, limited: false }
  const idle = { room: true, taken: 7 }

  it('lasts while jobs wait, this process has room for one more and takes none', () => {
    const first = standstill(undefined, waits, idle, 1_000)
    expect(first).toMatchObject({ sinceMs: 1_000, looks: 1, waiting: 3 })
    const next = { ...waits, waiting: 9, next: 'b' }
    expect(standstill(first, next, idle, 9_000)).toMatchObject({ sinceMs: 1_000, looks: 2, waiting: 9 })
  })

  it('is not ended by what other replicas do', () => {
    const first = standstill(undefined, waits, idle, 1_000)
    expect(standstill(first, { ...waits, locked: 20 }, idle, 9_000)).toMatchObject({ looks: 2 })
  })

  it('begins anew when this process took a job in between', () => {
    const first = standstill(undefined, waits, idle, 1_000)
    expect(standstill(first, waits, { room: true, taken: 8 }, 9_000)).toMatchObject({
      sinceMs: 9_000,
      looks: 1,
    })
  })

  it.each<[string, QueueView | undefined, { room: boolean; taken: number }]>([
    ['nothing waits', { ...waits, waiting: 0 }, idle],
    ['this process has its hands full', waits, { room: false, taken: 7 }],
    ['the sink is paused', { ...waits, paused: true }, idle],
    ['the queue is held, or at its rate limit', { ...waits, limited: true }, idle],
    ['Redis does not answer', undefined, idle],
  ])('is none when %s', (_why, view, own) => {
    const first = standstill(undefined, waits, idle, 1_000)
    expect(standstill(first, view, own, 9_000)).toBeUndefined()
  })

  it('where others send lasts while none of them holds a job and the next one stays the same', () => {
    const first = standstill(undefined, waits, undefined, 1_000)
    expect(standstill(first, waits, undefined, 9_000)).toMatchObject({ sinceMs: 1_000, looks: 2 })
    expect(standstill(first, { ...waits, next: 'b' }, undefined, 9_000)).toMatchObject({ looks: 1 })
    expect(standstill(first, { ...waits, locked: 1 }, undefined, 9_000)).toBeUndefined()
  })
})

describe('what waits in a queue', () => {
  it('is also what is overdue, and what a process that is gone has left; not what some process holds', async () => {
    const { queues, redis, prefix } = rig(server, ['hook'])
    const queue = openQueue(redis, prefix, 'hook')
    onTestFinished(() => queue.close())
    const rateLimit = { max: 1_000, per: 1_000 }
    const look = () =>
      readLaneViews({ redis, prefix }, [{ queue, rateLimit, fitsLimiter: true }])[0] as Promise<LaneView>
    await until('it is connected', () => look().catch(() => undefined))
    expect(await look()).toMatchObject({ waiting: 0, locked: 0, next: undefined })
    await queues.enqueue(jobs('hook', 1, 2))
    expect(await look()).toMatchObject({ waiting: 2, locked: 0, next: 'main.1' })

    const overdue = { delay: 1, timestamp: Date.now() - 60_000 }
    await queue.add('alert', {} as never, { ...overdue, jobId: 'main.late' })
    await queue.add('alert', {} as never, { delay: 60_000, jobId: 'main.early' })
    expect(await look()).toMatchObject({ waiting: 3 })

    await redis.rpoplpush(queue.toKey('wait'), queue.toKey('active'))
    expect(await look()).toMatchObject({ waiting: 3, locked: 0, next: 'main.2' })
    await redis.set(`${queue.toKey('main.1')}:lock`, 'somebody')
    expect(await look()).toMatchObject({ waiting: 2, locked: 1 })
  })

  it('is read of all sinks at once, each by its own limits, and a key of another type fails its own sink alone', async () => {
    const names = Array.from({ length: 60 }, (_, nth) => `s${nth}`)
    const { queues, redis, prefix } = rig(server, names)
    const requests = names.map((name, nth) => {
      const queue = openQueue(redis, prefix, name)
      onTestFinished(() => queue.close())
      return { queue, rateLimit: { max: nth === 7 ? 1 : 1_000, per: 1_000 }, fitsLimiter: nth !== 8 }
    })
    const look = () => readLaneViews({ redis, prefix }, requests)
    await until('it is connected', () => redis.ping().catch(() => undefined))
    await queues.enqueue(names.flatMap((name, nth) => jobs(name, 1, nth % 3)))
    const limiterOf = (nth: number) => requests[nth]?.queue.toKey('limiter') ?? ''
    await redis.set(limiterOf(7), '1', 'PX', 3_600_000)
    await redis.set(limiterOf(8), '1', 'PX', 3_600_000)
    await redis.set(requests[55]?.queue.toKey('wait') ?? '', 'no list')
    const views = await Promise.allSettled(look())
    const waiting = views.map((view) =>
      view.status === 'fulfilled' ? view.value.waiting : view.reason.message,
    )
    expect(waiting).toEqual(
      names.map((_, nth) => (nth === 55 ? expect.stringMatching(/^WRONGTYPE /) : nth % 3)),
    )
    const limited = views.flatMap((view, nth) =>
      view.status === 'fulfilled' && view.value.limited ? [nth] : [],
    )
    expect(limited).toEqual([7])
    expect(await redis.pttl(limiterOf(7))).toBeLessThanOrEqual(1_000)
    expect(await redis.pttl(limiterOf(8))).toBeGreaterThan(1_000)
  })
})

describe('a consumer', () => {
  it('that is dead is replaced, and the jobs go out', async () => {
    const { queues, sender, lines } = rig(server, ['hook'])
    const run = dieAtStart(1)
    const sink = testSink('hook')
    const own = sender([sink], { tuning: quick })
    await queues.enqueue(jobs('hook', 1, 3))
    await until('sent', () => sink.sends.length === 3)
    expect(newWorkers(lines)).toBeGreaterThan(0)
    expect(run.mock.calls.length).toBe(1 + newWorkers(lines))
    await until('it is well again', () => own.states().every(({ stuck }) => stuck === undefined))
  })

  it('that is dead beside a live replica is noticed: that one always works', async () => {
    const { queues, sender, lines } = rig(server, ['hook'])
    dieAtStart(1)
    const [dead, live] = [testSink('hook'), testSink('hook', () => deliveredAfter(100))]
    sender([dead], { tuning: quick })
    sender([live], { settings: { concurrency: 1 }, tuning: quick })
    await queues.enqueue(jobs('hook', 1, 100))
    await until('the dead one sends too', () => dead.sends.length > 3)
    expect(live.sends.length).toBeGreaterThan(0)
    expect(newWorkers(lines)).toBeGreaterThan(0)
  })

  it('that no new worker helps is told, for as long as it lasts', async () => {
    const { queues, sender, lines } = rig(server, ['hook'])
    const run = dieAtStart(1_000)
    const sink = testSink('hook')
    const own = sender([sink], { tuning: quick })
    await queues.enqueue(jobs('hook', 1, 3))
    await until('several new workers', () => newWorkers(lines) > 2)
    expect(own.states()[0]?.stuck).toMatchObject({
      waiting: 3,
      reason: expect.stringMatching(/^3 alerts wait and this process takes none, for /),
    })
    run.mockRestore()
    await until('sent', () => sink.sends.length === 3)
    await until('it is well again', () => own.states()[0]?.stuck === undefined)
  })

  it('that is slow, or behind a rate limit, is not taken for dead', async () => {
    const { queues, sender, lines } = rig(server, ['slow', 'limited'])
    const slow = testSink('slow', () => deliveredAfter(900))
    const tuning = { ...quick, stuckMs: 500 }
    sender([slow], { settings: { concurrency: 1 }, tuning })
    const limited = testSink('limited')
    sender([limited], { settings: { rateLimit: { max: 1, per: 900 } }, tuning })
    await queues.enqueue([...jobs('slow', 1, 5), ...jobs('limited', 1, 5)])
    await until('both have begun', () => slow.sends.length > 0 && limited.sends.length > 0)
    // A connection that is slow to be made may look like a standstill.
    const before = newWorkers(lines)
    await until('some more are sent', () => slow.sends.length > 2 && limited.sends.length > 2)
    expect(newWorkers(lines)).toBe(before)
  })

  it('that still sends when it is replaced keeps what it sends: nothing goes out twice', async () => {
    const { queues, sender, lines, redis, prefix } = rig(server, ['hook'])
    const sink = testSink('hook', ({ id }) => (id === 1 ? deliveredAfter(1_500) : delivered))
    // Its worker takes one job, and then nothing any more.
    const fetching = Worker.prototype as unknown as { _getNextJob(): Promise<unknown> }
    const real = fetching._getNextJob
    const fetch = vi.spyOn(fetching, '_getNextJob').mockImplementation(() => new Promise(() => {}))
    // One fetch finds the job, the next one none: only then is it sent.
    fetch.mockImplementationOnce(real).mockImplementationOnce(real)
    onTestFinished(() => fetch.mockRestore())
    await queues.enqueue([deliveryJob('hook', 1)])
    sender([sink], { tuning: { ...quick, lockMs: 400, stalledIntervalMs: 100 } })
    await until('it is being sent', () => sink.sends.length === 1)
    await queues.enqueue(jobs('hook', 2, 3))
    await until('it is replaced', () => newWorkers(lines) > 0)
    fetch.mockRestore()
    await until('the others are sent', () => sink.sends.length >= 3)
    const done = openQueue(redis, prefix, 'hook')
    onTestFinished(() => done.close())
    await until('all are recorded', async () => (await done.getJobCounts('completed'))['completed'] === 3)
    expect(sink.sends.map(({ id }) => id).sort()).toEqual([1, 2, 3])
  })
})

/** As workers did after an outage: they say that they run, and fetch nothing. */
function dieAtStart(times: number) {
  const run = vi.spyOn(Worker.prototype, 'run')
  for (let left = times; left > 0; left -= 1) run.mockImplementationOnce(async () => {})
  onTestFinished(() => run.mockRestore())
  return run
}

function newWorkers(lines: readonly Record<string, unknown>[]): number {
  return lines.filter(({ msg }) => String(msg).includes('new worker')).length
}

async function deliveredAfter(ms: number) {
  await new Promise((resolve) => setTimeout(resolve, ms))
  return delivered
}
