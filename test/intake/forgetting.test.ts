import { describe, expect, it } from 'vitest'
import { sourceKeys } from '../../src/store/keys.ts'
import { useRedis } from '../support/redis.ts'
import { dateSeen } from '../support/seen.ts'
import { ids, intakeRig } from './rig.ts'

const server = useRedis()
const dayMs = 86_400_000
const minuteMs = 60_000

/** A source that forgets as soon as it may, and a way to let days pass for its Redis, its process and its feed. */
function forgetfulRig(startFrom: 'beginning' | 'now') {
  const made = intakeRig(server, { startFrom, seenWindowMs: dayMs, rowsKept: 0 })
  const { rig, feed, prefix, redis } = made
  rig.nowMs = Date.now()
  const keys = sourceKeys(prefix, 'main')
  const pass = async (days: number) => {
    const ms = days * dayMs
    const seen = await redis.hgetall(keys.seen)
    const shownMs = Object.entries(seen).map(([key, day]) => [key, (Number(day) - days) * dayMs])
    await dateSeen(redis, keys, Object.fromEntries(shownMs))
    for (const field of ['forgottenDay', 'removedDay'])
      if (await redis.hexists(keys.meta, field)) await redis.hincrby(keys.meta, field, -days)
    if (await redis.hexists(keys.meta, 'completeAt')) await redis.hincrby(keys.meta, 'completeAt', -ms)
    if (await redis.hexists(keys.meta, 'lastCompleteMs'))
      await redis.hincrby(keys.meta, 'lastCompleteMs', -ms)
    if (await redis.hexists(keys.meta, 'forgottenMs')) await redis.hincrby(keys.meta, 'forgottenMs', -ms)
    feed.rows = feed.rows.map((row) => ({
      ...row,
      firedAt: row.firedAt === null ? null : new Date(Date.parse(row.firedAt) - ms).toISOString(),
    }))
  }
  return { ...made, pass }
}

describe('a seenWindow of a day', () => {
  it('loses nothing of a catch-up that takes longer, and sends nothing twice', async () => {
    const { rig, feed, poll, sweep, queues, pass } = forgetfulRig('beginning')
    feed.add(1_000, (index) => rig.nowMs - (1_000 - index) * 10 * minuteMs)
    await poll({ pagesMax: 3 })
    for (let polls = 0; polls < 8; polls += 1) {
      await pass(2)
      await poll({ pagesMax: 2 })
    }
    expect(await poll({ pagesMax: 2 })).toMatchObject({ finished: true })
    expect(queues.ids()).toEqual(ids(1, 1_000))
    // The queues forget sooner than a row is shown again.
    queues.jobs.clear()
    await pass(3)
    await poll()
    await sweep({ fromPage: 1 })
    expect(queues.ids()).toEqual([])
  })

  it('loses nothing that is published late, more than a page at once', async () => {
    const { rig, feed, poll, queues, pass } = forgetfulRig('now')
    feed.add(150, (index) => rig.nowMs - (200 - index) * minuteMs)
    await poll()
    feed.add(120, rig.nowMs)
    await poll()
    await pass(3)
    await poll()
    queues.jobs.clear()
    feed.add(150, rig.nowMs - 3 * dayMs)
    expect(await poll()).toMatchObject({ newAlerts: 150, passedOver: 0 })
    expect(queues.ids()).toEqual(ids(271, 150))
  })
})
