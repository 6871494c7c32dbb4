import { describe, expect, it } from 'vitest'
import { createDeadLetters } from '../../src/delivery/records/dead-letters.ts'
import { createReplay } from '../../src/delivery/records/resend.ts'
import type { Portion } from '../../src/delivery/records/selection.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { useRedis } from '../support/redis.ts'
import { endWaiting, jobs, type Rig, rig, testSink, until } from './rig.ts'

/** Operations on more records than one call takes. */

const server = useRedis()

function operations({ queues }: Rig) {
  const targets = new Map(queues.sinks.map((sink) => [sink, [undefined]]))
  const options = { queues, targets, clock: systemClock }
  return { ...createDeadLetters(options), replay: createReplay(options).replay }
}

/** `count` dead letters, three of which ended in every millisecond. */
async function dead(count: number, sinks = ['hook'], state: 'failed' | 'completed' = 'failed') {
  const own = rig(server, sinks)
  const fromMs = Date.now() - 3_600_000
  for (const sink of sinks) {
    await own.queues.enqueue(jobs(sink, 1, count))
    await endWaiting(own, sink, { fromMs, stepMs: 1 / 3, state })
  }
  return { ...own, operations: operations(own) }
}

/** Asks for one portion after the other. */
async function throughAll(ask: (cursor: { cursor?: string }) => Promise<Portion>): Promise<Portion[]> {
  const portions = [await ask({})]
  for (let last = portions[0]; last?.cursor !== undefined && portions.length < 100; last = portions.at(-1))
    portions.push(await ask({ cursor: last.cursor }))
  return portions
}

const sum = (portions: readonly Portion[], pick: 'handled' | 'gone' | 'looked') =>
  portions.reduce((total, portion) => total + portion[pick], 0)

describe('an operation on more than one call takes', () => {
  it('goes on in portions until all is done, each record once, whatever ends again meanwhile', async () => {
    const own = await dead(25, ['a', 'b'])
    const sinks = ['a', 'b'].map((name) => testSink(name))
    own.sender(sinks)
    const { replay } = own.operations
    const portions: Portion[] = []
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const portion = await replay({ sinceMs: 0, limit: 7, ...(cursor ? { cursor } : {}) })
      portions.push(portion)
      cursor = portion.cursor
      // Everything that was put back has ended again before the next portion: it stands in the same set.
      await until('sent again', async () => {
        const counts = await Promise.all(['a', 'b'].map((name) => own.queues.queue(name).getCompletedCount()))
        return counts.reduce((all, count) => all + count, 0) === sum(portions, 'handled')
      })
    }
    expect(portions.every(({ looked }) => looked <= 7)).toBe(true)
    expect([sum(portions, 'handled'), sum(portions, 'gone'), portions[0]?.total]).toEqual([50, 0, 50])
    for (const sink of sinks) expect(new Set(sink.sends.map(({ id }) => id)).size).toBe(25)
    expect(sinks.flatMap(({ sends }) => sends)).toHaveLength(50)
  })

  it('repeats nothing when a portion is asked for twice, or when it broke off and begins again', async () => {
    const own = await dead(10)
    const sink = testSink('hook')
    own.sender([sink])
    const { replay } = own.operations
    const ended = () => own.queues.queue('hook').getCompletedCount()
    const { cursor = '', atMs, total } = await replay({ sinceMs: 0, limit: 0 })
    expect(total).toBe(10)
    expect(await replay({ sinceMs: 0, limit: 4, cursor })).toMatchObject({ handled: 4 })
    await until('the first four have ended', async () => (await ended()) === 4)
    // The answer was lost: the same cursor again.
    expect(await replay({ sinceMs: 0, limit: 4, cursor })).toMatchObject({ handled: 4 })
    await until('the next four have ended', async () => (await ended()) === 8)
    const again = await throughAll((more) => replay({ sinceMs: 0, limit: 4, atMs, ...more }))
    expect(sum(again, 'handled')).toBe(2)
    await until('the last two have ended', async () => (await ended()) === 10)
    expect(sink.sends.map(({ id }) => id).sort((a, b) => a - b)).toEqual(
      jobs('hook', 1, 10).map(({ alert }) => alert.id),
    )
    // A new one, begun on purpose, sends all of them again.
    expect(sum(await throughAll((more) => replay({ sinceMs: 0, ...more })), 'handled')).toBe(10)
  })

  it('repeats nothing when the same portion is asked of two processes, of which one goes on late', async () => {
    const own = await dead(2, ['hook'], 'completed')
    const [first, second] = [testSink('hook'), testSink('hook')]
    const sender = own.sender([first])
    const { cursor = '', atMs } = await own.operations.replay({ sinceMs: 0, limit: 0 })
    const answered = Promise.withResolvers<void>()
    const slow = new Proxy(own.redis, {
      get(redis, name) {
        if (name !== 'eval') return Reflect.get(redis, name)
        return async (...given: Parameters<typeof redis.eval>) => {
          const answer = await redis.eval(...given)
          await answered.promise
          return answer
        }
      },
    })
    const late = operations({ ...own, queues: { ...own.queues, redis: slow } }).replay({ sinceMs: 0, cursor })
    await own.operations.replay({ sinceMs: 0, cursor })
    const queue = own.queues.queue('hook')
    const isOver = async () => (await queue.getCompletedCount()) === 2
    await until('both were sent, and have ended', async () => first.sends.length === 2 && isOver())
    await sender.stop()
    answered.resolve()
    await late
    own.sender([second])
    await until('nothing waits', isOver)
    expect(second.sends).toEqual([])
    expect((await queue.getJob('main.1'))?.data.requestedAtMs).toBe(atMs)
  })

  it('survives records that go meanwhile, and counts them', async () => {
    const own = await dead(6)
    const { retry } = own.operations
    const queue = own.queues.queue('hook')
    // What retention does: the record goes, sooner or later also from the set.
    await own.redis.del(queue.toKey('main.3'))
    const { cursor = '' } = await retry({ limit: 2 })
    await (await queue.getJob('main.5'))?.remove()
    expect(await retry({ cursor })).toMatchObject({ handled: 2, gone: 1 })
    expect(await queue.getWaitingCount()).toBe(4)
  })

  it('only says what it would do when it runs dry, by the same rules', async () => {
    const own = await dead(30, ['a', 'b'])
    const { replay, retry, drop } = own.operations
    const dry = { dryRun: true } as const
    const portions = await throughAll((more) => replay({ sinceMs: 0, limit: 7, ...dry, ...more }))
    expect([sum(portions, 'handled'), sum(portions, 'looked')]).toEqual([60, 60])
    const shown = portions.flatMap(({ sample = [] }) => sample.map(({ id }) => id))
    expect(shown).toContain(30)
    expect(portions.every(({ sample = [] }) => sample.length <= 3)).toBe(true)
    expect(await drop({ reason: 'other', ...dry })).toMatchObject({ handled: 0, sample: [] })
    expect(await retry({ ids: ['main.2', 'main.99'], sink: 'b', ...dry })).toMatchObject({
      ...{ handled: 1, missing: ['main.99'], sample: [{ source: 'main', id: 2 }] },
    })
    for (const sink of ['a', 'b']) {
      expect(await own.queues.queue(sink).getFailedCount()).toBe(30)
      expect((await own.queues.queue(sink).getJob('main.2'))?.data).not.toHaveProperty('requestedAtMs')
    }
  })

  it('leaves alone what ended after it began', async () => {
    const own = await dead(4)
    const { drop, list } = own.operations
    const { cursor = '' } = await drop({ limit: 1 })
    await own.queues.enqueue(jobs('hook', 5, 5))
    await endWaiting(own, 'hook', { fromMs: Date.now() + 5_000 })
    expect(await drop({ cursor })).toMatchObject({ handled: 3 })
    expect((await list({ limit: 10 })).letters.map(({ jobId }) => jobId)).toEqual(['main.5'])
  })

  it('takes what ended before it by a clock that runs ahead', async () => {
    const own = await dead(2)
    await own.queues.enqueue(jobs('hook', 3, 3))
    await endWaiting(own, 'hook', { fromMs: Date.now() + 3_600_000 })
    expect(await own.operations.retry({})).toMatchObject({ handled: 3, total: 3 })
  })

  it('ends within its time, and goes on in the next call', async () => {
    const own = await dead(250)
    const targets = new Map([['hook', [undefined]]])
    const { retry } = createDeadLetters({ queues: own.queues, targets, clock: systemClock, portionMs: 0 })
    expect(await retry({})).toMatchObject({ handled: 0, looked: 0 })
    const slow = createDeadLetters({ queues: own.queues, targets, clock: systemClock, portionMs: 1 })
    expect((await slow.retry({})).looked).toBe(25)
  })

  it('by ids goes on in portions too, and names the ids that have no record', async () => {
    const own = await dead(4)
    const ids = ['main.1', 'main.9', 'main.2', 'main.2', 'main.3', 'main.8']
    const portions = await throughAll((more) => own.operations.replay({ ids, limit: 2, ...more }))
    expect([sum(portions, 'handled'), sum(portions, 'looked')]).toEqual([3, 5])
    expect(portions.flatMap(({ missing }) => missing)).toEqual(['main.9', 'main.8'])
  })

  it.each(['', 'bm9uZQ', 'eyJ2IjoxfQ'])('refuses a cursor that is none: "%s"', async (cursor) => {
    const own = rig(server, ['hook'])
    await expect(operations(own).retry({ cursor })).rejects.toThrow('cursor')
    await expect(operations(own).list({ limit: 1, cursor })).rejects.toThrow('cursor')
  })
})

it('a dead letter that is sent again at the same moment is not dropped', async () => {
  const own = await dead(2)
  const queue = own.queues.queue('hook')
  const read = queue.getJob.bind(queue)
  // Another operator, between reading and dropping.
  queue.getJob = async (id) => {
    const job = await read(id)
    if (id === 'main.1') await job?.retry('failed')
    return job
  }
  expect(await own.operations.drop({})).toMatchObject({ handled: 1, gone: 1 })
  expect([await queue.getJobState('main.1'), await queue.getJobState('main.2')]).toEqual([
    'waiting',
    'unknown',
  ])
})

it('dead letters are listed page by page, the newest of all sinks first, with their number', async () => {
  const own = await dead(7, ['a', 'b'])
  const { list } = own.operations
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await list({ limit: 4, ...(cursor ? { cursor } : {}) })
    expect(page.total).toBe(14)
    seen.push(...page.letters.map(({ sink, jobId }) => `${sink}/${jobId}`))
    cursor = page.cursor
  } while (cursor !== undefined && seen.length < 100)
  expect(seen).toHaveLength(14)
  expect(new Set(seen).size).toBe(14)
  expect(seen.slice(0, 2)).toEqual(['a/main.7', 'b/main.7'])
})

it('of a long list no more than 25 dead letters are read at the same time, because each may be large', async () => {
  const own = await dead(60)
  const queue = own.queues.queue('hook')
  const read = queue.getJob.bind(queue)
  const reading = new Set<string>()
  let most = 0
  queue.getJob = async (id) => {
    most = Math.max(most, reading.add(id).size)
    return read(id).finally(() => reading.delete(id))
  }
  const { letters } = await own.operations.list({ limit: 60 })
  expect(letters.map(({ alert }) => alert?.id)).toEqual(Array.from({ length: 60 }, (_, at) => 60 - at))
  expect(most).toBeLessThanOrEqual(25)
})
