import { describe, expect, it } from 'vitest'
import { useRedis } from '../support/redis.ts'
import { rigStartMs } from './memory-rig.ts'
import { history, ids, intakeRig, minuteMs } from './rig.ts'

/** Where the feed offers no evidence: what the table of failures says of it (`test/faults/README.md`). */

const server = useRedis()

describe('as many rows that are removed above as are filled in beneath the place where a catch-up goes on', () => {
  it('make it pass rows by, which a sweep finds', async () => {
    const { feed, poll, sweep, queues } = intakeRig(server, { startFrom: 'beginning' })
    feed.add(650, (index) => rigStartMs - (650 - index) * minuteMs)
    expect(await poll({ pagesMax: 3 })).toMatchObject({ newAlerts: 300, behind: true })
    feed.rows.splice(10, 20)
    feed.rows.push(...ids(2_001, 20).map((id) => feed.row(rigStartMs - 700 * minuteMs, id)))
    expect(await poll()).toMatchObject({ finished: true, behind: false })
    const missing = () => feed.rows.filter(({ id }) => !queues.ids().includes(Number(id))).map(({ id }) => id)
    expect(missing()).toHaveLength(20)
    expect(await sweep()).toMatchObject({ newAlerts: 20 })
    expect(missing()).toEqual([])
  })
})

describe('when all rows that are known leave the head at once', () => {
  const rigWithoutHead = async () => {
    const made = intakeRig(server)
    history(made.rig, 450)
    await made.poll()
    made.rig.nowMs += 2 * minuteMs
    made.feed.rows.splice(0, 100)
    return made
  }

  it('what is new is known by its date', async () => {
    const { rig, feed, poll, queues } = await rigWithoutHead()
    feed.add(80, rig.nowMs - minuteMs)
    expect(await poll()).toMatchObject({ newAlerts: 80 })
    expect(queues.ids()).toEqual(ids(451, 80))
  })

  it('what is new is told by the growth of the feed where its date is old', async () => {
    const { feed, poll, queues } = await rigWithoutHead()
    feed.add(150, rigStartMs - 5 * minuteMs)
    expect(await poll()).toMatchObject({ newAlerts: 50 })
    expect(queues.ids()).toEqual(ids(551, 50))
  })

  it('and half of the new head or more fired before the last complete walk, the source stops as one that shows another feed', async () => {
    const { rig, feed, poll, queues } = await rigWithoutHead()
    feed.add(45, rig.nowMs - minuteMs)
    expect(await poll()).toMatchObject({ stopped: 'foreign_feed', newAlerts: 0 })
    expect(queues.ids()).toEqual([])
    feed.add(10, rig.nowMs)
    expect(await poll()).toMatchObject({ newAlerts: 55 })
  })
})

describe('while startFrom: now reads the feed for the first time', () => {
  it('rows without a date are taken for history, but for those by which it has grown', async () => {
    const { rig, feed, poll, queues } = intakeRig(server)
    const undated = (count: number) => {
      feed.add(count, rigStartMs)
      feed.rows = feed.rows.map((row, index) => (index < count ? { ...row, firedAt: 'some day' } : row))
    }
    feed.add(150, rigStartMs + minuteMs)
    undated(5)
    rig.nowMs += 2 * minuteMs
    expect(await poll({ pagesMax: 1 })).toMatchObject({ newAlerts: 95, passedOver: 5, behind: true })
    undated(3)
    expect(await poll()).toMatchObject({ newAlerts: 58, finished: true })
    expect(queues.ids()).toEqual([...ids(1, 150), ...ids(156, 3)])
  })
})
