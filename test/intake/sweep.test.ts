import { describe, expect, it } from 'vitest'
import { useRedis } from '../support/redis.ts'
import { benchStartMs } from './bench.ts'
import { history, ids, minuteMs, setUp } from './setup.ts'

const server = useRedis()

describe('a sweep', () => {
  it('finds late rows where no walk comes any more', async () => {
    const { bench, feed, poll, sweep, queues, metric } = setUp(server, { startFrom: 'beginning' })
    history(bench, 950)
    await poll()
    // As many were deleted as were inserted: the total tells nothing.
    feed.rows.splice(900, 2)
    feed.rows.splice(777, 0, feed.row(benchStartMs), feed.row(benchStartMs))
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, feedGap: 0 })
    expect(await sweep()).toMatchObject({ reason: 'round_done', pages: 9, newAlerts: 2, depth: 950 })
    expect(queues.ids()).toEqual(expect.arrayContaining([951, 952]))
    expect(await metric('feedGap')).toBe(1)
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, feedGap: 0 })
  })

  it('spends the units it was given, and goes on where it ended', async () => {
    const { bench, feed, poll, sweep, state } = setUp(server, { startFrom: 'beginning' })
    history(bench, 950)
    await poll()
    bench.asked.length = 0
    expect(await sweep({ pagesMax: 3 })).toMatchObject({ reason: 'units_spent', pages: 3, depth: 400 })
    expect(await state.sweep()).toMatchObject({ page: 5, depth: 400, roundAtMs: null, atMs: benchStartMs })
    feed.add(200, benchStartMs + minuteMs)
    await poll()
    expect(await sweep({ pagesMax: 2 })).toMatchObject({ pages: 2 })
    bench.nowMs += minuteMs
    expect(await sweep()).toMatchObject({ reason: 'round_done', depth: 1_150 })
    const swept = bench.asked.filter(({ purpose }) => purpose === 'sweep').map(({ page }) => page)
    // The 200 rows that came on top moved what is left to look at by two pages.
    expect(swept).toEqual([2, 3, 4, 7, 8, 9, 10, 11, 12])
    expect(await state.sweep()).toMatchObject({ page: 2, roundAtMs: bench.nowMs })
  })

  it('begins where it is told to', async () => {
    const { bench, poll, sweep } = setUp(server, { startFrom: 'beginning' })
    history(bench, 950)
    await poll()
    bench.asked.length = 0
    await sweep({ pagesMax: 2, fromPage: 7 })
    expect(bench.asked.map(({ page }) => page)).toEqual([7, 8])
  })

  it('reads nothing while polls have not caught up', async () => {
    const { bench, poll, sweep } = setUp(server, { startFrom: 'beginning' })
    expect(await sweep()).toMatchObject({ reason: 'behind', pages: 0 })
    history(bench, 950)
    await poll({ pagesMax: 2 })
    expect(await sweep()).toMatchObject({ reason: 'behind', pages: 0 })
  })

  it('ends its round where the history begins that does not count, and takes none of it', async () => {
    const { bench, feed, poll, sweep, queues } = setUp(server)
    history(bench, 950)
    await poll()
    feed.add(150, benchStartMs + minuteMs)
    await poll()
    expect(await sweep()).toMatchObject({ reason: 'round_done', pages: 2, newAlerts: 0 })
    expect(queues.ids()).toEqual(ids(951, 150))
  })

  it('sends no history that was filled in beneath what startFrom passed over', async () => {
    const { bench, feed, poll, sweep, queues } = setUp(server)
    history(bench, 600)
    await poll()
    bench.nowMs += minuteMs
    feed.rows.push(...ids(2_001, 250).map((id) => feed.row(benchStartMs - 40 * 24 * 60 * minuteMs, id)))
    expect(await poll()).toMatchObject({ newAlerts: 0 })
    expect(await sweep()).toMatchObject({ newAlerts: 0 })
    expect(queues.ids()).toEqual([])
  })

  it('hands over what stops it', async () => {
    const { bench, poll, sweep } = setUp(server, { startFrom: 'beginning' })
    history(bench, 950)
    await poll()
    bench.answer = (page) => (page === 4 ? { kind: 'refused', why: 'budget' } : undefined)
    expect(await sweep()).toMatchObject({ reason: 'refused_budget', pages: 2, depth: 300 })
  })
})
