import { describe, expect, it } from 'vitest'
import { waits } from '../../src/lib/waits.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import type { ScheduleOptions } from '../../src/schedule/schedule.ts'
import { leaseKey, sourceKeys } from '../../src/store/keys.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { silencesKey } from '../../src/store/operator-keys.ts'
import { createSilenceStore } from '../../src/store/operators/silences.ts'
import { createThrottles } from '../../src/store/operators/throttle.ts'
import { tryLease } from '../../src/store/source/lease.ts'
import { createSourceOverride } from '../../src/store/source/source-override.ts'
import { createSourceStatus } from '../../src/store/source/source-status.ts'
import { benchOptions } from '../bench/compare.ts'
import { clockAt } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

/** What stands in Redis was written by some clock, or some version: nothing of it may stop the bridge for good. */

const server = useRedis()
const hourMs = 3_600_000
const dayMs = 24 * hourMs
const nowMs = Date.parse('2026-11-21T09:00:00Z')
const year5195Ms = Date.UTC(5195, 0)

function given() {
  const [prefix, redis] = [freshPrefix(), server.client()]
  return { prefix, redis, source: 'main', keys: sourceKeys(prefix, 'main') }
}

describe('a lease that a clock set back has made long', () => {
  it.each([
    ['a day', ['PX', dayMs]],
    ['for ever', []],
  ] as const)('is shortened: %s', async (_what, expiry) => {
    const { redis, ...at } = given()
    await redis.call('SET', leaseKey(at.prefix, 'main'), 'the dead', ...expiry.map(String))
    const options = { redis, ...at, log: captureLog().log }
    expect(await tryLease(options)).toBeUndefined()
    const leftMs = await redis.pttl(leaseKey(at.prefix, 'main'))
    expect(leftMs).toBeGreaterThan(0)
    expect(leftMs).toBeLessThanOrEqual(waits.lease.maxMs)
  })

  it('of one that lives is left alone', async () => {
    const { redis, ...at } = given()
    const options = { redis, ...at, log: captureLog().log }
    const lease = await tryLease(options)
    expect(await tryLease(options)).toBeUndefined()
    expect(await redis.pttl(leaseKey(at.prefix, 'main'))).toBeLessThanOrEqual(15_000)
    await lease?.release()
  })
})

describe('a throttle whose window ends in years', () => {
  it('holds for the length of its window', async () => {
    const { redis, prefix } = given()
    const throttles = createThrottles({ redis, prefix })
    const claim = (alert: string) => throttles.claim([{ window: ['route'], alert, perMs: hourMs }])
    await claim('main.1')
    const [key = ''] = await redis.keys('*throttle*')
    const window = (await redis.keys('*throttle*')).find((name) => !name.endsWith('main.1')) ?? key
    await redis.hset(window, 'untilMs', year5195Ms)
    const [answer] = await claim('main.2')
    expect(answer).toMatchObject({ passes: false })
    if (answer?.passes === false) expect(answer.untilMs).toBeLessThanOrEqual(Date.now() + hourMs + 1_000)
  })
})

describe('a silence that ends in years', () => {
  it('ends a year after its start', async () => {
    const { redis, prefix } = given()
    const entry = { v: 1, match: { symbol: ['x'] }, startsAtMs: nowMs, endsAtMs: year5195Ms, comment: '' }
    await redis.hset(silencesKey(prefix), 'old', JSON.stringify(entry))
    const [silence] = await createSilenceStore({ redis, prefix }).list(nowMs)
    expect(silence?.endsAtMs).toBe(nowMs + waits.silence.maxMs)
  })
})

describe('a wish for more polls', () => {
  it('lasts a day at most, and one that reaches further is not believed', async () => {
    const { keys, ...at } = given()
    const override = createSourceOverride(at)
    await override.setHot(year5195Ms, nowMs)
    expect(await override.hotUntilMs(nowMs)).toBe(nowMs + dayMs)
    await at.redis.set(keys.override, String(year5195Ms))
    expect(await override.hotUntilMs(nowMs)).toBe(0)
  })

  it('ends early, but not where it is another one by now', async () => {
    const override = createSourceOverride(given())
    await override.setHot(nowMs + dayMs, nowMs)
    expect(await override.endHot(nowMs + 1)).toBe(false)
    expect(await override.hotUntilMs(nowMs)).toBe(nowMs + dayMs)
    expect(await override.endHot(nowMs + dayMs)).toBe(true)
    expect(await override.hotUntilMs(nowMs)).toBe(0)
    await override.setHot(nowMs + dayMs, nowMs)
    expect([await override.endHot(), await override.hotUntilMs(nowMs)]).toEqual([true, 0])
  })
})

describe('the status of a poller', () => {
  it('that names what no date can show is unknown', async () => {
    const { keys, ...at } = given()
    const status = { v: 1, source: 'main', state: 'waiting', reason: '', sinceMs: 1, unitsUsed: 0 }
    const rest = { lastPollAtMs: 1e300, lastOkAtMs: 1, nextPollAtMs: 1, nextReason: null, unitsPerDay: 1 }
    const more = { resetsAtMs: 1, behind: false, lastCompleteWalkAtMs: 1, lastError: null }
    const store = createSourceStatus(at)
    await at.redis.set(keys.status, JSON.stringify({ ...status, ...rest, ...more, lastPollAtMs: 1 }))
    expect(await store.load()).toBeDefined()
    await at.redis.set(keys.status, JSON.stringify({ ...status, ...rest, ...more }))
    expect(await store.load()).toBeUndefined()
  })
})

describe("the feed's own day", () => {
  it('that is no number is none', async () => {
    const { keys, ...at } = given()
    const ledger = createLedger({
      ...at,
      unitsPerDay: 10,
      requestsPerMinute: 10,
      budgetDay: (ms) => budgetDay(ms, { resetsAt: '00:00', timeZone: 'UTC' }),
      clock: clockAt(() => nowMs),
    })
    await at.redis.hset(keys.apiDay, { resetsAtMs: 'soon', sinceMs: 1, startMs: 1, used: 1 })
    expect(await ledger.apiDay()).toBeUndefined()
  })
})

describe('a schedule that a clock years ahead has written', () => {
  const options: ScheduleOptions = { ...benchOptions(2_000) }
  const budgetAt = (ms: number) => {
    const day = budgetDay(ms, options)
    return { unitsPerDay: 2_000, unitsLeft: 1_000, day }
  }

  it('learns and plans again from the first poll on', () => {
    const ahead = createSchedule(options, undefined)
    ahead.next(year5195Ms, budgetAt(year5195Ms))
    ahead.observe({ atMs: year5195Ms, ok: true, firedAtMs: [year5195Ms - 1], pages: 1, pagesLeft: 'none' })
    const schedule = createSchedule(options, structuredClone(ahead.snapshot()))
    const first = schedule.next(nowMs, budgetAt(nowMs))
    expect(first.atMs).toBeLessThanOrEqual(nowMs)
    schedule.observe({ atMs: nowMs, ok: true, firedAtMs: [nowMs - 1_000], pages: 1, pagesLeft: 'none' })
    expect(schedule.next(nowMs, budgetAt(nowMs)).atMs).toBeLessThanOrEqual(nowMs + options.maxIntervalMs)
    schedule.learnHistory([nowMs - 3 * dayMs])
    expect(schedule.describe(nowMs).learnedFrom).toBeGreaterThan(0)
  })
})
