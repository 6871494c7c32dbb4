import { describe, expect, it } from 'vitest'
import { sourceKeys } from '../../src/store/keys.ts'
import { createQuarantineStore, quarantineLimits } from '../../src/store/walk/quarantine.ts'
import { createWalkState, type WalkChange } from '../../src/store/walk/walk-state.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { dateSeen } from '../support/seen.ts'

const server = useRedis()
const dayMs = 86_400_000

function rig(seenWindowMs = 30 * dayMs, quarantine = quarantineLimits, rowsKept = 0) {
  const redis = server.client()
  const prefix = freshPrefix()
  const state = createWalkState({ redis, prefix, source: 'main', seenWindowMs, quarantine, rowsKept })
  const store = createQuarantineStore({ redis, prefix, source: 'main' })
  return { redis, state, quarantine: store, keys: sourceKeys(prefix, 'main') }
}

const all = { kind: 'all' as const }
const nothing: WalkChange = {
  nowMs: Date.now(),
  mark: [],
  shown: [],
  rowsBecome: 0,
  joins: [],
  finished: [],
  quarantine: [],
  readable: [],
  explains: true,
  passedOver: 0,
  unrouted: 0,
}
const stretch = (run: number, frontier: string) => ({ run, frontier, end: 2, total: 9 })

describe('the memory of a source', () => {
  it('is made once, and its scope stands', async () => {
    const { state } = rig()
    const scope = { kind: 'since' as const, sinceMs: 5 }
    expect(await state.open({ id: 'a', scope })).toMatchObject({ id: 'a', created: true, version: 0 })
    const again = await state.open({ id: 'b', scope: all })
    expect(again).toMatchObject({ id: 'a', created: false, facts: { scope, lastCompleteMs: null } })
    expect(again.facts.createdMs).toBeGreaterThan(0)
  })

  it('knows of each row whether it is new, covered, or of which run', async () => {
    const { state } = rig()
    await state.open({ id: 'a', scope: all })
    const base = { id: 'a', version: 0 }
    await state.commit(base, { ...nothing, mark: ['1', '2'], rowsBecome: 7, stretches: [stretch(7, '2')] })
    await state.commit({ id: 'a', version: 1 }, { ...nothing, mark: ['3'], rowsBecome: 'covered' })
    await state.commit({ id: 'a', version: 1 }, { ...nothing, mark: ['raw-4'] })
    const looked = await state.look(['1', '2', '3', 'raw-4', '5'])
    expect(looked.marks).toEqual([7, 7, 'covered', 0, 'new'])
    expect(looked).toMatchObject({ version: 1, runs: 7, stretches: [stretch(7, '2')] })
  })

  it('joins runs, and covers those that are finished', async () => {
    const { state } = rig()
    await state.open({ id: 'a', scope: all })
    const first = await state.commit(
      { id: 'a', version: 0 },
      { ...nothing, mark: ['1', '2'], rowsBecome: 1, stretches: [stretch(1, '2')] },
    )
    const second = await state.commit(
      { id: 'a', version: first.version },
      {
        ...nothing,
        mark: ['3'],
        shown: ['2'],
        rowsBecome: 2,
        joins: [{ from: 1, to: 2 }],
        stretches: [stretch(2, '2')],
      },
    )
    expect((await state.look(['1', '2', '3'])).marks).toEqual([2, 2, 2])
    await state.commit({ id: 'a', version: second.version }, { ...nothing, finished: [2], stretches: [] })
    const looked = await state.look(['1', '2', '3'])
    expect(looked.marks).toEqual(['covered', 'covered', 'covered'])
    expect(looked.stretches).toEqual([])
  })

  it('takes the rows of a change that came too late, but none of its stretches', async () => {
    const { state } = rig()
    await state.open({ id: 'a', scope: all })
    const base = { id: 'a', version: 0 }
    await state.commit(base, { ...nothing, mark: ['1'], rowsBecome: 1, stretches: [stretch(1, '1')] })
    const late = await state.commit(base, {
      ...nothing,
      mark: ['1', '2'],
      rowsBecome: 2,
      finished: [1],
      stretches: [stretch(2, '2')],
      complete: { atMs: 5, total: 5 },
    })
    expect(late).toMatchObject({ kind: 'raced', added: 1, version: 1 })
    const looked = await state.look(['1', '2'])
    expect(looked.marks).toEqual([1, 0])
    expect(looked).toMatchObject({ stretches: [stretch(1, '1')], facts: { lastCompleteMs: null } })
  })

  it('takes no stretch that was decided on before another walk was complete', async () => {
    const { state } = rig()
    await state.open({ id: 'a', scope: all })
    const base = { id: 'a', version: 0 }
    await state.commit(base, {
      ...nothing,
      mark: ['1'],
      rowsBecome: 'covered',
      complete: { atMs: 5, total: 1 },
    })
    const late = { ...nothing, mark: ['2'], rowsBecome: 1, stretches: [stretch(1, '2')] }
    expect(await state.commit(base, late)).toMatchObject({ kind: 'raced', added: 1 })
    expect(await state.look(['2'])).toMatchObject({ marks: [0], stretches: [] })
  })

  it('covers a page of a late change all the same', async () => {
    const { state } = rig()
    await state.open({ id: 'a', scope: all })
    const base = { id: 'a', version: 0 }
    await state.commit(base, { ...nothing, mark: ['1'], rowsBecome: 1, stretches: [stretch(1, '1')] })
    await state.commit(base, { ...nothing, mark: ['2'], shown: ['1'], rowsBecome: 'covered' })
    expect((await state.look(['1', '2'])).marks).toEqual(['covered', 'covered'])
  })

  it('refuses a change for a memory that is gone', async () => {
    const { state, redis } = rig()
    await state.open({ id: 'a', scope: all })
    await redis.flushall()
    expect(await state.commit({ id: 'a', version: 0 }, { ...nothing, mark: ['1'] })).toMatchObject({
      kind: 'lost',
    })
    expect((await state.look(['1'])).id).toBe('')
    expect(await redis.dbsize()).toBe(0)
  })

  it('counts what explains the growth of the feed', async () => {
    const { state } = rig()
    await state.open({ id: 'a', scope: all })
    const base = { id: 'a', version: 0 }
    const change = { ...nothing, mark: ['1'], passedOver: 1, unrouted: 2 }
    await state.commit(base, change)
    expect((await state.look([])).facts).toMatchObject({ expected: null, passedOver: 1, unrouted: 2 })
    await state.commit(base, { ...nothing, mark: ['2'], complete: { atMs: 77, total: 2 } })
    await state.commit(base, { ...nothing, mark: ['2', '3', '4'] })
    await state.commit(base, { ...nothing, mark: ['5'], explains: false })
    expect((await state.look([])).facts).toMatchObject({ lastCompleteMs: 77, total: 2, expected: 4 })
  })

  it('notices that the seen rows are gone although none was forgotten', async () => {
    const { state, redis, keys } = rig()
    await state.open({ id: 'a', scope: all })
    await state.commit({ id: 'a', version: 0 }, { ...nothing, mark: ['1'] })
    expect((await state.open({ id: 'b', scope: all })).seenVanished).toBe(false)
    await redis.del(keys.seen)
    expect((await state.open({ id: 'b', scope: all })).seenVanished).toBe(true)
    const fresh = await state.open({ id: 'b', scope: all, replaces: 'a' })
    expect(fresh).toMatchObject({ id: 'b', created: true, seenVanished: false })
  })

  it('gives runs numbers above those that rows still carry when the rest is lost', async () => {
    const { state, redis, keys } = rig()
    await state.open({ id: 'a', scope: all })
    await state.commit(
      { id: 'a', version: 0 },
      { ...nothing, mark: ['1'], rowsBecome: 9, stretches: [stretch(9, '1')] },
    )
    await redis.del(keys.meta)
    expect(await state.open({ id: 'b', scope: all })).toMatchObject({ runs: 9, stretches: [], version: 0 })
  })
})

describe('rows that could not be read', () => {
  const bad = (key: string, raw = '{"a":"\\ud800"}') => ({ key, reason: 'id: missing', raw, atMs: 5 })
  const base = { id: 'a', version: 0 }

  async function aside(limits = quarantineLimits) {
    const made = rig(30 * dayMs, limits)
    await made.state.open({ id: 'a', scope: all })
    const put = (key: string, raw?: string) =>
      made.state.commit(base, { ...nothing, mark: [key], quarantine: [bad(key, raw)] })
    return { ...made, put }
  }

  it('are quarantined once, are seen like others, and leave when they can be read', async () => {
    const { state, quarantine, put } = await aside()
    for (const key of ['1', '2', '2']) await put(key)
    expect((await quarantine.list(10)).map(({ key }) => key).sort()).toEqual(['1', '2'])
    expect(await quarantine.find(['2', '9'])).toEqual([bad('2')])
    const looked = await state.look(['1', '2', '3'])
    expect(looked).toMatchObject({ marks: [0, 0, 'new'], quarantined: [true, true, false] })
    await state.commit(base, { ...nothing, shown: ['1'], readable: ['1'] })
    expect(await state.look(['1', '2'])).toMatchObject({ marks: [0, 0], quarantined: [false, true] })
    expect(await quarantine.counts()).toEqual({ quarantined: 1, ever: 2, fellOut: 0 })
  })

  it.each([
    ['number', { rowsMax: 2, bytesMax: 10_000 }],
    ['size', { rowsMax: 100, bytesMax: 200 }],
  ])(
    'fall out by %s, the oldest first, are counted, and are still known as quarantined',
    async (_, limits) => {
      const { state, quarantine, redis, keys, put } = await aside(limits)
      for (const [index, key] of ['1', '2', '3'].entries()) {
        expect((await put(key)).fellOut).toBe(index < 2 ? 0 : 1)
        // A millisecond of their own, each.
        await redis.zadd(keys.quarantinedTimes, 'XX', 1_000 + index, key)
      }
      expect((await quarantine.list(10)).map(({ key }) => key)).toEqual(['3', '2'])
      expect((await state.look(['1', '2'])).quarantined).toEqual([true, true])
      expect(await quarantine.counts()).toEqual({ quarantined: 3, ever: 3, fellOut: 1 })
      expect(await quarantine.removeAll()).toBe(3)
      expect(await redis.exists(keys.quarantined, keys.quarantinedTimes)).toBe(0)
    },
  )

  it('are dropped, and stay seen', async () => {
    const { state, quarantine, put } = await aside()
    await put('1')
    expect(await quarantine.remove(['1', 'raw-x'])).toBe(1)
    expect(await state.look(['1'])).toMatchObject({ marks: [0], quarantined: [false] })
  })

  it('of an earlier version are taken over, whatever their text holds', async () => {
    const { state, quarantine, redis, keys } = rig()
    const half = { ...bad('7'), raw: '{"headline":"\ud83d' }
    await redis.rpush(keys.quarantine, JSON.stringify(bad('8')), JSON.stringify(half))
    await state.open({ id: 'a', scope: all })
    expect((await quarantine.list(10)).map(({ key }) => key).sort()).toEqual(['7', '8'])
    expect((await state.look(['7', '8', '9'])).quarantined).toEqual([true, true, false])
    expect(await redis.exists(keys.quarantine)).toBe(0)
  })

  it('that fell out are forgotten with what was seen; the others wait for a person', async () => {
    const { state, quarantine, redis, keys, put } = await aside()
    const now = await redisNow(redis)
    for (const key of ['1', '2']) await put(key)
    await redis.hdel(keys.quarantined, '1')
    await redis.zadd(keys.quarantinedTimes, -5, '1')
    await dateSeen(redis, keys, { 1: now - 90 * dayMs, 2: now - 90 * dayMs })
    await redis.hset(keys.meta, 'completeAt', now)
    await state.commit(base, nothing)
    expect(await state.look(['1', '2'])).toMatchObject({ marks: ['new', 'new'], quarantined: [false, true] })
    expect((await quarantine.list(10)).map(({ key }) => key)).toEqual(['2'])
  })
})

describe('forgetting', () => {
  const complete = { atMs: 1, total: 3 }
  const base = { id: 'a', version: 0 }
  const windowMs = 10 * dayMs

  /** Rows that were last shown so many days ago, and a walk that was complete just now. */
  async function given(ages: Readonly<Record<string, number>>, { rowsKept = 0, completeAgo = 0 } = {}) {
    const made = rig(windowMs, quarantineLimits, rowsKept)
    const { state, redis, keys } = made
    const now = await redisNow(redis)
    await state.open({ id: 'a', scope: all })
    await state.commit(base, { ...nothing, mark: Object.keys(ages), complete })
    const shownMs = Object.entries(ages).map(([key, days]) => [key, now - days * dayMs])
    await dateSeen(redis, keys, Object.fromEntries(shownMs))
    await redis.hset(keys.meta, 'completeAt', now - completeAgo * dayMs)
    const known = async () => {
      const { marks } = await state.look(Object.keys(ages))
      return Object.keys(ages).filter((_key, index) => marks[index] !== 'new')
    }
    return { ...made, now, known }
  }

  it('goes by the day on which a row was last shown, a window before the last complete walk', async () => {
    const { state, redis, keys, known, now } = await given({ old: 11, shown: 11, young: 10 })
    await state.commit(base, { ...nothing, shown: ['shown'], complete })
    expect(await known()).toEqual(['shown', 'young'])
    expect(await redis.zcard(keys.uncovered)).toBe(2)
    // What was fired before this may be one of the forgotten.
    expect((await state.look([])).facts.forgottenMs).toBe((Math.floor(now / dayMs) - 10) * dayMs)
    expect((await state.open({ id: 'b', scope: all })).seenVanished).toBe(false)
  })

  it('spares the rows that must end the walk after a long outage', async () => {
    const { state, known } = await given({ 1: 45, 2: 46 }, { completeAgo: 45 })
    await state.commit(base, { ...nothing, mark: ['3'] })
    expect(await known()).toEqual(['1', '2'])
  })

  it('waits while a walk is not done, however long that takes', async () => {
    const { state, known } = await given({ 1: 200, 2: 300 })
    const open = { mark: ['3'], rowsBecome: 1, stretches: [stretch(1, '3')] }
    await state.commit({ id: 'a', version: 1 }, { ...nothing, ...open })
    expect(await known()).toEqual(['1', '2'])
    await state.commit({ id: 'a', version: 2 }, { ...nothing, finished: [1], stretches: [], complete })
    expect(await known()).toEqual([])
  })

  it('waits for the first walk to be complete', async () => {
    const { state, redis, keys, known } = await given({ 1: 200 })
    await redis.hdel(keys.meta, 'completeAt')
    await state.commit(base, { ...nothing, mark: ['2'] })
    expect(await known()).toEqual(['1'])
  })

  it('spares the newest rows, however old they are, and never forgets half of what was shown together', async () => {
    const ages = { oldest: 90, old: 50, alike: 50, 1: 40, 2: 39 }
    const knownOf = async (rowsKept: number) => {
      const { state, known } = await given(ages, { rowsKept })
      await state.commit(base, nothing)
      return await known()
    }
    expect(await knownOf(2)).toEqual(['1', '2'])
    expect(await knownOf(3)).toEqual(['1', '2', 'old', 'alike'])
    expect(await knownOf(5)).toHaveLength(5)
  })

  it('happens at once to all rows of a day, though they are removed bit by bit', async () => {
    const [old, young] = ['old', 'young'].map((age) =>
      Array.from({ length: 3_000 }, (_, row) => `${age} ${row}`),
    ) as [string[], string[]]
    const { state, redis, keys } = rig(windowMs, quarantineLimits, 0)
    await redis.config('SET', 'hash-max-listpack-entries', 0)
    const shownAgo = (rows: readonly string[], days: number) =>
      dateSeen(redis, keys, Object.fromEntries(rows.map((key) => [key, Date.now() - days * dayMs])))
    const known = async (rows: readonly string[]) =>
      (await state.look(rows)).marks.filter((mark) => mark !== 'new').length
    const commit = (mark: readonly string[] = []) =>
      state.commit({ id: 'a', version: 1 }, { ...nothing, mark })
    await state.open({ id: 'a', scope: all })
    await state.commit(base, { ...nothing, mark: [...old, ...young], complete })
    await shownAgo(old, 20)
    await commit()
    expect([await known(old), await known(young)]).toEqual([0, 3_000])
    expect(await redis.hlen(keys.seen)).toBeGreaterThan(5_000)
    // Those that the feed shows again, of which some are still stored, are new, once.
    const again = old.slice(0, 1_000)
    expect([(await commit(again)).added, (await commit(again)).added]).toEqual([1_000, 0])
    // A day that is forgotten while a round is under way is removed as well.
    await shownAgo(young, 12)
    for (let commits = 0; commits < 30; commits += 1) await commit()
    expect([await known(old), await known(young)]).toEqual([1_000, 0])
    expect([await redis.hlen(keys.seen), await redis.zcard(keys.uncovered)]).toEqual([1_000, 1_000])
    expect(await redis.hvals(keys.seenDays)).toEqual(['1000'])
    await shownAgo(again, 11)
    for (let commits = 0; commits < 30; commits += 1) await commit()
    expect([await redis.exists(keys.seen), await redis.exists(keys.seenDays)]).toEqual([0, 0])
    expect((await state.open({ id: 'b', scope: all })).seenVanished).toBe(false)
  })

  it('goes on removing where Redis has another table, as after a restart', async () => {
    const rows = Array.from({ length: 3_000 }, (_, row) => `row ${row}`)
    const { state, redis, keys } = rig(windowMs, quarantineLimits, 0)
    await redis.config('SET', 'hash-max-listpack-entries', 0)
    await state.open({ id: 'a', scope: all })
    await state.commit(base, { ...nothing, mark: rows, complete })
    const shownMs = Date.now() - 20 * dayMs
    await dateSeen(redis, keys, Object.fromEntries(rows.map((key) => [key, shownMs])))
    const { server: thisRun } = await state.look([])
    const commit = () => state.commit({ id: 'a', version: 1, server: thisRun }, nothing)
    await commit()
    // The end of its table, as an earlier run had it.
    await redis.hset(keys.meta, 'removing', 4_095, 'removingAt', 'an earlier run')
    for (let commits = 0; commits < 20; commits += 1) await commit()
    expect(await redis.exists(keys.seen)).toBe(0)
  })

  it('remembers which day it was also where the count of its rows is wrong', async () => {
    const { state, redis, keys, known, now } = await given({ old: 90, young: 1, 1: 1, 2: 1 })
    await redis.hset(keys.seenDays, Math.floor(now / dayMs) - 90, -2)
    await state.commit(base, nothing)
    expect(await known()).toEqual(['1', '2', 'young'])
    expect((await state.look([])).facts.forgottenMs).toBeGreaterThan(0)
  })

  it('goes by the last day on which a row was shown', async () => {
    const { state, redis, keys, now } = await given({ 1: 1, 2: 0 })
    await state.commit({ id: 'a', version: 1 }, { ...nothing, shown: ['1', '2'] })
    const today = String(Math.floor(now / dayMs))
    expect(await redis.hgetall(keys.seen)).toEqual({ 1: today, 2: today })
    expect(await redis.hgetall(keys.seenDays)).toEqual({ [today]: '2' })
  })

  it('dates nothing among what is forgotten, when clocks that were far ahead are right again', async () => {
    const { state, redis, keys, known } = await given({ 1: 0 })
    await redis.hset(keys.meta, 'forgottenDay', Math.floor(Date.now() / dayMs) + 40)
    expect(await known()).toEqual([])
    await state.commit({ id: 'a', version: 1 }, { ...nothing, mark: ['1'] })
    expect(await known()).toEqual(['1'])
  })

  it('goes by the earlier of the clocks of Redis and of the process', async () => {
    const { state, known } = await given({ 1: 90 })
    await state.commit(base, { ...nothing, nowMs: Date.now() - 85 * dayMs })
    expect(await known()).toEqual(['1'])
    await state.commit(base, { ...nothing, nowMs: Date.now() + 85 * dayMs })
    expect(await known()).toEqual([])
  })

  it('counts the age of a row from the later of them', async () => {
    const { state, redis, keys } = await given({ 1: 20 })
    const aheadMs = Date.now() + 60 * dayMs
    await state.commit(base, { ...nothing, nowMs: aheadMs, mark: ['2'], shown: ['1'] })
    await state.commit(base, { ...nothing, nowMs: Date.now() - 60 * dayMs, mark: ['3'] })
    const days = (await redis.hmget(keys.seen, '1', '2', '3')).map(Number)
    expect(days.slice(0, 2)).toEqual([Math.floor(aheadMs / dayMs), Math.floor(aheadMs / dayMs)])
    expect(days[2]).toBeGreaterThan(Date.now() / dayMs - 2)
  })

  it('reads what an earlier version stored by time', async () => {
    const made = rig(windowMs)
    const { state, redis, keys } = made
    await state.open({ id: 'a', scope: all })
    const now = await redisNow(redis)
    const rows = Array.from({ length: 2_500 }, (_, row) => [now - (row % 3) * dayMs, `row ${row}`])
    await redis.zadd(keys.seen, ...rows.flat())
    expect((await state.open({ id: 'b', scope: all })).id).toBe('a')
    const { marks } = await state.look(['row 0', 'row 1', 'row 2499', 'row 2500'])
    expect(marks).toEqual(['covered', 'covered', 'covered', 'new'])
    const today = Math.floor(now / dayMs)
    expect(await redis.hgetall(keys.seenDays)).toEqual({
      [today]: '834',
      [today - 1]: '833',
      [today - 2]: '833',
    })
    expect((await redis.keys(`*${keys.seen}*`)).sort()).toEqual([keys.seen, keys.seenDays])
  })

  it('knows it already before it is stored anew, and counts no days but those of its rows', async () => {
    const { state, redis, keys } = rig(windowMs)
    await state.open({ id: 'a', scope: all })
    const now = await redisNow(redis)
    await redis.zadd(keys.seen, now, '1', now, '2')
    expect((await state.look(['1', '2', '3'])).marks).toEqual(['covered', 'covered', 'new'])
    // Of a young memory that this one was put in the place of.
    await redis.hset(keys.seenDays, Math.floor(now / dayMs), 7)
    await state.open({ id: 'a', scope: all })
    expect(await redis.hgetall(keys.seenDays)).toEqual({ [Math.floor(now / dayMs)]: '2' })
  })

  it("takes Redis' clock, set back, for no reason to forget what it has just marked", async () => {
    const { state, known } = await given({ 1: 0 }, { completeAgo: -60 })
    await state.commit(base, nothing)
    expect(await known()).toEqual(['1'])
  })
})

async function redisNow(redis: ReturnType<typeof server.client>): Promise<number> {
  const [seconds] = await redis.time()
  return Number(seconds) * 1_000
}
