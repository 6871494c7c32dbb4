import { describe, expect, it } from 'vitest'
import { sourceKeys } from '../../src/store/keys.ts'
import { createWalkState, type WalkChange } from '../../src/store/walk-state.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const server = useRedis()
const dayMs = 86_400_000

function setUp(seenWindowMs = 30 * dayMs, quarantineMax = 500) {
  const redis = server.client()
  const prefix = freshPrefix()
  const state = createWalkState({ redis, prefix, source: 'main', seenWindowMs, quarantineMax })
  return { redis, state, keys: sourceKeys(prefix, 'main') }
}

const all = { kind: 'all' as const }
const nothing: WalkChange = {
  mark: [],
  shown: [],
  rowsBecome: 0,
  joins: [],
  finished: [],
  quarantine: [],
  explains: true,
  passedOver: 0,
  unrouted: 0,
}
const stretch = (run: number, frontier: string) => ({ run, frontier, end: 2, total: 9 })

describe('the memory of a source', () => {
  it('is made once, and its scope stands', async () => {
    const { state } = setUp()
    const scope = { kind: 'since' as const, sinceMs: 5 }
    expect(await state.open({ id: 'a', scope })).toMatchObject({ id: 'a', created: true, version: 0 })
    const again = await state.open({ id: 'b', scope: all })
    expect(again).toMatchObject({ id: 'a', created: false, facts: { scope, lastCompleteMs: null } })
    expect(again.facts.createdMs).toBeGreaterThan(0)
  })

  it('knows of each row whether it is new, covered, or of which run', async () => {
    const { state } = setUp()
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
    const { state } = setUp()
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
    const { state } = setUp()
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
    expect(late).toEqual({ kind: 'raced', added: 1, version: 1 })
    const looked = await state.look(['1', '2'])
    expect(looked.marks).toEqual([1, 0])
    expect(looked).toMatchObject({ stretches: [stretch(1, '1')], facts: { lastCompleteMs: null } })
  })

  it('covers a page of a late change all the same', async () => {
    const { state } = setUp()
    await state.open({ id: 'a', scope: all })
    const base = { id: 'a', version: 0 }
    await state.commit(base, { ...nothing, mark: ['1'], rowsBecome: 1, stretches: [stretch(1, '1')] })
    await state.commit(base, { ...nothing, mark: ['2'], shown: ['1'], rowsBecome: 'covered' })
    expect((await state.look(['1', '2'])).marks).toEqual(['covered', 'covered'])
  })

  it('refuses a change for a memory that is gone', async () => {
    const { state, redis } = setUp()
    await state.open({ id: 'a', scope: all })
    await redis.flushall()
    expect(await state.commit({ id: 'a', version: 0 }, { ...nothing, mark: ['1'] })).toMatchObject({
      kind: 'lost',
    })
    expect((await state.look(['1'])).id).toBe('')
    expect(await redis.dbsize()).toBe(0)
  })

  it('counts what explains the growth of the feed', async () => {
    const { state } = setUp()
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

  it('keeps the last rows that could not be read, each once', async () => {
    const { state } = setUp(30 * dayMs, 2)
    await state.open({ id: 'a', scope: all })
    const bad = (key: string) => ({ key, reason: 'id: missing', raw: '{"a":"\\ud800"}', atMs: 5 })
    for (const key of ['1', '2', '2', '3']) {
      await state.commit({ id: 'a', version: 0 }, { ...nothing, mark: [key], quarantine: [bad(key)] })
    }
    expect(await state.quarantined(10)).toEqual([bad('3'), bad('2')])
    expect((await state.look([])).facts.quarantined).toBe(3)
  })

  it('notices that the seen rows are gone although none was forgotten', async () => {
    const { state, redis, keys } = setUp()
    await state.open({ id: 'a', scope: all })
    await state.commit({ id: 'a', version: 0 }, { ...nothing, mark: ['1'] })
    expect((await state.open({ id: 'b', scope: all })).seenVanished).toBe(false)
    await redis.del(keys.seen)
    expect((await state.open({ id: 'b', scope: all })).seenVanished).toBe(true)
    const fresh = await state.open({ id: 'b', scope: all, replaces: 'a' })
    expect(fresh).toMatchObject({ id: 'b', created: true, seenVanished: false })
  })

  it('gives runs numbers above those that rows still carry when the rest is lost', async () => {
    const { state, redis, keys } = setUp()
    await state.open({ id: 'a', scope: all })
    await state.commit(
      { id: 'a', version: 0 },
      { ...nothing, mark: ['1'], rowsBecome: 9, stretches: [stretch(9, '1')] },
    )
    await redis.del(keys.meta)
    expect(await state.open({ id: 'b', scope: all })).toMatchObject({ runs: 9, stretches: [], version: 0 })
  })
})

describe('forgetting', () => {
  const complete = { atMs: 1, total: 3 }

  it('goes by when a row was last shown, a window before the last complete walk', async () => {
    const { state, redis, keys } = setUp(10 * dayMs)
    const now = await redisNow(redis)
    await state.open({ id: 'a', scope: all })
    const base = { id: 'a', version: 0 }
    await state.commit(base, { ...nothing, mark: ['old', 'shown', 'young'], complete })
    await redis.zadd(keys.seen, now - 11 * dayMs, 'old', now - 11 * dayMs, 'shown', now - 9 * dayMs, 'young')
    await state.commit(base, { ...nothing, shown: ['shown'], complete })
    const { marks, facts } = await state.look(['old', 'shown', 'young'])
    expect(marks).toEqual(['new', 0, 0])
    expect(await redis.zcard(keys.uncovered)).toBe(2)
    // What was fired before this may be one of the forgotten.
    expect(facts.forgottenMs).toBe(now - 10 * dayMs)
    expect((await state.open({ id: 'b', scope: all })).seenVanished).toBe(false)
  })

  it('spares the rows that must end the walk after a long outage', async () => {
    const { state, redis, keys } = setUp(10 * dayMs)
    const now = await redisNow(redis)
    await state.open({ id: 'a', scope: all })
    const base = { id: 'a', version: 0 }
    await state.commit(base, { ...nothing, mark: ['1', '2'], complete })
    // The last complete walk was fifteen days ago, and so were these rows.
    await redis.hset(keys.meta, 'completeAt', now - 15 * dayMs)
    await redis.zadd(keys.seen, now - 15 * dayMs, '1', now - 16 * dayMs, '2')
    await state.commit(base, { ...nothing, mark: ['3'], rowsBecome: 1, stretches: [stretch(1, '3')] })
    expect((await state.look(['1', '2'])).marks).toEqual([0, 0])
  })

  it('never waits longer than two windows, whether a walk is complete or not', async () => {
    const { state, redis, keys } = setUp(10 * dayMs)
    const now = await redisNow(redis)
    await state.open({ id: 'a', scope: all })
    await state.commit({ id: 'a', version: 0 }, { ...nothing, mark: ['1'] })
    await redis.zadd(keys.seen, now - 21 * dayMs, '1')
    await state.commit({ id: 'a', version: 0 }, { ...nothing, mark: ['2'] })
    expect((await state.look(['1', '2'])).marks).toEqual(['new', 0])
  })
})

async function redisNow(redis: ReturnType<typeof server.client>): Promise<number> {
  const [seconds] = await redis.time()
  return Number(seconds) * 1_000
}
