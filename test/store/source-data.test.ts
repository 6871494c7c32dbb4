import { describe, expect, it, vi } from 'vitest'
import { noticeMaker } from '../../src/app/notices/notice-sender.ts'
import { takeOver } from '../../src/app/source/takeover.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { accountKeys, leaseKey, sourceKeys, sourceNamesKey } from '../../src/store/keys.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { createNoticeStore } from '../../src/store/operators/notices.ts'
import { createNameStore } from '../../src/store/source/names.ts'
import { createSourceData, hashAccount } from '../../src/store/source/source-data.ts'
import { createSourceStatus, type PollerStatus } from '../../src/store/source/source-status.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

/** What is kept of a source, when its name changes. */

const server = useRedis()
const toUnsent = noticeMaker(systemClock, () => 'UTC')
const today = new Date().toISOString().slice(0, 10)

function rig() {
  const [prefix, redis] = [freshPrefix(), server.client()]
  const memory = createSourceData(redis, prefix)
  const names = createNameStore(redis, prefix)
  const captured = captureLog()
  const notices = createNoticeStore(redis, prefix)
  const renamed = async () => (await notices.unsent()).map(({ row }) => row['headline'])
  /** What `source` does before it polls, in a config of these sources and accounts. */
  const start = (source: string, config: Readonly<Record<string, string>>) =>
    takeOver({
      source,
      account: undefined,
      accountHashes: () => new Map(Object.entries(config)),
      names,
      sourceData: memory,
      log: captured.log,
      noticeOf: (from, to) => toUnsent({ kind: 'source_renamed', from, to }),
    })
  /** A source that has polled, and stopped. */
  const polled = async (source: string, account: string, units: number, createdMs = Date.now() - 60_000) => {
    const keys = sourceKeys(prefix, source)
    await names.addSource(source, { accountHash: account })
    await redis.hset(keys.meta, { id: `of ${source}`, createdMs })
    await redis.hset(keys.seen, `${source}'s row`, 1)
    await redis.hset(keys.units(today), { used: units, poll: units })
    await redis.pexpire(keys.units(today), 60_000)
    await redis.hset(keys.held, { [source]: '{}' })
    await redis.zadd(keys.minute, 5, `a request of ${source}`)
    await redis.pexpire(keys.minute, 30_000)
    await createSourceStatus({ redis, prefix, source }).save(statusOf(source, createdMs + 10))
  }
  const unitsOf = async (source: string) =>
    Number(await redis.hget(sourceKeys(prefix, source).units(today), 'used'))
  return { prefix, redis, memory, names, captured, renamed, start, polled, unitsOf }
}

function statusOf(source: string, lastPollAtMs: number): PollerStatus {
  const none = {
    lastOkAtMs: null,
    nextPollAtMs: null,
    nextReason: null,
    resetsAtMs: null,
    lastError: null,
    failingSinceMs: null,
  }
  const more = {
    dayStartMs: null,
    lesson: null,
    plan: null,
    doubt: null,
    rules: null,
    lastCompleteWalkAtMs: null,
  }
  const counts = { sinceMs: 1, unitsUsed: 1, unitsPerDay: 9, behind: false }
  return { v: 1, source, state: 'waiting', reason: '', lastPollAtMs, ...none, ...more, ...counts }
}

describe('a new name of an account', () => {
  it('takes over all that is kept, and leaves nothing under the old one', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    expect(await own.start('desk', { desk: 'a' })).toBeUndefined()
    expect(await own.unitsOf('desk')).toBe(40)
    expect(await own.renamed()).toEqual(['Source desk goes on with the data of source main'])
    expect(await own.redis.keys(`*${own.prefix}}:source:main*`)).toEqual([])
    expect(await own.redis.pttl(sourceKeys(own.prefix, 'desk').units(today))).toBeGreaterThan(0)
    expect([...(await own.names.sources())]).toEqual([['desk', { accountHash: 'a' }]])
    // An older version reads this field after a downgrade.
    expect(await own.redis.hgetall(sourceNamesKey(own.prefix))).toEqual({ desk: '{"mark":"a"}' })
    expect(await own.redis.hget(sourceKeys(own.prefix, 'desk').meta, 'id')).toBe('of main')
  })

  it('is told once, by whoever runs next, when the process ends right after it took over', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    const { carryOver } = own.memory
    vi.spyOn(own.memory, 'carryOver').mockImplementationOnce(async (...given) => {
      await carryOver(...given)
      throw new Error('Connection is closed.')
    })
    await expect(own.start('desk', { desk: 'a' })).rejects.toThrow('Connection is closed.')
    expect(await own.start('desk', { desk: 'a' })).toBeUndefined()
    expect(await own.renamed()).toEqual(['Source desk goes on with the data of source main'])
  })

  it('waits while another replica polls under the old one', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    await own.redis.set(leaseKey(own.prefix, 'main'), 'another replica')
    expect(await own.start('desk', { desk: 'a' })).toMatch(/the same account is still polled as source main/)
    await own.redis.del(leaseKey(own.prefix, 'main'))
    expect(await own.start('desk', { desk: 'a' })).toBeUndefined()
    expect(await own.unitsOf('desk')).toBe(40)
  })

  it('waits for a replica that gave the account yet another name at the same moment, and was faster', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    await own.redis.set(leaseKey(own.prefix, 'office'), 'the other replica')
    const { carryOver } = own.memory
    vi.spyOn(own.memory, 'carryOver').mockImplementationOnce(async (from, to, options) => {
      expect(await own.start('office', { office: 'a' })).toBeUndefined()
      return carryOver(from, to, options)
    })
    expect(await own.start('desk', { desk: 'a' })).toMatch(
      /the same account is still polled as source office/,
    )
    expect([await own.unitsOf('office'), await own.memory.exists('desk')]).toEqual([40, false])
    expect([...(await own.names.sources()).keys()]).toEqual(['office'])
    expect(await own.renamed()).toEqual(['Source office goes on with the data of source main'])
  })

  it('takes over nothing of another account, of a source that is in the config, or when it has polled before', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    await own.polled('second', 'b', 5)
    await own.start('desk', { desk: 'c', main: 'a' })
    await own.start('twin', { twin: 'a', main: 'a' })
    await own.start('second', { second: 'a' })
    expect(await own.renamed()).toEqual([])
    expect([await own.unitsOf('main'), await own.unitsOf('second'), await own.unitsOf('twin')]).toEqual([
      40, 5, 0,
    ])
  })

  it('that is not the only one is told of, and starts with the units that the account has spent', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    const config = { one: 'a', two: 'a' }
    await own.start('one', config)
    // It polls at once, and so has a memory of its own when the other one starts.
    await own.redis.hset(sourceKeys(own.prefix, 'one').meta, { id: 'of one', createdMs: Date.now() })
    await own.start('two', config)
    expect(await own.renamed()).toEqual([])
    expect([await own.unitsOf('one'), await own.unitsOf('two'), await own.unitsOf('main')]).toEqual([
      40, 40, 40,
    ])
    expect(
      own.captured.lines.filter(({ msg }) => String(msg).includes('alert-bridge orphans move')),
    ).toHaveLength(2)
  })
})

describe('carrying a memory over by hand', () => {
  it('replaces a young memory, and adds up what was spent and held back', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    await own.polled('desk', 'b', 2)
    await own.redis.set(leaseKey(own.prefix, 'desk'), 'its poller')
    expect(await own.memory.carryOver('main', 'desk', {})).toBe('taken')
    expect(await own.memory.carryOver('main', 'desk', { replace: true })).toBe('done')
    const desk = sourceKeys(own.prefix, 'desk')
    expect(await own.unitsOf('desk')).toBe(42)
    expect(await own.redis.hkeys(desk.seen)).toEqual(["main's row"])
    expect((await own.redis.hkeys(desk.held)).sort()).toEqual(['desk', 'main'])
    expect(await own.redis.zcard(desk.minute)).toBe(2)
    expect(await own.redis.pttl(desk.minute)).toBeGreaterThan(0)
    // Whoever polls begins again with what is there now.
    expect(await own.redis.exists(leaseKey(own.prefix, 'desk'))).toBe(0)
    expect(await own.memory.carryOver('main', 'desk', { replace: true })).toBe('nothing')
  })

  it('is shown and possible too where an earlier version stored its rows by time', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    const keys = sourceKeys(own.prefix, 'main')
    await own.redis.del(keys.seen)
    await own.redis.zadd(keys.seen, Date.now(), 'a row', Date.now(), 'another')
    expect(await own.memory.left('main')).toMatchObject({ rows: 2, held: 1 })
    expect(await own.memory.carryOver('main', 'desk', { replace: true })).toBe('done')
    expect(await own.memory.left('desk')).toMatchObject({ rows: 2 })
    expect(await own.memory.drop('desk')).toBe('done')
  })

  it('counts on what was spent in an account that it leaves with its name', async () => {
    const own = rig()
    await own.polled('main', 'a', 2)
    await own.redis.set(sourceKeys(own.prefix, 'main').spendsIn, 'office')
    await own.redis.hset(accountKeys(own.prefix, 'office').units(today), { used: 5, poll: 5 })
    expect(await own.memory.carryOver('main', 'desk', {})).toBe('done')
    expect(await own.unitsOf('desk')).toBe(7)
  })

  it('replaces none of more than a day, and takes none that is polled', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    await own.polled('desk', 'b', 2, Date.now() - 25 * 3_600_000)
    expect(await own.memory.carryOver('main', 'desk', { replace: true })).toBe('old')
    await own.redis.set(leaseKey(own.prefix, 'main'), 'another replica')
    expect(await own.memory.carryOver('main', 'fresh', {})).toBe('polled')
    expect([await own.memory.drop('main'), await own.memory.left('main')]).toEqual(['polled', undefined])
    await own.redis.del(leaseKey(own.prefix, 'main'))
    expect(await own.memory.left('main')).toMatchObject({ rows: 1, held: 1 })
    expect(await own.memory.drop('main')).toBe('done')
    // A source of this name that comes back today has spent what it has spent.
    const units = sourceKeys(own.prefix, 'main').units(today)
    expect(await own.redis.keys(`*${own.prefix}}:source:main*`)).toEqual([units])
    expect(await own.redis.pttl(units)).toBeGreaterThan(0)
  })
})

describe('a source that was dropped', () => {
  it('has spent what it has spent, by whatever name its account comes back on the same day', async () => {
    const own = rig()
    await own.polled('main', 'a', 40)
    expect(await own.memory.drop('main', 'a')).toBe('done')
    expect([await own.memory.left('main'), await own.unitsOf('main')]).toEqual([undefined, 40])
    await own.start('desk', { desk: 'a' })
    await own.start('other', { desk: 'a', other: 'b' })
    expect(await own.renamed()).toEqual([])
    const used = async (source: string) => {
      const budget = {
        unitsPerDay: 41,
        requestsPerMinute: 9,
        budgetDay: () => ({ key: today, startMs: 0, endMs: Infinity }),
      }
      const ledger = createLedger({ redis: own.redis, prefix: own.prefix, source, ...budget })
      return (await ledger.reserve({ cost: 1, purpose: 'poll' })).unitsUsed
    }
    expect([await used('desk'), await used('other')]).toEqual([41, 1])
  })

  it('stands in the way of no other that goes on under a new name', async () => {
    const own = rig()
    await own.polled('first', 'a', 10)
    await own.memory.drop('first', 'a')
    await own.polled('main', 'a', 40)
    await own.start('desk', { desk: 'a' })
    expect(await own.renamed()).toEqual(['Source desk goes on with the data of source main'])
  })
})

it('an account is known by address and token, and neither can be read from what is kept', () => {
  const known = hashAccount('p', 'https://api.example.com/', 'secret-token')
  expect(known).toBe(hashAccount('p', 'https://API.example.com', 'secret-token'))
  expect(known).not.toContain('secret')
  const others = [
    hashAccount('q', 'https://api.example.com', 'secret-token'),
    hashAccount('p', 'https://api.example.org', 'secret-token'),
    hashAccount('p', 'https://api.example.com', 'other-token'),
  ]
  expect(new Set([known, ...others]).size).toBe(4)
})
