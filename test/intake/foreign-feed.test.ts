import { describe, expect, it } from 'vitest'
import { useRedis } from '../support/redis.ts'
import { MemoryFeed, rigStartMs } from './memory-rig.ts'
import { history, ids, intakeRig, minuteMs } from './rig.ts'

const server = useRedis()

/** A feed with rows that this source has never seen, as old as its own. */
function foreignFeed(): MemoryFeed {
  const feed = new MemoryFeed()
  const rows = ids(100_001, 950).map((id, index) => feed.row(rigStartMs - (950 - index) * minuteMs, id))
  feed.rows = rows.toReversed()
  return feed
}

/** A source that has handled so many rows, and polled again an hour later. */
async function rigThatKnows(count: number, startFrom: 'now' | 'beginning') {
  const made = intakeRig(server, { startFrom })
  history(made.rig, count)
  await made.poll()
  made.rig.nowMs += 60 * minuteMs
  await made.poll()
  return made
}

describe("another account's feed", () => {
  it('stops the source, delivers nothing, and is gone when the token is put right', async () => {
    const { rig, feed, poll, queues } = await rigThatKnows(250, 'beginning')
    const strange = foreignFeed()
    rig.answer = (page) => ({ kind: 'page', page: strange.page(page) })
    const result = await poll()
    expect(result).toMatchObject({ stopped: 'foreign_feed', ok: false, newAlerts: 0, passedOver: 0 })
    expect(result.pages).toBeLessThanOrEqual(5)
    expect(queues.ids()).toEqual(ids(1, 250))
    rig.answer = () => undefined
    feed.add(2, rig.nowMs)
    expect(await poll()).toMatchObject({ stopped: null, newAlerts: 2, pages: 1 })
  })

  it('is not taken for history either', async () => {
    const { rig, poll, state } = await rigThatKnows(250, 'now')
    const strange = foreignFeed()
    rig.answer = (page) => ({ kind: 'page', page: strange.page(page) })
    expect(await poll()).toMatchObject({ stopped: 'foreign_feed' })
    expect((await state.look([strange.rows[0]?.key ?? ''])).marks).toEqual(['new'])
  })
})

describe('a token that is changed', () => {
  const made = async () => {
    const rig = await rigThatKnows(350, 'beginning')
    const strange = foreignFeed()
    return { ...rig, swap: (page: number) => ({ kind: 'page' as const, page: strange.page(page) }) }
  }

  it('before a sweep lets nothing of the other account pass', async () => {
    const { rig, sweep, queues, swap } = await made()
    rig.answer = swap
    expect(await sweep({ pagesMax: 4 })).toMatchObject({ reason: 'foreign_feed', newAlerts: 0 })
    expect(queues.ids()).toEqual(ids(1, 350))
  })

  it('before a look for late rows lets nothing of it pass', async () => {
    const { rig, feed, poll, queues, swap } = await made()
    feed.rows.splice(150, 0, feed.row(rig.nowMs - 15 * minuteMs))
    let reads = 0
    rig.answer = (page) => (reads++ === 0 ? undefined : swap(page))
    expect(await poll()).toMatchObject({ stopped: 'foreign_feed', newAlerts: 0 })
    expect(queues.ids()).toEqual(ids(1, 350))
  })
})

describe('what is no foreign feed', () => {
  it('is a burst that fills the first pages', async () => {
    const { rig, feed, poll } = intakeRig(server)
    history(rig, 250)
    await poll()
    rig.nowMs += 60 * minuteMs
    feed.add(450, rig.nowMs - minuteMs)
    expect(await poll()).toMatchObject({ stopped: null, newAlerts: 450, pages: 5 })
  })

  it('is a back-fill with old dates, since the known rows stand where counting puts them', async () => {
    const { feed, poll } = await rigThatKnows(250, 'beginning')
    feed.add(350, rigStartMs - 60 * minuteMs)
    // One unit more than an ordinary catch-up: the page that speaks for the feed.
    expect(await poll()).toMatchObject({ stopped: null, newAlerts: 350, pages: 5, finished: true })
  })

  it('is a back-fill beneath the head, which shows that the feed is ours', async () => {
    const { rig, feed, poll, sweep, queues } = await rigThatKnows(20, 'beginning')
    feed.rows.push(...ids(1, 80).map(() => feed.row(rigStartMs - 60 * minuteMs)))
    await poll()
    feed.rows.push(...ids(1, 250).map(() => feed.row(rigStartMs - 60 * minuteMs)))
    rig.nowMs += minuteMs
    // Two pages beneath the head, and the head once more.
    expect(await poll()).toMatchObject({ stopped: null, newAlerts: 200, pages: 4 })
    expect(await sweep()).toMatchObject({ reason: 'round_done', newAlerts: 50, pages: 4 })
    expect(queues.ids()).toEqual(ids(1, 350))
  })

  it('is a heap of rows with old dates on a feed that drops as many of its oldest', async () => {
    const { feed, poll } = await rigThatKnows(950, 'beginning')
    feed.add(450, rigStartMs - 60 * minuteMs)
    feed.rows.length = 950
    expect(await poll()).toMatchObject({ stopped: null, newAlerts: 450, finished: true })
  })

  it('is not stopped for good where its known rows stand deeper than one poll looks', async () => {
    const { feed, poll } = await rigThatKnows(1_950, 'beginning')
    feed.add(1_050, rigStartMs - 60 * minuteMs)
    feed.rows.length = 1_600
    const results = []
    for (let polls = 0; polls < 4; polls += 1) results.push(await poll())
    expect(results.filter(({ stopped }) => stopped !== null).length).toBeLessThanOrEqual(3)
    expect(results.at(-1)).toMatchObject({ stopped: null, finished: true })
    expect(results.reduce((sum, { newAlerts }) => sum + newAlerts, 0)).toBe(1_050)
  })
})
