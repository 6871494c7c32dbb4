import { describe, expect, it } from 'vitest'
import { useRedis } from '../support/redis.ts'
import { BenchFeed, benchStartMs } from './bench.ts'
import { history, ids, minuteMs, setUp } from './setup.ts'

const server = useRedis()

/** A feed with rows that this source has never seen, as old as its own. */
function foreignFeed(): BenchFeed {
  const feed = new BenchFeed()
  const rows = ids(100_001, 950).map((id, index) => feed.row(benchStartMs - (950 - index) * minuteMs, id))
  feed.rows = rows.toReversed()
  return feed
}

/** A source that has handled so many rows, and polled again an hour later. */
async function knownSource(count: number, startFrom: 'now' | 'beginning') {
  const rig = setUp(server, { startFrom })
  history(rig.bench, count)
  await rig.poll()
  rig.bench.nowMs += 60 * minuteMs
  await rig.poll()
  return rig
}

describe("another account's feed", () => {
  it('stops the source, delivers nothing, and is gone when the token is put right', async () => {
    const { bench, feed, poll, queues } = await knownSource(250, 'beginning')
    const strange = foreignFeed()
    bench.answer = (page) => ({ kind: 'page', page: strange.page(page) })
    const result = await poll()
    expect(result).toMatchObject({ stopped: 'foreign_feed', ok: false, newAlerts: 0, passedOver: 0 })
    expect(result.pages).toBeLessThanOrEqual(5)
    expect(queues.ids()).toEqual(ids(1, 250))
    bench.answer = () => undefined
    feed.add(2, bench.nowMs)
    expect(await poll()).toMatchObject({ stopped: null, newAlerts: 2, pages: 1 })
  })

  it('is not taken for history either', async () => {
    const { bench, poll, state } = await knownSource(250, 'now')
    const strange = foreignFeed()
    bench.answer = (page) => ({ kind: 'page', page: strange.page(page) })
    expect(await poll()).toMatchObject({ stopped: 'foreign_feed' })
    expect((await state.look([strange.rows[0]?.key ?? ''])).marks).toEqual(['new'])
  })
})

describe('what is no foreign feed', () => {
  it('is a burst that fills the first pages', async () => {
    const { bench, feed, poll } = setUp(server)
    history(bench, 250)
    await poll()
    bench.nowMs += 60 * minuteMs
    feed.add(450, bench.nowMs - minuteMs)
    expect(await poll()).toMatchObject({ stopped: null, newAlerts: 450, pages: 5 })
  })

  it('is a back-fill with old dates, since the known rows stand where counting puts them', async () => {
    const { feed, poll } = await knownSource(250, 'beginning')
    feed.add(350, benchStartMs - 60 * minuteMs)
    // One unit more than an ordinary catch-up: the page that speaks for the feed.
    expect(await poll()).toMatchObject({ stopped: null, newAlerts: 350, pages: 5, finished: true })
  })

  it('is a heap of rows with old dates on a feed that drops as many of its oldest', async () => {
    const { feed, poll } = await knownSource(950, 'beginning')
    feed.add(450, benchStartMs - 60 * minuteMs)
    feed.rows.length = 950
    expect(await poll()).toMatchObject({ stopped: null, newAlerts: 450, finished: true })
  })

  it('is not stopped for good where its known rows stand deeper than one poll looks', async () => {
    const { feed, poll } = await knownSource(1_950, 'beginning')
    feed.add(1_050, benchStartMs - 60 * minuteMs)
    feed.rows.length = 1_600
    const results = []
    for (let polls = 0; polls < 4; polls += 1) results.push(await poll())
    expect(results.filter(({ stopped }) => stopped !== null).length).toBeLessThanOrEqual(3)
    expect(results.at(-1)).toMatchObject({ stopped: null, finished: true })
    expect(results.reduce((sum, { newAlerts }) => sum + newAlerts, 0)).toBe(1_050)
  })
})
