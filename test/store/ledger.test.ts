import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Clock } from '../../src/lib/clock.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import type { BudgetDay } from '../../src/schedule/schedule.ts'
import { accountKeys, sourceKeys } from '../../src/store/keys.ts'
import { createKnownUnits } from '../../src/store/ledger/known-units.ts'
import { createLedger, type Ledger, type Reservation } from '../../src/store/ledger/ledger.ts'
import { resetGuardMs } from '../../src/store/ledger/ledger-days.ts'
import { tryLease } from '../../src/store/source/lease.ts'
import { clockAt } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, startRedis, useRedis } from '../support/redis.ts'

const server = useRedis({ aof: true })
const soon = { timeout: 10_000, interval: 20 }
const dayMs = 86_400_000
/** Noon: far from any reset. */
const noonMs = Date.UTC(2026, 10, 21, 12)

describe('a purpose with a share of its own', () => {
  it('ends at its share, over both sources of an account, and leaves the rest to others', async () => {
    const redis = server.client()
    const prefix = freshPrefix()
    const budget = {
      unitsPerDay: 10,
      requestsPerMinute: 100,
      budgetDay: utcDay,
      clock: clockAt(() => noonMs),
    }
    const [main, spare] = ['main', 'spare'].map((source) =>
      createLedger({ redis, prefix, source, account: 'desk', ...budget }),
    ) as [Ledger, Ledger]
    const lookup = { purpose: 'context', purposeUnitsMax: 4, leaveUnits: 1 } as const
    const asked = await Promise.all([main, spare, main].map((each) => each.reserve({ ...lookup, cost: 2 })))
    expect(asked.map(({ ok }) => ok).sort()).toEqual([false, true, true])
    expect(await spare.reserve({ ...lookup, cost: 1 })).toMatchObject({
      ...{ ok: false, limit: 'budget', held: false, ofPurpose: true, purposeUnitsLeft: 0, unitsUsed: 4 },
      retryAtMs: utcDay(noonMs).endMs,
    })
    // One that costs more than is left is refused, too.
    expect(await main.reserve({ ...lookup, purposeUnitsMax: 6, cost: 5 })).toMatchObject({
      ...{ ok: false, limit: 'budget', ofPurpose: true, purposeUnitsLeft: 2, unitsUsed: 4 },
    })
    expect(await main.reserve({ cost: 5, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 9 })
    const later = { ...lookup, purposeUnitsMax: 10, cost: 1 }
    expect(await main.reserve(later)).toEqual({
      ...{ ok: false, limit: 'budget', held: false, unitsUsed: 9, retryAtMs: utcDay(noonMs).endMs },
    })
    expect(await main.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 10 })
  })
})

describe("the API's own day", () => {
  it('has its last units for polls, too: what is no poll waits for its reset', async () => {
    const { ledger } = given()
    const resetMs = noonMs + 3_600_000
    await ledger.countApiDay({ atMs: resetMs, used: 995 })
    for (const purpose of ['context', 'api', 'rules'] as const)
      expect(await ledger.reserve({ cost: 2, purpose, leaveUnits: 4 })).toMatchObject({
        ...{ ok: false, limit: 'budget', held: false, unitsUsed: 0, retryAtMs: resetMs },
      })
    expect(await ledger.reserve({ cost: 1, purpose: 'context', leaveUnits: 4 })).toMatchObject({ ok: true })
    for (const purpose of ['poll', 'walk'] as const)
      expect(await ledger.reserve({ cost: 2, purpose, leaveUnits: 4 })).toMatchObject({ ok: true })
  })

  it('is not overspent by polls either: two sources of the account may take its last unit at the same time', async () => {
    const { ledger } = given()
    const resetMs = noonMs + 60_000
    await ledger.countApiDay({ atMs: resetMs, used: 999 })
    const taken = await Promise.all([1, 2].map(() => ledger.reserve({ cost: 1, purpose: 'poll' })))
    expect(taken).toMatchObject([
      { ok: true, apiDayUsed: 1_000 },
      { ok: false, limit: 'budget', held: false, retryAtMs: resetMs },
    ])
  })

  it('has all its units again after its reset', async () => {
    const { ledger, clock } = given()
    await ledger.countApiDay({ atMs: noonMs + 1_000, used: 1_000 })
    const spare = { cost: 2, purpose: 'context', leaveUnits: 4 } as const
    expect(await ledger.reserve(spare)).toMatchObject({ ok: false, limit: 'budget' })
    clock.nowMs += 2_000
    expect(await ledger.reserve(spare)).toMatchObject({ ok: true, unitsUsed: 2, apiDayUsed: 2 })
  })
})

describe('an account of two sources', () => {
  const day = utcDay(noonMs)

  function two(requestsPerMinute = 5) {
    const redis = server.client()
    const prefix = freshPrefix()
    const budget = { unitsPerDay: 7, requestsPerMinute, budgetDay: utcDay, clock: clockAt(() => noonMs) }
    const knownUnits = createKnownUnits()
    const ledger = (source: string, account?: string) =>
      createLedger({
        ...{ redis, prefix, source, ...budget, knownUnits },
        ...(account === undefined ? {} : { account }),
      })
    return { redis, prefix, ledger }
  }

  it('counts on from what either of them knew when Redis has lost the count', async () => {
    const { redis, prefix, ledger } = two()
    const [main, spare] = [ledger('main', 'desk'), ledger('spare', 'desk')]
    for (const each of [main, spare]) await each.reserve({ cost: 2, purpose: 'poll' })
    await redis.del(accountKeys(prefix, 'desk').units(day.key))
    expect(await main.reserve({ cost: 2, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 6 })
    expect(await spare.reserve({ cost: 2, purpose: 'poll' })).toMatchObject({ ok: false, limit: 'budget' })
  })

  it('spends from one day and one minute, and waits for one 429', async () => {
    const { ledger } = two()
    const [main, spare, other] = [ledger('main', 'desk'), ledger('spare', 'desk'), ledger('other')]
    await main.reserve({ cost: 4, purpose: 'poll' })
    expect(await spare.reserve({ cost: 3, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 7 })
    expect(await main.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: false, limit: 'budget' })
    expect(await spare.used(day)).toMatchObject({ used: 7 })
    expect(await other.used(day)).toMatchObject({ used: 0 })
    await spare.hold('minute', 30_000)
    expect(await main.currentHold()).toMatchObject({ limit: 'minute' })
    expect(await other.currentHold()).toBeUndefined()
  })

  it('counts five requests a minute, whoever makes them', async () => {
    const { ledger } = two()
    const ledgers = [ledger('main', 'desk'), ledger('spare', 'desk')]
    const asked = await Promise.all(
      [0, 1, 0, 1, 0, 1].map((who) => ledgers[who]?.reserve({ cost: 1, purpose: 'poll' })),
    )
    expect(asked.filter((each) => each?.ok)).toHaveLength(5)
  })

  it('takes over what each of them had spent alone, once', async () => {
    const { ledger, redis, prefix } = two()
    await ledger('main').reserve({ cost: 3, purpose: 'poll' })
    await ledger('main').hold('budget', 60_000)
    await ledger('spare').reserve({ cost: 2, purpose: 'context' })
    for (let start = 0; start < 2; start += 1) {
      const joined = [ledger('main', 'desk'), ledger('spare', 'desk')]
      for (const each of joined) await each.currentHold()
      expect(await joined[0]?.used(day)).toEqual({ used: 5, byPurpose: { poll: 3, context: 2 } })
      expect(await joined[1]?.currentHold()).toMatchObject({ limit: 'budget' })
    }
    const keys = sourceKeys(prefix, 'main')
    expect(await redis.exists(keys.units(day.key), keys.minute, keys.hold)).toBe(0)
    expect(await redis.pttl(accountKeys(prefix, 'desk').units(day.key))).toBeGreaterThan(2 * dayMs)
  })

  it('grants no unit twice to a source that leaves it, goes to another one or comes back', async () => {
    const { ledger } = two(100)
    const spend = async (source: string, account: string | undefined, cost: number) => {
      const reserved = await ledger(source, account).reserve({ cost, purpose: 'poll' })
      return [reserved.ok, reserved.unitsUsed]
    }
    expect(await spend('main', 'desk', 1)).toEqual([true, 1])
    expect(await spend('spare', 'desk', 1)).toEqual([true, 2])
    expect(await spend('main', undefined, 1)).toEqual([true, 3])
    expect(await spend('main', 'desk', 1)).toEqual([true, 4])
    expect(await spend('main', 'office', 1)).toEqual([true, 5])
    expect(await spend('spare', 'office', 1)).toEqual([true, 6])
    expect(await spend('main', 'desk', 1)).toEqual([true, 7])
    expect(await spend('main', undefined, 1)).toEqual([false, 7])
  })

  it('grants none twice where replicas with the config of before and after poll in turn', async () => {
    const { ledger } = two()
    const [before, after] = [ledger('main'), ledger('main', 'desk')]
    await after.currentHold()
    for (const each of [before, after, before, after])
      expect(await each.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
    expect(await before.reserve({ cost: 3, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 7 })
    expect(await after.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: false, limit: 'budget' })
  })

  it('is not overspent where both ask at once', async () => {
    const { ledger } = two(100)
    const asked = [ledger('main'), ledger('main', 'desk')].map(async (each) => {
      let granted = 0
      for (let times = 0; times < 20; times += 1)
        if ((await each.reserve({ cost: 1, purpose: 'poll' })).ok) granted += 1
      return granted
    })
    const [before = 0, after = 0] = await Promise.all(asked)
    expect(before + after).toBe(7)
  })

  it('is not overspent while one of its sources counts under the new name already, and the other under the old', async () => {
    const { ledger } = two(100)
    const spare = ledger('spare', 'desk')
    await ledger('main', 'desk').reserve({ cost: 1, purpose: 'poll' })
    await spare.reserve({ cost: 3, purpose: 'poll' })
    const renamed = ledger('main', 'office')
    expect(await renamed.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 5 })
    expect(await spare.reserve({ cost: 2, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 7 })
    expect(await renamed.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: false, limit: 'budget' })
    expect(await ledger('spare', 'office').used(day)).toEqual({ used: 7, byPurpose: { poll: 7 } })
  })

  it('is not overspent by all who ask at once in the middle of a rename, each by a config and a connection of its own', async () => {
    for (let round = 0; round < 3; round += 1) {
      const prefix = freshPrefix()
      const budget = { unitsPerDay: 60, requestsPerMinute: 1_000, budgetDay: utcDay }
      const ledger = (source: string, account: string) =>
        createLedger({
          ...{ redis: server.client(), prefix, source, account, ...budget },
          clock: clockAt(() => noonMs),
        })
      for (const source of ['main', 'spare']) await ledger(source, 'desk').currentHold()
      const asked = ['main', 'spare'].flatMap((source) =>
        ['desk', 'office'].map(async (account) => {
          const own = ledger(source, account)
          let granted = 0
          for (let times = 0; times < 40; times += 1) {
            const reserved = await own.reserve({ cost: 1, purpose: 'poll' }).catch(() => undefined)
            if (reserved?.ok) granted += 1
          }
          return granted
        }),
      )
      const granted = (await Promise.all(asked)).reduce((sum, each) => sum + each, 0)
      expect(granted).toBe(60)
    }
  })

  it('counts each unit once, wherever the source goes in a day', async () => {
    const { ledger } = two(100)
    for (const account of [undefined, 'desk', 'office', 'desk', undefined, 'office'])
      await ledger('main', account).reserve({ cost: 1, purpose: 'poll' })
    for (const account of ['office', 'desk', undefined])
      expect(await ledger('main', account).used(day)).toEqual({ used: 6, byPurpose: { poll: 6 } })
  })
})

describe('the day', () => {
  it('is counted unit by unit, by purpose, and ends at its limit', async () => {
    const { ledger } = given({ unitsPerDay: 7 })
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toEqual({
      ...{ ok: true, request: expect.any(String) },
      unitsUsed: 1,
      unitsLeft: 6,
    })
    expect(await ledger.reserve({ cost: 5, purpose: 'context' })).toEqual({
      ...{ ok: true, request: expect.any(String) },
      unitsUsed: 6,
      unitsLeft: 1,
    })
    expect(await ledger.reserve({ cost: 2, purpose: 'context' })).toEqual({
      ok: false,
      limit: 'budget',
      held: false,
      retryAtMs: utcDay(noonMs).endMs,
      unitsUsed: 6,
    })
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true, unitsLeft: 0 })
    expect(await ledger.used(utcDay(noonMs))).toEqual({ used: 7, byPurpose: { poll: 2, context: 5 } })
  })

  it('leaves units to others when asked to', async () => {
    const { ledger } = given({ unitsPerDay: 10 })
    expect(await ledger.reserve({ cost: 5, purpose: 'context', leaveUnits: 5 })).toMatchObject({ ok: true })
    expect(await ledger.reserve({ cost: 1, purpose: 'context', leaveUnits: 5 })).toMatchObject({
      limit: 'budget',
    })
    expect(await ledger.reserve({ cost: 1, purpose: 'context', leaveUnits: 50 })).toMatchObject({
      limit: 'budget',
    })
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
  })

  it('begins anew at the reset, and is forgotten after days', async () => {
    const { ledger, clock, redis, keys } = given({ unitsPerDay: 1 })
    await ledger.reserve({ cost: 1, purpose: 'poll' })
    clock.nowMs += dayMs
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 1 })
    expect(await redis.pttl(keys.units('2026-11-21'))).toBeGreaterThan(2.9 * dayMs)
    expect(await ledger.used(utcDay(noonMs - dayMs))).toEqual({ used: 0, byPurpose: {} })
  })

  it('is charged on both sides of the reset by a call that the feed may count on either', async () => {
    const { ledger, clock } = given({ unitsPerDay: 3 })
    const resetMs = utcDay(noonMs).endMs
    clock.nowMs = resetMs - 1
    await ledger.reserve({ cost: 1, purpose: 'poll' })
    clock.nowMs = resetMs + 1
    await ledger.reserve({ cost: 1, purpose: 'poll' })
    expect(await ledger.used(utcDay(resetMs - 1))).toMatchObject({ used: 2 })
    expect(await ledger.used(utcDay(resetMs))).toMatchObject({ used: 2 })
  })

  it('is not spent again where Redis forgets what was spent, also some of it', async () => {
    const { ledger, redis, keys } = given({ unitsPerDay: 7 })
    const units = keys.units('2026-11-21')
    await ledger.reserve({ cost: 2, purpose: 'poll' })
    await redis.copy(units, `${units}:replica`)
    await ledger.reserve({ cost: 3, purpose: 'poll' })
    await redis.rename(`${units}:replica`, units)
    expect(await ledger.used(utcDay(noonMs))).toMatchObject({ used: 5 })
    expect(await ledger.reserve({ cost: 1, purpose: 'context', leaveUnits: 2 })).toMatchObject({ ok: false })
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 6 })
    await redis.del(units)
    expect(await ledger.reserve({ cost: 2, purpose: 'poll' })).toMatchObject({ ok: false, limit: 'budget' })
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 7 })
    expect(await redis.hget(units, 'used')).toBe('7')
  })

  it.each([
    ['asked what is used', (standby: Ledger) => standby.used(utcDay(noonMs))],
    ['was refused', (standby: Ledger) => standby.reserve({ cost: 9, purpose: 'poll' })],
  ])('is not spent again by a replica that %s before Redis forgot it', async (_how, ask) => {
    const { ledger, redis, prefix, clock, keys } = given({ unitsPerDay: 7 })
    const standby = ledgerOf(redis, prefix, clock, { unitsPerDay: 7 })
    await ledger.reserve({ cost: 5, purpose: 'poll' })
    await ask(standby)
    await redis.del(keys.units('2026-11-21'))
    expect(await standby.reserve({ cost: 3, purpose: 'poll' })).toMatchObject({ ok: false, limit: 'budget' })
    expect(await standby.reserve({ cost: 2, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 7 })
  })

  it('that is spent keeps calls away until its end is certain', async () => {
    const { ledger, clock } = given({ unitsPerDay: 1 })
    const resetMs = utcDay(noonMs).endMs
    await ledger.reserve({ cost: 1, purpose: 'poll' })
    clock.nowMs = resetMs + 1
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({
      limit: 'budget',
      retryAtMs: resetMs + resetGuardMs,
    })
    clock.nowMs = resetMs + resetGuardMs
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
  })

  it('is never overspent by many who ask at once on their own connections', async () => {
    const { prefix, clock } = given()
    const askers = Array.from({ length: 6 }, () =>
      ledgerOf(server.client(), prefix, clock, { unitsPerDay: 100, requestsPerMinute: 10_000 }),
    )
    const answers = await Promise.all(
      askers.flatMap((ledger) =>
        Array.from({ length: 40 }, () => ledger.reserve({ cost: 1, purpose: 'poll' })),
      ),
    )
    expect(answers.filter(({ ok }) => ok)).toHaveLength(100)
    expect(await askers[0]?.used(utcDay(noonMs))).toMatchObject({ used: 100 })
  })
})

describe('units since an instant', () => {
  it('are those of its half hour and later, over the days of the config', async () => {
    const { ledger, clock } = given()
    const fromMs = utcDay(noonMs).startMs - 3_600_000
    const spend = async (atMs: number) => {
      clock.nowMs = atMs
      await ledger.reserve({ cost: 1, purpose: 'poll' })
    }
    await spend(fromMs - 60_000)
    for (const hours of [0, 0.4, 2, 9]) await spend(fromMs + hours * 3_600_000 + 1_000)
    expect(await ledger.usedSince(fromMs + 1_100)).toBe(4)
    expect(await ledger.usedSince(fromMs - 1_100)).toBe(4)
    expect((await ledger.used(utcDay(clock.nowMs))).byPurpose).toEqual({ poll: 2 })
  })

  it('count of a day that the config names anew, in another time zone or with another hour of the reset', async () => {
    const options = { redis: server.client(), prefix: freshPrefix(), source: 'main', unitsPerDay: 10 }
    const clock = clockAt(() => nowMs)
    // Three hours and a half before the date changes at UTC, a day begins in Tehran; its date is that of the next day.
    const resetMs = utcDay(noonMs).endMs - 12_600_000
    let nowMs = resetMs - 60_000
    const ledgerOf = (budgetDay: (atMs: number) => BudgetDay) =>
      createLedger({ ...options, clock, budgetDay, requestsPerMinute: 240 })
    const spend = async (ledger: Ledger, ...hoursAfter: number[]) => {
      for (const hours of hoursAfter) {
        nowMs = resetMs + hours * 3_600_000
        await ledger.reserve({ cost: 1, purpose: 'poll' })
      }
    }
    const tehranDay = (atMs: number): BudgetDay => {
      const { key, startMs, endMs } = utcDay(atMs + 12_600_000)
      return { key, startMs: startMs - 12_600_000, endMs: endMs - 12_600_000 }
    }
    await spend(ledgerOf(utcDay), -1, 0.1, 1, 2)
    const [there, back] = [ledgerOf(tehranDay), ledgerOf(utcDay)]
    expect((await there.used(tehranDay(nowMs))).used).toBe(3)
    await spend(there, 2.5)
    expect((await there.used(tehranDay(nowMs))).used).toBe(4)
    expect((await back.used(utcDay(nowMs))).used).toBe(5)
    // The last five of ten.
    await spend(back, 3, 3, 3, 3, 3)
    expect(await back.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: false, unitsUsed: 10 })
  })

  it.each([
    ['spends', async (ledger: Ledger) => void (await ledger.reserve({ cost: 1, purpose: 'poll' }))],
    ['is asked what is used', async (ledger: Ledger) => void (await ledger.used(laterDay(noonMs)))],
  ])(
    'count also where a replica that names the day otherwise goes on after another %s',
    async (_what, first) => {
      const { ledger: old, redis, prefix, clock } = given({ unitsPerDay: 10 })
      const anew = ledgerOf(redis, prefix, clock, { unitsPerDay: 10, budgetDay: laterDay })
      await first(anew)
      const own = (await anew.used(laterDay(noonMs))).used
      for (let units = own; units < 6; units += 1) await old.reserve({ cost: 1, purpose: 'poll' })
      expect((await anew.used(laterDay(noonMs))).used).toBe(6)
      for (let units = 6; units < 9; units += 1) await old.reserve({ cost: 1, purpose: 'poll' })
      expect(await anew.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true, unitsUsed: 10 })
      for (const ledger of [anew, old])
        expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({
          ok: false,
          limit: 'budget',
        })
    },
  )

  it('count also where two replicas name days that begin most of a day apart by dates that differ by two', async () => {
    const sunday = Date.parse('2026-11-01T21:30:00Z')
    const [east, west] = [
      { timeZone: 'Australia/Sydney', resetsAt: '00:00' },
      { timeZone: 'America/New_York', resetsAt: '17:00' },
    ].map((reset) => (nowMs: number) => budgetDay(nowMs, reset)) as [typeof utcDay, typeof utcDay]
    expect([east, west].map((day) => day(sunday).key)).toEqual(['2026-11-02', '2026-10-31'])
    const [redis, prefix, clock] = [server.client(), freshPrefix(), clockAt(() => sunday)]
    const [old, anew] = [east, west].map((day) =>
      createLedger({
        ...{ redis, prefix, source: 'main', unitsPerDay: 5, requestsPerMinute: 200, clock },
        budgetDay: day,
      }),
    ) as [Ledger, Ledger]
    await old.reserve({ cost: 4, purpose: 'poll' })
    expect((await anew.used(west(sunday))).used).toBe(4)
    expect(await anew.reserve({ cost: 2, purpose: 'poll' })).toMatchObject({ ok: false, limit: 'budget' })
  })

  it('are unknown at a crooked hour, and where nothing was spent in the first one', async () => {
    const { ledger, clock } = given()
    await ledger.reserve({ cost: 1, purpose: 'poll' })
    expect(await ledger.usedSince(clock.nowMs - 600_000)).toBeUndefined()
    expect(await ledger.usedSince(Math.floor(clock.nowMs / 3_600_000 - 3) * 3_600_000)).toBeUndefined()
  })

  it('are looked for in the days of 48 hours, whatever days there are', async () => {
    // It never leads to the day before.
    const budgetDay = () => ({ key: 'always', startMs: noonMs - 3_600_000, endMs: noonMs + 3_600_000 })
    const ledger = createLedger({
      ...{ redis: server.client(), prefix: freshPrefix(), source: 'main', clock: clockAt(() => noonMs) },
      ...{ unitsPerDay: 10, requestsPerMinute: 240, budgetDay },
    })
    expect(await ledger.usedSince(noonMs - dayMs)).toBeUndefined()
  })
})

describe('the minute', () => {
  it('is never exceeded over all replicas, whatever the clocks of the machines say', async () => {
    const { prefix, clock } = given()
    const late = { ...clock, nowMs: clock.nowMs + 3_600_000 }
    const limits = { unitsPerDay: 1_000, requestsPerMinute: 20 }
    const one = ledgerOf(server.client(), prefix, clock, limits)
    const other = ledgerOf(server.client(), prefix, late, limits)
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 ? one : other).reserve({ cost: 1, purpose: 'poll' }),
      ),
    )
    expect(answers.filter(({ ok }) => ok)).toHaveLength(20)
    expect(answers.filter((answer) => !answer.ok && answer.limit === 'minute')).toHaveLength(30)
  })

  it('is not spent to the end by a walk: a tenth is left for the first page', async () => {
    const { ledger } = given({ requestsPerMinute: 20 })
    const walk = () => ledger.reserve({ cost: 1, purpose: 'walk', leaveFresh: true })
    for (let call = 0; call < 18; call += 1) expect(await walk()).toMatchObject({ ok: true })
    expect(await walk()).toMatchObject({ ok: false, limit: 'minute' })
    for (let call = 0; call < 2; call += 1)
      expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: false, limit: 'minute' })
  })

  it.each([2, 3, 12])(
    'is not spent to the end by lookups, also where it has %d requests',
    async (requests) => {
      const { ledger } = given({ requestsPerMinute: requests })
      for (const purpose of ['context', 'api'] as const)
        for (let call = 0; call < requests; call += 1)
          await ledger.reserve({ cost: 1, purpose, leaveFresh: true })
      expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
    },
  )

  it.each([
    [2, 1],
    [3, 2],
    [4, 2],
    [12, 4],
    [200, 67],
  ])('of %d requests has at most %d where one is for what no poll waits for', async (requests, most) => {
    const { ledger } = given({ requestsPerMinute: requests })
    const taken = async (purpose: 'sweep' | 'history') => {
      const call = () => ledger.reserve({ cost: 1, purpose, leaveFresh: true })
      let calls = 0
      while ((await call()).ok) calls += 1
      return calls
    }
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
    expect([await taken('sweep'), await taken('history')]).toEqual([most - 1, 0])
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
  })

  it('slides: a request is free again a minute after the one that stood in its way', async () => {
    const { ledger, redis, keys, clock } = given({ requestsPerMinute: 3 })
    const [seconds] = await redis.time()
    const redisMs = Number(seconds) * 1_000
    // Three requests of the last minute: the oldest falls out in 20 s.
    for (const ageMs of [40_000, 30_000, 1_000]) await redis.zadd(keys.minute, redisMs - ageMs, `${ageMs}`)
    const refused = await ledger.reserve({ cost: 1, purpose: 'poll' })
    expect(waitOf(refused, clock.nowMs)).toBeGreaterThan(18_000)
    expect(waitOf(refused, clock.nowMs)).toBeLessThan(21_500)
    expect(await ledger.used(utcDay(noonMs))).toMatchObject({ used: 0 })
    await redis.zadd(keys.minute, redisMs - 61_000, '40000')
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
  })

  it('of a request begins again when its call ends, also where it had passed: the API may have counted it as late as that', async () => {
    const { ledger, redis, keys, clock } = given({ requestsPerMinute: 2 })
    const taken = await Promise.all([1, 2].map(() => ledger.reserve({ cost: 1, purpose: 'poll' })))
    const age = (ms: number) =>
      Promise.all(taken.map((each) => redis.zincrby(keys.minute, String(-ms), each.ok ? each.request : '')))
    await age(59_000)
    const again = () => ledger.reserve({ cost: 1, purpose: 'poll' })
    expect(waitOf(await again(), clock.nowMs)).toBeLessThan(1_500)
    for (const each of taken) if (each.ok) ledger.ended(each)
    expect(waitOf(await again(), clock.nowMs)).toBeGreaterThan(58_000)
    await redis.del(keys.minute)
    for (const each of taken) if (each.ok) ledger.ended(each)
    expect(waitOf(await again(), clock.nowMs)).toBeGreaterThan(58_000)
    expect(await redis.pttl(keys.minute)).toBeGreaterThan(58_000)
    expect(await ledger.used(utcDay(noonMs))).toMatchObject({ used: 2 })
  })

  it('counts requests, not units', async () => {
    const { ledger } = given({ requestsPerMinute: 2 })
    expect(await ledger.reserve({ cost: 25, purpose: 'context' })).toMatchObject({ ok: true })
    expect(await ledger.reserve({ cost: 25, purpose: 'context' })).toMatchObject({ ok: true })
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: false, limit: 'minute' })
  })
})

describe('a hold', () => {
  it('keeps every replica away until it ends, and is no unit', async () => {
    const { ledger, prefix, clock } = given()
    await ledger.hold('minute', 30_000)
    const other = ledgerOf(server.client(), prefix, clock, {})
    const refused = await other.reserve({ cost: 1, purpose: 'poll' })
    expect(refused).toMatchObject({ ok: false, limit: 'minute', held: true, unitsUsed: 0 })
    expect(waitOf(refused, clock.nowMs)).toBeGreaterThan(29_000)
    expect(waitOf(refused, clock.nowMs)).toBeLessThanOrEqual(30_500)
    expect(await other.currentHold()).toMatchObject({ limit: 'minute' })
  })

  it('ends by itself', async () => {
    const { ledger, redis, keys } = given()
    await ledger.hold('minute', 1_000)
    await redis.pexpire(keys.hold, 20)
    await expect.poll(() => redis.exists(keys.hold)).toBe(0)
    expect(await ledger.currentHold()).toBeUndefined()
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
  })

  it('is made longer by a later one, never shorter', async () => {
    const { ledger, clock } = given()
    await ledger.hold('budget', 60_000)
    await ledger.hold('minute', 1_000)
    expect(await ledger.currentHold()).toMatchObject({ limit: 'budget' })
    await ledger.hold('minute', 90_000)
    const hold = await ledger.currentHold()
    expect(hold?.limit).toBe('minute')
    expect((hold?.untilMs ?? 0) - clock.nowMs).toBeGreaterThan(80_000)
  })
})

describe('how long a 429 keeps everybody away', () => {
  const hourMs = 3_600_000
  it.each([
    ['what it says', 'minute', 7_000, 7_000],
    ['not less than a second', 'minute', 0, 1_000],
    ['no longer than a budget day, whatever it says', 'minute', 99_999_999_999_000, 25 * hourMs],
    ['a minute where it says nothing', 'minute', undefined, 60_000],
    ['an hour at most where the budget is spent and it says nothing', 'budget', undefined, hourMs],
  ] as const)('is %s', async (_what, limit, askedMs, wantedMs) => {
    const { ledger, clock, redis, keys, prefix } = given()
    const heldMs = await ledger.hold(limit, askedMs)
    expect(heldMs).toBeGreaterThanOrEqual(wantedMs)
    expect(heldMs).toBeLessThan(wantedMs + 600)
    // As the others read it, and as it stands in Redis.
    const seen = await ledgerOf(server.client(), prefix, clock, {}).currentHold()
    expect((seen?.untilMs ?? 0) - clock.nowMs).toBeLessThanOrEqual(Math.ceil(heldMs))
    expect(await redis.pttl(keys.hold)).toBeLessThanOrEqual(Math.ceil(heldMs))
  })

  it('is until the day has surely begun where the budget is spent and it says nothing', async () => {
    const { ledger, clock } = given()
    clock.nowMs = utcDay(noonMs).endMs - 60_000
    const waitMs = await ledger.hold('budget', undefined)
    expect(waitMs).toBeGreaterThanOrEqual(60_000 + resetGuardMs)
  })

  it('is as long for one that an older version stored without end', async () => {
    const { ledger, clock, redis, keys } = given()
    const year5195Ms = Date.UTC(5195, 0)
    await redis.hset(keys.hold, { limit: 'minute', untilMs: year5195Ms, forMs: year5195Ms - noonMs })
    await redis.pexpireat(keys.hold, year5195Ms)
    const refused = await ledger.reserve({ cost: 1, purpose: 'poll' })
    expect(refused).toMatchObject({ ok: false, held: true })
    expect(waitOf(refused, clock.nowMs)).toBeLessThanOrEqual(25 * hourMs)
    expect(await redis.pttl(keys.hold)).toBeLessThanOrEqual(25 * hourMs)
    expect((await ledger.currentHold())?.untilMs).toBeLessThanOrEqual(clock.nowMs + 25 * hourMs)
  })
})

describe("Redis' clock, set back by an hour", () => {
  it('leaves of a hold no more than its length', async () => {
    const { ledger, redis, keys } = given()
    await ledger.hold('minute', 1_000)
    await redis.hset(keys.hold, 'forMs', 300)
    await redis.hincrby(keys.hold, 'untilMs', 3_600_000)
    await redis.pexpire(keys.hold, 3_600_000)
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: false, held: true })
    await expect.poll(() => ledger.currentHold()).toBeUndefined()
    expect(await ledger.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ ok: true })
  })

  it('leaves of a full minute no more than a minute', async () => {
    const { ledger, clock, redis, keys } = given({ requestsPerMinute: 3 })
    for (let call = 0; call < 3; call += 1) await ledger.reserve({ cost: 1, purpose: 'poll' })
    for (const member of await redis.zrange(keys.minute, '0', '-1'))
      await redis.zincrby(keys.minute, 3_600_000, member)
    const answer = await ledger.reserve({ cost: 1, purpose: 'poll' })
    expect(answer).toMatchObject({ ok: false, limit: 'minute' })
    expect(waitOf(answer, clock.nowMs)).toBeLessThanOrEqual(61_000)
    expect(await redis.zrange(keys.minute, '0', '-1')).toHaveLength(3)
  })
})

describe('a hold that Redis could not be told of', () => {
  it('is kept by who was refused, and told to all once Redis is back', async () => {
    const own = await startRedis()
    onTestFinished(() => own.dispose())
    const { prefix, clock } = given()
    const refused = ledgerOf(own.client(), prefix, clock, {})
    await own.kill9()
    await refused.hold('budget', 60_000)
    await own.start()
    await expect
      .poll(() => refused.reserve({ cost: 1, purpose: 'poll' }).catch(() => undefined), soon)
      .toMatchObject({
        limit: 'budget',
        held: true,
      })
    const other = ledgerOf(own.client(), prefix, clock, {})
    expect(await other.reserve({ cost: 1, purpose: 'poll' })).toMatchObject({ held: true, unitsUsed: 0 })
  })

  it('outlasts a shorter one that Redis could not be told of either', async () => {
    const own = await startRedis()
    onTestFinished(() => own.dispose())
    const { prefix, clock } = given()
    const ledger = ledgerOf(own.client(), prefix, clock, {})
    await own.kill9()
    await ledger.hold('budget', 3_600_000)
    await ledger.hold('minute', 1_000)
    await own.start()
    await expect
      .poll(() => ledger.currentHold().catch(() => undefined), soon)
      .toMatchObject({ limit: 'budget' })
  })

  it.each([-dayMs, dayMs])(
    'lasts as long as it was meant to where the wall clock is set by %d ms',
    async (byMs) => {
      const own = await startRedis()
      onTestFinished(() => own.dispose())
      const { prefix, clock } = given()
      const ledger = ledgerOf(own.client(), prefix, { ...clock, now: () => clock.nowMs + aheadMs }, {})
      let aheadMs = 0
      await own.kill9()
      await ledger.hold('minute', 60_000)
      aheadMs = byMs
      await own.start()
      await expect.poll(() => ledger.currentHold().catch(() => undefined), soon).toBeDefined()
      const { untilMs = 0 } = (await ledger.currentHold()) ?? {}
      expect(untilMs - clock.nowMs - byMs).toBeGreaterThan(30_000)
      // Replicas come back a little apart.
      expect(untilMs - clock.nowMs - byMs).toBeLessThanOrEqual(61_000)
    },
  )
})

describe('a poller without the lease', () => {
  it('gets nothing reserved, whatever it believes', async () => {
    const { ledger, redis, prefix } = given()
    const lease = await tryLease({ redis, prefix, source: 'main', log: captureLog().log })
    const leaseToken = lease?.token ?? ''
    expect(await ledger.reserve({ cost: 1, purpose: 'poll', leaseToken })).toMatchObject({ ok: true })
    await lease?.release()
    expect(await ledger.reserve({ cost: 1, purpose: 'poll', leaseToken })).toEqual({
      ok: false,
      limit: 'lease',
      unitsUsed: 1,
    })
  })
})

describe('what was spent', () => {
  afterEach(() => (server.running ? undefined : server.start()))

  it('and the hold survive a crash of Redis that keeps its file', async () => {
    const { ledger, redis, prefix, clock } = given()
    await ledger.reserve({ cost: 3, purpose: 'walk' })
    await ledger.hold('budget', 600_000)
    await redis.config('SET', 'appendfsync', 'always')
    await ledger.reserve({ cost: 1, purpose: 'walk' })
    await server.kill9()
    await server.start()
    const after = ledgerOf(server.client(), prefix, clock, {})
    expect(await after.used(utcDay(noonMs))).toMatchObject({ used: 3 })
    expect(await after.currentHold()).toMatchObject({ limit: 'budget' })
  })
})

interface TestClock extends Clock {
  nowMs: number
}

function given(limits: { unitsPerDay?: number; requestsPerMinute?: number } = {}) {
  const prefix = freshPrefix()
  const redis = server.client()
  const clock: TestClock = { nowMs: noonMs, ...clockAt(() => clock.nowMs) }
  return {
    prefix,
    redis,
    clock,
    keys: sourceKeys(prefix, 'main'),
    ledger: ledgerOf(redis, prefix, clock, limits),
  }
}

function ledgerOf(
  redis: ReturnType<typeof server.client>,
  prefix: string,
  clock: TestClock,
  limits: { unitsPerDay?: number; requestsPerMinute?: number; budgetDay?: typeof utcDay },
): Ledger {
  const { unitsPerDay = 1_000, requestsPerMinute = 200, budgetDay = utcDay } = limits
  return createLedger({
    redis,
    prefix,
    source: 'main',
    unitsPerDay,
    requestsPerMinute,
    budgetDay,
    clock,
  })
}

function utcDay(nowMs: number): BudgetDay {
  const startMs = Math.floor(nowMs / dayMs) * dayMs
  return { key: new Date(startMs).toISOString().slice(0, 10), startMs, endMs: startMs + dayMs }
}

/** Begins an hour before the noon of the other one, and has the date of the next. */
function laterDay(nowMs: number): BudgetDay {
  const earlierMs = 13 * 3_600_000
  const { key, startMs, endMs } = utcDay(nowMs + earlierMs)
  return { key, startMs: startMs - earlierMs, endMs: endMs - earlierMs }
}

function waitOf(answer: Reservation, nowMs: number): number {
  return answer.ok || answer.limit === 'lease' ? Number.NaN : answer.retryAtMs - nowMs
}
