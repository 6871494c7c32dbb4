import { describe, expect, it } from 'vitest'
import { useRedis } from '../support/redis.ts'
import { rigStartMs } from './memory-rig.ts'
import { history, ids, intakeRig, minuteMs } from './rig.ts'

const server = useRedis()

describe('a sweep', () => {
  it('finds late rows where no walk comes any more', async () => {
    const { rig, feed, poll, sweep, queues, metric } = intakeRig(server, { startFrom: 'beginning' })
    history(rig, 950)
    await poll()
    // As many were deleted as were inserted: the total tells nothing.
    feed.rows.splice(900, 2)
    feed.rows.splice(777, 0, feed.row(rigStartMs), feed.row(rigStartMs))
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, feedGap: 0 })
    expect(await sweep()).toMatchObject({ reason: 'round_done', pages: 9, newAlerts: 2, depth: 950 })
    expect(queues.ids()).toEqual(expect.arrayContaining([951, 952]))
    expect(await metric('feedGap')).toBe(1)
    expect(await poll()).toMatchObject({ pages: 1, newAlerts: 0, feedGap: 0 })
  })

  it('spends the units it was given, and goes on where it ended', async () => {
    const { rig, feed, poll, sweep, state } = intakeRig(server, { startFrom: 'beginning' })
    history(rig, 950)
    await poll()
    rig.asked.length = 0
    expect(await sweep({ pagesMax: 3 })).toMatchObject({ reason: 'units_spent', pages: 3, depth: 400 })
    expect(await state.sweep()).toMatchObject({ page: 5, depth: 400, roundAtMs: null, atMs: rigStartMs })
    feed.add(200, rigStartMs + minuteMs)
    await poll()
    expect(await sweep({ pagesMax: 2 })).toMatchObject({ pages: 2 })
    rig.nowMs += minuteMs
    expect(await sweep()).toMatchObject({ reason: 'round_done', depth: 1_150 })
    const swept = rig.asked.filter(({ purpose }) => purpose === 'sweep').map(({ page }) => page)
    // The 200 rows that came on top moved what is left to look at by two pages.
    expect(swept).toEqual([2, 3, 4, 7, 8, 9, 10, 11, 12])
    expect(await state.sweep()).toMatchObject({ page: 2, roundAtMs: rig.nowMs })
  })

  it('begins where it is told to', async () => {
    const { rig, poll, sweep } = intakeRig(server, { startFrom: 'beginning' })
    history(rig, 950)
    await poll()
    rig.asked.length = 0
    await sweep({ pagesMax: 2, fromPage: 7 })
    expect(rig.asked.map(({ page }) => page)).toEqual([7, 8])
  })

  it('reads nothing while polls have not caught up', async () => {
    const { rig, poll, sweep } = intakeRig(server, { startFrom: 'beginning' })
    expect(await sweep()).toMatchObject({ reason: 'behind', pages: 0 })
    history(rig, 950)
    await poll({ pagesMax: 2 })
    expect(await sweep()).toMatchObject({ reason: 'behind', pages: 0 })
  })

  it('ends its round where the history begins that does not count, and takes none of it', async () => {
    const { rig, feed, poll, sweep, queues } = intakeRig(server)
    history(rig, 950)
    await poll()
    feed.add(150, rigStartMs + minuteMs)
    await poll()
    expect(await sweep()).toMatchObject({ reason: 'round_done', pages: 2, newAlerts: 0 })
    expect(queues.ids()).toEqual(ids(951, 150))
  })

  it('sends no history that was filled in beneath what startFrom passed over', async () => {
    const { rig, feed, poll, sweep, queues } = intakeRig(server)
    history(rig, 600)
    await poll()
    rig.nowMs += minuteMs
    feed.rows.push(...ids(2_001, 250).map((id) => feed.row(rigStartMs - 40 * 24 * 60 * minuteMs, id)))
    expect(await poll()).toMatchObject({ newAlerts: 0 })
    expect(await sweep()).toMatchObject({ newAlerts: 0 })
    expect(queues.ids()).toEqual([])
  })

  it('hands over what stops it', async () => {
    const { rig, poll, sweep } = intakeRig(server, { startFrom: 'beginning' })
    history(rig, 950)
    await poll()
    rig.answer = (page) => (page === 4 ? { kind: 'refused', why: 'budget' } : undefined)
    expect(await sweep()).toMatchObject({ reason: 'refused_budget', pages: 2, depth: 300 })
  })
})
