import { describe, expect, it } from 'vitest'
import { createProcessState } from '../../src/intake/poll.ts'
import { sourceKeys } from '../../src/store/keys.ts'
import { createSourceData } from '../../src/store/source/source-data.ts'
import { createWalkState } from '../../src/store/walk/walk-state.ts'
import { useRedis } from '../support/redis.ts'
import { rigStartMs } from './memory-rig.ts'
import { history, ids, intakeRig, minuteMs } from './rig.ts'

const server = useRedis()

describe('startFrom: now', () => {
  it('passes over what the feed shows, for one unit, and counts it', async () => {
    const { rig, poll, queues, state } = intakeRig(server)
    history(rig, 1_250)
    const result = await poll()
    expect(result).toMatchObject({
      pages: 1,
      newAlerts: 0,
      passedOver: 100,
      reason: 'start_bound',
      finished: true,
    })
    expect(result.fired).toHaveLength(100)
    expect(result.fired.every(({ passedOver }) => passedOver)).toBe(true)
    expect(queues.jobs.size).toBe(0)
    const { facts } = await state.look([])
    expect(facts).toMatchObject({ passedOver: 100, scope: { kind: 'from', history: 1_250 } })
  })

  it('takes rows that were fired between the start and the first poll', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    feed.add(3, rigStartMs + minuteMs)
    rig.nowMs += 2 * minuteMs
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 3, passedOver: 97 })
    expect(queues.ids()).toEqual([251, 252, 253])
  })

  it('reaches back to the start when the first poll came late and found more than a page', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    feed.add(230, rigStartMs + minuteMs)
    rig.nowMs += 60 * minuteMs
    expect(await poll()).toMatchObject({ pages: 3, newAlerts: 230, reason: 'start_bound' })
    expect(queues.ids()).toEqual(ids(251, 230))
  })

  it('means the first start, also when the first poll broke off and the process began again', async () => {
    const { rig, feed, poll, queues, restart } = intakeRig(server)
    history(rig, 250)
    rig.answer = () => ({ kind: 'failed', error: new Error('503') })
    await poll()
    feed.add(2, rigStartMs + minuteMs)
    rig.nowMs += 5 * minuteMs
    restart()
    rig.answer = () => undefined
    expect(await poll()).toMatchObject({ newAlerts: 2 })
    expect(queues.ids()).toEqual([251, 252])
  })

  it('takes no history of a feed that showed nothing at first, but what may have come late', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    await poll()
    for (const minutes of [600, 300, 90, 30]) feed.rows.unshift(feed.row(rigStartMs - minutes * minuteMs))
    rig.nowMs += minuteMs
    expect(await poll()).toMatchObject({ newAlerts: 1, passedOver: 3 })
    expect(queues.ids()).toEqual([4])
  })

  it('takes a late row with an older date, afterwards', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.rows.splice(1, 0, feed.row(rigStartMs - 30_000))
    await poll()
    expect(queues.ids()).toEqual([251])
  })

  it('takes no history that moves up when rows above it are deleted', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.rows.splice(10, 60)
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, passedOver: 60, reason: 'caught_up' })
    feed.rows.splice(10, 60)
    feed.add(1, rigStartMs + minuteMs)
    expect(await poll()).toMatchObject({ newAlerts: 1 })
    expect(queues.ids()).toEqual([251])
  })

  it('on an empty feed takes the first row that comes', async () => {
    const { feed, poll, queues } = intakeRig(server)
    expect(await poll()).toMatchObject({ reason: 'empty_feed', finished: true, total: 0 })
    feed.add(1, rigStartMs + minuteMs)
    expect(await poll()).toMatchObject({ newAlerts: 1, reason: 'end_of_feed' })
    expect(queues.ids()).toEqual([1])
  })

  it('passes over history without readable dates, and takes what comes without one', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    const undated = (count: number) => {
      feed.add(count, rigStartMs)
      feed.rows = feed.rows.map((row) => ({ ...row, firedAt: 'some day' }))
    }
    undated(250)
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, passedOver: 100 })
    undated(150)
    expect(await poll()).toMatchObject({ newAlerts: 150, finished: true })
    expect(queues.ids()).toEqual(ids(251, 150))
    expect(rig.asked).toHaveLength(3)
  })
})

describe('firing times in another zone than they say', () => {
  const zoneMs = 210 * minuteMs

  it('send no history once they lie behind: not by a sweep, nor when it moves up', async () => {
    const { rig, feed, poll, sweep, queues } = intakeRig(server)
    feed.add(300, (index) => rigStartMs - (300 - index) * minuteMs + zoneMs)
    await poll()
    rig.nowMs += 2 * zoneMs
    feed.rows.splice(0, 10)
    feed.add(2, rig.nowMs - 1_000 + zoneMs)
    await poll()
    feed.rows.splice(20, 0, feed.row(rig.nowMs - minuteMs + zoneMs))
    rig.nowMs += 2 * zoneMs
    await poll()
    expect(await sweep()).toMatchObject({ reason: 'round_done', newAlerts: 0 })
    expect(queues.ids()).toEqual([301, 302, 303])
  })

  it('move nothing where only one row shows them', async () => {
    const { rig, feed, poll, sweep, queues } = intakeRig(server)
    feed.add(300, (index) => rigStartMs - (300 - index) * minuteMs + (index === 210 ? zoneMs : 0))
    await poll()
    rig.nowMs += minuteMs
    feed.add(150, rig.nowMs - 30_000)
    await poll()
    feed.rows.splice(130, 0, feed.row(rig.nowMs - 20_000))
    expect(await sweep()).toMatchObject({ newAlerts: 1 })
    expect(queues.ids()).toEqual(ids(301, 151))
  })
})

describe('firing times of another calendar', () => {
  const jalali = (ms: number) => Date.parse(new Date(ms).toISOString().replace(/^2026/, '1405'))

  it('lose no alert of a burst, and are told with an example', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    feed.add(120, (index) => jalali(rigStartMs - (200 - index) * 1_000))
    expect(await poll()).toMatchObject({ newAlerts: 0, passedOver: 100 })
    rig.nowMs += minuteMs
    feed.add(150, (index) => jalali(rigStartMs + index * 100))
    const burst = await poll()
    expect(burst).toMatchObject({ newAlerts: 150, passedOver: 0, finished: true })
    expect(burst.doubt).toContain('1405-11-21T09:00')
    expect(burst.doubt).toContain('Jalali')
    expect(queues.ids()).toEqual(ids(121, 150))
    expect(await poll()).toMatchObject({ newAlerts: 0, pages: 1, doubt: null })
  })

  it('end no walk: all the history that was asked for is sent', async () => {
    const { feed, poll, queues } = intakeRig(server, { startFrom: 'beginning' })
    feed.add(300, (index) => jalali(rigStartMs - (300 - index) * 1_000))
    expect(await poll()).toMatchObject({ newAlerts: 300, finished: true, reason: 'end_of_feed' })
    expect(queues.ids()).toEqual(ids(1, 300))
  })

  it('teach the plan nothing', async () => {
    const { rig, feed, poll } = intakeRig(server)
    await poll()
    rig.nowMs += minuteMs
    feed.add(2, jalali(rig.nowMs))
    feed.add(1, Date.UTC(9999, 0))
    const times = (await poll()).fired.map(({ firedAtMs }) => firedAtMs)
    expect(times).toEqual([rig.nowMs, rig.nowMs, rig.nowMs])
  })
})

describe('startFrom: beginning', () => {
  it('takes everything', async () => {
    const { rig, poll, queues } = intakeRig(server, { startFrom: 'beginning' })
    history(rig, 250)
    expect(await poll()).toMatchObject({ pages: 3, newAlerts: 250, reason: 'end_of_feed', finished: true })
    expect(queues.ids()).toEqual(ids(1, 250))
  })
})

describe('startFrom: an instant', () => {
  const startFrom = { sinceMs: rigStartMs - 150 * minuteMs }

  it('takes what was fired since, and reads no further', async () => {
    const { rig, poll, queues } = intakeRig(server, { startFrom })
    history(rig, 950)
    expect(await poll()).toMatchObject({ pages: 2, newAlerts: 150, passedOver: 50, reason: 'start_bound' })
    expect(queues.ids()).toEqual(ids(801, 150))
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, reason: 'caught_up' })
  })

  it('is kept once: a heap of older rows on top hides nothing that came just before it', async () => {
    const { rig, feed, poll, queues } = intakeRig(server, { startFrom })
    history(rig, 950)
    await poll()
    rig.nowMs += minuteMs
    feed.add(5, rig.nowMs)
    feed.add(120, rigStartMs - 900 * minuteMs)
    expect(await poll()).toMatchObject({ newAlerts: 5, finished: true })
    expect(queues.ids()).toEqual([...ids(801, 150), ...ids(951, 5)])
  })

  it('is not misled by one older row among the newer', async () => {
    const { rig, feed, poll, queues } = intakeRig(server, { startFrom })
    history(rig, 950)
    feed.rows.splice(99, 0, feed.row(rigStartMs - 900 * minuteMs))
    expect(await poll()).toMatchObject({ newAlerts: 150, reason: 'start_bound' })
    expect(queues.ids()).toEqual(ids(801, 150))
  })
})

describe('a Redis that lost everything', () => {
  it('under a running process is told, and walked again back to the last complete walk', async () => {
    const { rig, feed, poll, queues, redis, metric } = intakeRig(server, { startFrom: 'beginning' })
    const hourMs = 60 * minuteMs
    feed.add(900, (index) => rigStartMs - (900 - index) * hourMs)
    expect(await poll()).toMatchObject({ newAlerts: 900, lost: false })
    await redis.flushall()
    queues.jobs.clear()
    feed.add(5, rigStartMs + minuteMs)
    rig.nowMs += 2 * minuteMs
    // The five that came since, and what was fired in the hour before the last complete walk; not 900.
    expect(await poll()).toMatchObject({ lost: true, newAlerts: 6, pages: 1, finished: true })
    expect(queues.ids()).toEqual(ids(900, 6))
    expect(await metric('stateLost')).toBe(1)
    expect(await poll()).toMatchObject({ lost: false, newAlerts: 0 })
  })

  it('takes again what stands on top, where no date tells what was there before', async () => {
    const { rig, feed, poll, queues, redis } = intakeRig(server, { startFrom: 'beginning' })
    const undated = (count: number) => {
      feed.add(count, rigStartMs)
      feed.rows = feed.rows.map((row) => ({ ...row, firedAt: '1405-08-30T09:00:00Z' }))
    }
    undated(250)
    await poll()
    undated(7)
    await redis.flushall()
    queues.jobs.clear()
    rig.nowMs += minuteMs
    expect(await poll()).toMatchObject({ lost: true, newAlerts: 100, finished: true })
    expect(queues.ids()).toEqual(ids(158, 100))
  })

  it('but never what was history at the first start', async () => {
    const { rig, feed, poll, queues, redis } = intakeRig(server)
    const undated = (count: number) => {
      feed.add(count, rigStartMs)
      feed.rows = feed.rows.map((row) => ({ ...row, firedAt: 'some day' }))
    }
    undated(250)
    await poll()
    undated(7)
    await poll()
    await redis.flushall()
    queues.jobs.clear()
    rig.nowMs += minuteMs
    expect(await poll()).toMatchObject({ lost: true, newAlerts: 7, finished: true })
    expect(queues.ids()).toEqual(ids(251, 7))
  })

  it('twice in a row goes back as far as the first time', async () => {
    const { rig, feed, poll, queues, redis } = intakeRig(server)
    history(rig, 950)
    await poll()
    feed.add(350, rigStartMs + minuteMs)
    await redis.flushall()
    rig.answer = (page) => (page > 1 ? { kind: 'refused', why: 'budget' } : undefined)
    expect(await poll()).toMatchObject({ lost: true, newAlerts: 100, behind: true })
    await redis.flushall()
    rig.answer = () => undefined
    expect(await poll()).toMatchObject({ lost: true, finished: true })
    expect(queues.ids()).toEqual(expect.arrayContaining(ids(951, 350)))
  })

  it('in the middle of a poll ends that poll, and the next one takes all', async () => {
    const { rig, feed, poll, queues, redis } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(350, rigStartMs + minuteMs)
    let flushed: Promise<unknown> = Promise.resolve()
    const read = rig.deps.readPage
    const slow = async (...args: Parameters<typeof read>) => {
      const answer = await read(...args)
      if (args[0] === 2) flushed = redis.flushall()
      await flushed
      return answer
    }
    Object.assign(rig.deps, { readPage: slow })
    expect(await poll()).toMatchObject({ reason: 'state_lost' })
    Object.assign(rig.deps, { readPage: read })
    expect(await poll()).toMatchObject({ lost: true, finished: true })
    expect(queues.ids()).toEqual(expect.arrayContaining(ids(251, 350)))
  })

  it('of only the seen rows is noticed too, and by a fresh process', async () => {
    const { rig, feed, prefix, poll, queues, redis, restart } = intakeRig(server)
    history(rig, 250)
    await poll()
    feed.add(3, rigStartMs + minuteMs)
    await poll()
    queues.jobs.clear()
    await redis.del(sourceKeys(prefix, 'main').seen)
    restart()
    expect(await poll()).toMatchObject({ lost: true, finished: true })
    // What was fired in the hour before the last complete walk counts again, but not what was history at the start.
    expect(queues.ids()).toEqual(ids(251, 3))
  })

  it('is noticed by a replica that stood by and takes over', async () => {
    const { rig, feed, poll, standBy, queues, redis } = intakeRig(server)
    const active = createProcessState(rig.deps.clock)
    feed.add(40, (index) => rigStartMs + (index + 1) * 60 * minuteMs)
    rig.nowMs += 48 * 60 * minuteMs
    await poll({ processState: active })
    await standBy()
    await redis.flushall()
    await standBy()
    queues.jobs.clear()
    feed.add(1, rig.nowMs)
    // It began two days ago, but does not go back so far.
    expect(await poll()).toMatchObject({ lost: true, newAlerts: 1 })
    expect(queues.ids()).toEqual([41])
  })

  it('before a process starts is a first start', async () => {
    const { rig, poll, queues, redis, restart } = intakeRig(server)
    history(rig, 250)
    await poll()
    await redis.flushall()
    restart()
    expect(await poll()).toMatchObject({ lost: false, newAlerts: 0, passedOver: 100 })
    expect(queues.jobs.size).toBe(0)
  })
})

describe('a Redis that rewound', () => {
  it('is followed: what it no longer knows is taken again', async () => {
    const { rig, feed, prefix, poll, queues, redis } = intakeRig(server)
    history(rig, 50)
    await poll()
    feed.add(5, rigStartMs + minuteMs)
    await poll()
    // A tail that was lost takes the marks and the jobs with it.
    queues.jobs.clear()
    await redis.hdel(sourceKeys(prefix, 'main').seen, ...ids(51, 5).map(String))
    expect(await poll()).toMatchObject({ newAlerts: 5 })
    expect(queues.ids()).toEqual(ids(51, 5))
  })
})

describe('a memory that an operator puts in the place of this one', () => {
  it.each(['between two polls', 'while a page is read', 'before a page is marked'])(
    '%s is no loss, nor is another one in its place',
    async (moment) => {
      const replaceBy = async (name: string) => {
        const given = { redis, prefix, source: name, seenWindowMs: 30 * 86_400_000 }
        await createWalkState(given).open({ id: `of ${name}`, scope: { kind: 'all' } })
        await redis.hset(
          sourceKeys(prefix, name).seen,
          `a row of ${name}`,
          Math.floor(Date.now() / 86_400_000),
        )
        expect(await createSourceData(redis, prefix).carryOver(name, 'main', { replace: true })).toBe('done')
      }
      const replace = async () => {
        await replaceBy('before')
        await replaceBy('another')
      }
      const once: Partial<Record<string, () => Promise<void>>> = {}
      const reach = async (reached: string) => {
        const act = once[reached]
        delete once[reached]
        await act?.()
      }
      const { rig, feed, poll, prefix, queues, redis, metric } = intakeRig(server, {
        wrap: (state) => ({
          ...state,
          async commit(base, change) {
            await reach('before a page is marked')
            return state.commit(base, change)
          },
        }),
      })
      const read = rig.deps.readPage
      const readPage: typeof read = async (...args) => {
        await reach('while a page is read')
        return read(...args)
      }
      Object.assign(rig.deps, { readPage })
      history(rig, 5)
      await poll()
      feed.add(3, rigStartMs + minuteMs)
      once[moment] = replace
      await reach('between two polls')
      if (moment !== 'between two polls') expect(await poll()).toMatchObject({ reason: 'raced', lost: false })
      expect(await poll()).toMatchObject({ lost: false, finished: true })
      expect(queues.ids()).toEqual(ids(1, 8))
      expect((await metric('stateLost')) ?? 0).toBe(0)
    },
  )
})
