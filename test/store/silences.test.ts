import { describe, expect, it } from 'vitest'
import { UserError } from '../../src/lib/errors.ts'
import { silencesKey } from '../../src/store/operator-keys.ts'
import {
  createSilenceStore,
  silencePatternSizeMax,
  silencePatternsMax,
  silencesMax,
} from '../../src/store/operators/silences.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'
import { longestTurnMs } from '../support/turns.ts'

const server = useRedis()
const nowMs = Date.parse('2026-11-21T09:00:00Z')
const match = { symbol: ['فولاد'], headline: { regex: 'x' } }
const silence = (endsAtMs: number) => ({ match, startsAtMs: nowMs, endsAtMs, comment: 'why' })

function stores() {
  const [prefix, redis] = [freshPrefix(), server.client()]
  return { redis, prefix, store: createSilenceStore({ redis, prefix }) }
}

describe('a silence', () => {
  it('is kept as it was written, and read as a match, by every replica', async () => {
    const { store, prefix } = stores()
    const added = await store.add(silence(nowMs + 10), nowMs)
    const [read] = await createSilenceStore({ redis: server.client(), prefix }).list(nowMs)
    expect(read).toEqual(added)
    expect(read).toMatchObject({
      written: match,
      comment: 'why',
      match: { symbol: [{ op: 'equals', value: 'فولاد' }], headline: [{ op: 'regex', value: 'x' }] },
    })
  })

  it('is forgotten once it has ended', async () => {
    const { store, redis, prefix } = stores()
    await store.add(silence(nowMs + 20), nowMs)
    const first = await store.add(silence(nowMs + 10), nowMs)
    expect((await store.list(nowMs + 9)).map(({ endsAtMs }) => endsAtMs - nowMs)).toEqual([10, 20])
    expect((await store.list(nowMs + 10)).map(({ endsAtMs }) => endsAtMs - nowMs)).toEqual([20])
    expect(await redis.hexists(silencesKey(prefix), first.id)).toBe(0)
  })

  it('is ended by hand, once', async () => {
    const { store } = stores()
    const { id } = await store.add(silence(nowMs + 10), nowMs)
    expect([await store.expire(id), await store.expire(id), await store.list(nowMs)]).toEqual([
      true,
      false,
      [],
    ])
  })

  it('is refused where there are too many', async () => {
    const { store, redis, prefix } = stores()
    const { id } = await store.add(silence(nowMs + 10), nowMs)
    const text = (await redis.hget(silencesKey(prefix), id)) ?? ''
    const more = Array.from({ length: silencesMax - 1 }, (_, index) => [`x${index}`, text]).flat()
    await redis.hset(silencesKey(prefix), ...more)
    await expect(store.add(silence(nowMs + 10), nowMs)).rejects.toThrow(UserError)
  })

  it('of the same moment as others takes the last place once, and is there where that was said, also if it was sent twice', async () => {
    const { store, redis, prefix } = stores()
    const { id } = await store.add(silence(nowMs + 10), nowMs)
    const text = (await redis.hget(silencesKey(prefix), id)) ?? ''
    const more = Array.from({ length: silencesMax - 2 }, (_, index) => [`x${index}`, text]).flat()
    await redis.hset(silencesKey(prefix), ...more)
    const sent = ['a', 'a', 'b'].map((name) => ({ ...silence(nowMs + 10), name }))
    const others = sent.map(() => createSilenceStore({ redis: server.client(), prefix }))
    await Promise.all(others.map((other) => other.list(nowMs)))
    const orders = await Promise.allSettled(
      others.map((other, at) => other.add(sent[at] ?? silence(0), nowMs)),
    )
    const said = orders.flatMap((order) => (order.status === 'fulfilled' ? [order.value.id] : []))
    const there = (await store.list(nowMs)).map((each) => each.id)
    expect(there).toHaveLength(silencesMax)
    expect(new Set(said).size).toBe(1)
    expect(there).toEqual(expect.arrayContaining(said))
  })

  it('is refused where all have too many patterns together, and taken where it has none', async () => {
    const { store } = stores()
    const patterns = Array.from({ length: 50 }, (_, index) => ({ regex: `x${index}` }))
    for (let index = 0; index < silencePatternsMax / 50; index += 1)
      await store.add({ ...silence(nowMs + 10), match: { headline: patterns } }, nowMs)
    await expect(store.add(silence(nowMs + 10), nowMs)).rejects.toThrow(/500 patterns/)
    await store.add({ ...silence(nowMs + 10), match: { symbol: 'فولاد' } }, nowMs)
  })

  it('is refused where the patterns of all are too large together, also by orders of one moment', async () => {
    const { store } = stores()
    const large = { ...silence(nowMs + 10), match: { headline: { regex: '[ab]{500}' } } }
    const place = Math.floor(silencePatternSizeMax / 500) - 1
    for (let index = 0; index < place; index += 1) await store.add(large, nowMs)
    const orders = await Promise.allSettled(Array.from({ length: 5 }, () => store.add(large, nowMs)))
    expect(orders.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await store.list(nowMs)).toHaveLength(place + 1)
    await expect(store.add(large, nowMs)).rejects.toThrow(/at most 20000 characters of patterns together/)
    await store.add({ ...silence(nowMs + 10), match: { symbol: 'فولاد' } }, nowMs)
  })

  it('that an earlier version took and this one does not is listed without its match, until it ends', async () => {
    const { store, redis, prefix } = stores()
    const older = { v: 1, ...silence(nowMs + 10), match: { headline: { regex: '(a|b){400}' } } }
    await redis.hset(silencesKey(prefix), 'older', JSON.stringify(older))
    const [read] = await store.list(nowMs)
    expect(read).toMatchObject({ id: 'older', written: older.match, endsAtMs: nowMs + 10 })
    expect(read?.match).toBeUndefined()
    expect(await store.list(nowMs + 10)).toEqual([])
  })

  it('of many slow patterns is compiled in turns with others', async () => {
    const { store, redis, prefix } = stores()
    const headline = Array.from({ length: 50 }, (_, nth) => ({ regex: `(?i)${'[\\pL]'.repeat(80)}${nth}` }))
    const older = { v: 1, ...silence(nowMs + 10), match: { headline } }
    await redis.hset(silencesKey(prefix), 'older', JSON.stringify(older))
    let read: Awaited<ReturnType<typeof store.list>>[number] | undefined
    const longestMs = await longestTurnMs(async () => {
      ;[read] = await store.list(nowMs)
    })
    expect(read?.match).toBeDefined()
    expect(longestMs).toBeLessThan(300)
  })

  it('is compiled once by those who read at the same time', async () => {
    const { store, redis, prefix } = stores()
    const { id } = await createSilenceStore({ redis, prefix }).add(silence(nowMs + 10), nowMs)
    const [[first], [second]] = await Promise.all([store.list(nowMs), store.list(nowMs)])
    expect(first).toMatchObject({ id })
    expect(second).toBe(first)
  })

  it('that did not change is not compiled again', async () => {
    const { store } = stores()
    const { id } = await store.add(silence(nowMs + 10), nowMs)
    const [first] = await store.list(nowMs)
    await store.add(silence(nowMs + 20), nowMs)
    const later = await store.list(nowMs)
    expect(later.find((each) => each.id === id)).toBe(first)
  })

  it('that a later version wrote does not hold here, and stays', async () => {
    const { store, redis, prefix } = stores()
    await redis.hset(silencesKey(prefix), 'new', JSON.stringify({ v: 2, endsAtMs: 0 }))
    expect(await store.list(nowMs)).toEqual([])
    expect(await redis.hexists(silencesKey(prefix), 'new')).toBe(1)
  })

  it('that a later version wrote is listed as such where its times can be read, without its match', async () => {
    const { store, redis, prefix } = stores()
    const later = { ...silence(nowMs + 10), v: 2, match: { symbol: 'فولاد', weather: 'rain' }, by: 'ali' }
    await redis.hset(silencesKey(prefix), 'new', JSON.stringify(later))
    const [read] = await store.list(nowMs)
    expect(read).toMatchObject({ id: 'new', written: later.match, comment: 'why', ofLaterVersion: true })
    expect(read?.match).toBeUndefined()
    expect(await store.list(nowMs + 10)).toEqual([])
    expect(await redis.hexists(silencesKey(prefix), 'new')).toBe(1)
  })
})
