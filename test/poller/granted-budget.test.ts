import { expect, it } from 'vitest'
import type { Clock } from '../../src/lib/clock.ts'
import { GrantedBudget } from '../../src/poller/budget.ts'
import { createLimits } from '../../src/sandbox/limits.ts'
import { createRandom } from '../../src/sandbox/random.ts'
import { budgetDay } from '../../src/schedule/budget.ts'
import { createGrantStore } from '../../src/store/ledger/grant.ts'
import { createLedger } from '../../src/store/ledger/ledger.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { intakeRig } from '../intake/rig.ts'
import { clockAt } from '../support/clock.ts'
import { failureRow } from '../support/failure-row.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const redis = useRedis()
const long = process.env['LONG'] === '1'
const hourMs = 3_600_000
const startMs = Date.UTC(2026, 10, 20, 21)

/**
 * The budget that the API grants, over days: the ledger's Redis and the API's limits are real, the clock is not. With
 * `readsFeed` every unit that is granted buys a poll of a feed; otherwise only the units count.
 */
function rig(
  api: { unitsPerDay: number; resets: 'UTC' | 'Asia/Tehran' },
  timeZone: string,
  { fromMs = startMs, readsFeed = false, waitS = (leftS: number) => leftS, awayAt = 0 } = {},
) {
  /** By how much the API's clock is ahead. */
  let aheadMs = 0
  const nextReset = (nowMs: number) => dayEnd(nowMs + aheadMs, api.resets) - aheadMs
  const prefix = freshPrefix()
  const client = redis.client()
  const clock: Clock & { nowMs: number } = { nowMs: fromMs, ...clockAt(() => clock.nowMs) }
  const dayOf = (nowMs: number) => budgetDay(nowMs, { resetsAt: '00:00', timeZone })
  const unitsPerDay = 96
  const common = { redis: client, prefix, source: 'main' }
  const ledger = createLedger({
    ...common,
    unitsPerDay,
    requestsPerMinute: 1e6,
    budgetDay: dayOf,
    clock,
  })
  const log = captureLog()
  const metrics = createMetrics({ version: 'test', node: process.version })
  let isAway = false
  const unlessAway =
    <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
    async (...args: A) =>
      isAway ? Promise.reject<R>(new Error('Redis is away')) : ask(...args)
  const reached = {
    used: ledger.used,
    usedSince: unlessAway(ledger.usedSince),
    apiDay: unlessAway(ledger.apiDay),
    countApiDay: unlessAway(ledger.countApiDay),
  }
  const open = () =>
    new GrantedBudget(
      { ...common, ledger: reached, budgetDay: dayOf, clock, log: log.log, unitsPerDay },
      createGrantStore(common),
    )
  let limits = createLimits({
    requestsPerMinute: 1e6,
    minuteWindow: 'sliding',
    unitsPerDay: api.unitsPerDay,
    nextReset,
  })
  const granted: number[] = []
  const refused: number[] = []
  let tracked = open()
  /** When another client of the account spends a unit, in order. */
  let spentElsewhere: readonly number[] = []
  const source = intakeRig(redis, { startFrom: 'beginning', metrics })
  let firedUntilMs = fromMs
  /** One poll of a feed with an alert every three hours. */
  const poll = async () => {
    for (; firedUntilMs + 3 * hourMs <= clock.nowMs; firedUntilMs += 3 * hourMs)
      source.feed.add(1, firedUntilMs + 3 * hourMs)
    source.rig.nowMs = clock.nowMs
    await source.poll()
  }
  return {
    log,
    /** What the feed showed and what was enqueued of it, each with how often. */
    alerts: () => ({ shown: source.feed.rows.map(({ id }) => id).toReversed(), taken: source.queues.order }),
    granted,
    refused,
    /** Spends evenly what may be spent, as a schedule without a profile would. */
    async run(untilMs: number) {
      await tracked.load()
      while (clock.nowMs < untilMs) {
        const { budget } = await tracked.available(clock.nowMs)
        const { unitsLeft, day, trialAtMs } = budget
        if (unitsLeft === 0) {
          clock.nowMs = Math.max(clock.nowMs, trialAtMs ?? day.endMs + 2_001)
          if (trialAtMs === undefined) continue
        }
        const reserved = await ledger.reserve({ cost: 1, purpose: 'poll' })
        if (!reserved.ok) {
          if (reserved.limit === 'lease') throw new Error('no lease was asked for')
          clock.nowMs = reserved.retryAtMs
          continue
        }
        const { unitsUsed, apiDayUsed } = reserved
        for (; (spentElsewhere[0] ?? Infinity) <= clock.nowMs; spentElsewhere = spentElsewhere.slice(1))
          limits.takeUnits(1, spentElsewhere[0] ?? 0)
        const answer = limits.takeUnits(1, clock.nowMs)
        if (answer.ok) {
          granted.push(clock.nowMs)
          if (readsFeed) await poll()
          tracked.noteAnswer()
          await tracked.noteGrant({ ...reserved, atMs: clock.nowMs })
          // As every schedule here, half a gap before the end of the day.
          clock.nowMs += Math.max(1_000, (day.endMs - clock.nowMs) / (Math.max(0, unitsLeft - 1) + 0.5))
        } else {
          refused.push(clock.nowMs)
          const before = {
            atMs: clock.nowMs,
            cost: 1,
            unitsUsed: unitsUsed - 1,
            ...(apiDayUsed === undefined ? {} : { apiDayUsed: apiDayUsed - 1 }),
          }
          const namedS = waitS(answer.retryAfterS)
          isAway = refused.length === awayAt
          await tracked.noteRefusal(before, namedS * 1_000)
          isAway = false
          clock.nowMs += Math.max(1_000, tracked.holdAfter(namedS * 1_000))
        }
      }
    },
    spendElsewhere(units: number) {
      limits.takeUnits(units, clock.nowMs)
    },
    spendsElsewhere(atMs: readonly number[]) {
      spentElsewhere = atMs
    },
    apiIsAhead(ms: number) {
      aheadMs = ms
    },
    restart() {
      tracked = open()
    },
    away(untilMs: number) {
      clock.nowMs = untilMs
    },
    means: () => tracked.available(clock.nowMs),
    grant(unitsPerDayNow: number) {
      limits = createLimits({
        requestsPerMinute: 1e6,
        minuteWindow: 'sliding',
        unitsPerDay: unitsPerDayNow,
        nextReset,
      })
    },
  }
}

function dayEnd(nowMs: number, timeZone: string): number {
  return budgetDay(nowMs, { resetsAt: '00:00', timeZone }).endMs
}

const longestGapHours = (polls: readonly number[], fromMs: number) => {
  const later = polls.filter((atMs) => atMs >= fromMs)
  return Math.max(...later.map((atMs, index) => atMs - (later[index - 1] ?? atMs))) / hourMs
}

it('an API with fewer units and another reset than the config says is fitted from the first refusal on: no more blind hours', async () => {
  const row = failureRow('Its budget day begins at another time')
  const bridge = rig({ unitsPerDay: 48, resets: 'UTC' }, 'Asia/Tehran', { readsFeed: true })
  await bridge.run(startMs + 2.5 * 24 * hourMs)
  bridge.restart()
  await bridge.run(startMs + 6 * 24 * hourMs)
  const knownMs = Date.UTC(2026, 10, 22)
  const { shown, taken } = bridge.alerts()
  await row.kept('everything stays in the feed', () => {
    expect(shown.length).toBeGreaterThan(40)
    expect(taken).toEqual(shown)
  })
  await row.twice('nothing', () => expect(new Set(taken).size).toBe(taken.length))
  await row.kept("days are planned by the API's reset and size from the first refusal on", async () => {
    expect(bridge.refused.filter((atMs) => atMs < knownMs)).toHaveLength(1)
    const { budget, lesson } = await bridge.means()
    expect(budget.unitsPerDay).toBe(48)
    expect(new Date(budget.day.startMs).toISOString()).toMatch(/T00:00/)
    expect(lesson).toMatch(/grants 48 units a day, the config says 96; .*00:00/)
    // One trial a day asks whether it grants more by now.
    expect(bridge.refused.filter((atMs) => atMs >= knownMs).length).toBeLessThanOrEqual(5)
  })
  await row.heals('its reset', () => {
    expect(longestGapHours(bridge.granted, 0)).toBeGreaterThan(6)
    const [refusedMs = 0] = bridge.refused
    const resumedMs = bridge.granted.find((atMs) => atMs > refusedMs) ?? Number.NaN
    expect((resumedMs - knownMs) / hourMs).toBeLessThan(0.1)
    expect(longestGapHours(bridge.granted, knownMs)).toBeLessThan(0.8)
  })
})

it.each([
  { timeZone: 'UTC', fromDay: 0, goodFromDay: 2 },
  // A day is planned with too many units until the refusal that shows it, and another one as that day's count is off by one.
  { timeZone: 'Asia/Tehran', fromDay: 3, goodFromDay: 8 },
])(
  'an API with fewer units, its clock six minutes ahead of that of a bridge in $timeZone, grants each day the same',
  async ({ timeZone, fromDay, goodFromDay }) => {
    const bridge = rig({ unitsPerDay: 48, resets: 'UTC' }, timeZone)
    await bridge.run(startMs + fromDay * 24 * hourMs)
    bridge.apiIsAhead(6 * 60_000)
    await bridge.run(startMs + (goodFromDay + 2) * 24 * hourMs)
    expect((await bridge.means()).lesson).toMatch(/^the API grants 48 units a day, the config says 96/)
    const goodFromMs = startMs + (goodFromDay * 24 - 1) * hourMs
    expect(longestGapHours(bridge.granted, goodFromMs)).toBeLessThan(0.8)
  },
)

it.each([
  { rounded: 'down', stepS: 60, lateMs: 0 },
  { rounded: 'down', stepS: 600, lateMs: 0 },
  { rounded: 'up', stepS: 600, lateMs: -400_000 },
  { rounded: 'down', stepS: 1, lateMs: 4_000 },
])(
  'an API $lateMs ms late that names waits of whole $stepS s, rounded $rounded, refuses one call a day',
  async ({ rounded, stepS, lateMs }) => {
    const bridge = rig({ unitsPerDay: 48, resets: 'UTC' }, 'UTC', {
      waitS: (leftS) => Math.ceil(leftS / stepS - (rounded === 'up' ? 0 : 1)) * stepS,
    })
    bridge.apiIsAhead(-lateMs)
    await bridge.run(startMs + 6 * 24 * hourMs)
    expect((await bridge.means()).lesson).toMatch(/^the API grants 48 units a day, the config says 96/)
    const goodFromMs = startMs + 51 * hourMs
    expect(longestGapHours(bridge.granted, goodFromMs)).toBeLessThan(0.9)
    const refusedLater = bridge.refused.filter((atMs) => atMs >= goodFromMs)
    expect(refusedLater.length).toBeLessThanOrEqual(4)
  },
)

it('what is known of an API is kept where Redis is away while it refuses', async () => {
  const bridge = rig({ unitsPerDay: 48, resets: 'UTC' }, 'Asia/Tehran', { awayAt: 3 })
  await bridge.run(startMs + 5 * 24 * hourMs)
  expect(bridge.refused.length).toBeGreaterThan(3)
  expect(longestGapHours(bridge.granted, Date.UTC(2026, 10, 22))).toBeLessThan(0.8)
})

it.each([
  { namedS: 60, timeZone: 'Asia/Tehran', lateMs: 0 },
  { namedS: 600, timeZone: 'Asia/Tehran', lateMs: 0 },
  { namedS: 60, timeZone: 'UTC', lateMs: 3_000 },
])(
  'an API $lateMs ms late whose refusals all name $namedS s is asked a few times for its next day, and where it begins in $timeZone',
  async ({ namedS, timeZone, lateMs }) => {
    const bridge = rig({ unitsPerDay: 48, resets: 'UTC' }, timeZone, { waitS: () => namedS })
    bridge.apiIsAhead(-lateMs)
    await bridge.run(startMs + 4 * 24 * hourMs)
    expect(bridge.refused.length).toBeLessThan(4 * 28)
    expect(bridge.granted.length).toBeGreaterThan(4 * 48 - 10)
    const lagsMs = [1, 2, 3].map((day) => {
      const resetsAtMs = startMs + (3 + 24 * day) * hourMs
      return Math.min(...bridge.granted.filter((atMs) => atMs >= resetsAtMs)) - resetsAtMs
    })
    // At another reset than the config's it is asked once an hour.
    expect(Math.max(...lagsMs)).toBeLessThan((timeZone === 'UTC' ? 2 : 62) * 60_000)
  },
)

it.each(['UTC', 'Asia/Tehran'] as const)(
  'an API that grants far fewer units than the config says, %s, is believed from its second refusal on',
  async (resets) => {
    const row = failureRow('Its budget day begins at another time')
    const bridge = rig({ unitsPerDay: 4, resets }, 'UTC', { readsFeed: true })
    await bridge.run(Date.UTC(2026, 10, 22))
    const { budget, lesson } = await bridge.means()
    await row.kept("or where it grants less than a twentieth of the config's", () =>
      expect([bridge.refused.length, budget.unitsPerDay]).toEqual([2, 4]),
    )
    await bridge.run(startMs + 7 * 24 * hourMs)
    expect(lesson).toMatch(/grants 4 units a day, the config says 96/)
    await row.heals('its reset', () =>
      expect(longestGapHours(bridge.granted, startMs + 4 * 24 * hourMs)).toBeLessThan(9),
    )
    await row.twice('nothing', () => {
      const { taken } = bridge.alerts()
      expect(new Set(taken).size).toBe(taken.length)
    })
  },
)

it('where nobody counted the day from its start, the size is learned from the next refusal', async () => {
  const row = failureRow('Its budget day begins at another time')
  const bridge = rig({ unitsPerDay: 48, resets: 'UTC' }, 'Asia/Tehran', {
    fromMs: Date.UTC(2026, 10, 21, 5),
    readsFeed: true,
  })
  bridge.spendElsewhere(20)
  await bridge.run(Date.UTC(2026, 10, 22))
  expect(bridge.refused).toHaveLength(1)
  expect((await bridge.means()).budget.unitsPerDay).toBe(96)
  await bridge.run(Date.UTC(2026, 10, 23))
  await row.kept(
    'by its size from the second where the bridge was not there for a whole day before',
    async () => {
      expect(bridge.refused).toHaveLength(2)
      expect((await bridge.means()).budget.unitsPerDay).toBe(48)
    },
  )
  await bridge.run(Date.UTC(2026, 10, 24))
  await row.heals('its reset', () =>
    expect(longestGapHours(bridge.granted, Date.UTC(2026, 10, 23))).toBeLessThan(0.8),
  )
  const { shown, taken } = bridge.alerts()
  await row.kept('everything stays in the feed', () => expect(taken).toEqual(shown))
  await row.twice('nothing', () => expect(new Set(taken).size).toBe(taken.length))
})

it('another reset alone: days turn with it, and all units are spent', async () => {
  const bridge = rig({ unitsPerDay: 96, resets: 'UTC' }, 'Asia/Tehran')
  await bridge.run(startMs + 6 * 24 * hourMs)
  const from = Date.UTC(2026, 10, 24)
  const spent = bridge.granted.filter((atMs) => atMs >= from && atMs < from + 24 * hourMs)
  expect(spent.length).toBeGreaterThanOrEqual(95)
  expect(longestGapHours(bridge.granted, from)).toBeLessThan(0.5)
})

it.each([
  { units: 96, timeZone: 'Asia/Tehran', awayFrom: 1, until: 21.5 },
  { units: 48, timeZone: 'Asia/Tehran', awayFrom: 1, until: 21.5 },
  { units: 96, timeZone: 'America/New_York', awayFrom: 1, until: 22 },
] as const)(
  'a bridge that was away until shortly before the reset of $units units leaves some of the day in $timeZone: no more blind hours',
  async ({ units, timeZone, awayFrom, until }) => {
    const bridge = rig({ unitsPerDay: units, resets: 'UTC' }, timeZone)
    const dayMs = Date.UTC(2026, 10, 24)
    await bridge.run(dayMs + awayFrom * hourMs)
    expect((await bridge.means()).lesson).toMatch(/starts anew at 2026-11-25T00:00/)
    bridge.away(dayMs + until * hourMs)
    await bridge.run(dayMs + 4 * 24 * hourMs)
    expect(longestGapHours(bridge.granted, dayMs + until * hourMs)).toBeLessThan(0.8)
    expect((await bridge.means()).lesson).toMatch(/starts anew at 2026-11-2[89]T00:00/)
    const lastDay = bridge.granted.filter((atMs) => atMs >= dayMs + 3 * 24 * hourMs)
    expect(lastDay.length).toBeGreaterThan(0.9 * units)
  },
)

it("a plan stays with the API's day while the config's has a little less for its time, since it would begin anew", async () => {
  const bridge = rig({ unitsPerDay: 96, resets: 'UTC' }, 'America/New_York')
  const dayMs = Date.UTC(2026, 10, 24)
  await bridge.run(dayMs + hourMs)
  const endAt = async (hours: number) => {
    bridge.away(dayMs + hours * hourMs)
    const { budget, shown, used } = await bridge.means()
    // As the chart of the day and the gauge, which follow the API's own day: they neither change nor return with the plan's.
    expect(new Date(shown.day.endMs).toISOString()).toMatch(/^2026-11-25T00:00/)
    expect(shown.unitsLeft + used).toBe(shown.unitsPerDay)
    return new Date(budget.day.endMs).toISOString().slice(5, 16)
  }
  // 96 units for 23 hours, and 92 for 18; then for 9, and for 4.
  expect(await endAt(6)).toBe('11-25T00:00')
  expect(await endAt(20)).toBe('11-25T05:00')
  expect(await endAt(16)).toBe('11-25T05:00')
})

it('an API that grants more again is noticed on the next day', async () => {
  const bridge = rig({ unitsPerDay: 48, resets: 'UTC' }, 'Asia/Tehran')
  await bridge.run(startMs + 3 * 24 * hourMs)
  bridge.grant(96)
  await bridge.run(startMs + 5 * 24 * hourMs)
  const { budget, lesson } = await bridge.means()
  expect(budget.unitsPerDay).toBe(96)
  expect(lesson).not.toMatch(/grants/)
})

it('a config that was set right counts again, and says nothing more', async () => {
  const bridge = rig({ unitsPerDay: 96, resets: 'UTC' }, 'UTC')
  await bridge.run(startMs + 2 * 24 * hourMs)
  expect((await bridge.means()).lesson).toBeNull()
  expect(bridge.refused).toEqual([])
})

it('another client that spends a third to a half of the units at will costs few refusals, and few units stay unused for it', async () => {
  const days = long ? 42 : 14
  const learningDays = 3
  const dayMs = 24 * hourMs
  const unitsPerDay = 96
  const bridge = rig({ unitsPerDay, resets: 'Asia/Tehran' }, 'Asia/Tehran')
  const random = createRandom(7)
  const daily = Array.from({ length: days }, () => 29 + random.int(20))
  const spends = daily.flatMap((count, day) =>
    Array.from({ length: count }, () => startMs + (day + random.next()) * dayMs),
  )
  bridge.spendsElsewhere(spends.sort((a, b) => a - b))
  await bridge.run(startMs + days * dayMs)
  const isLater = (atMs: number) => atMs >= startMs + learningDays * dayMs
  expect(bridge.refused.filter(isLater).length).toBeLessThanOrEqual(5)
  const others = spends.filter(isLater).length
  const left = (days - learningDays) * unitsPerDay - others
  // Polls spread evenly: with four fifths of the units an alert waits a quarter longer.
  expect(bridge.granted.filter(isLater).length).toBeGreaterThan(0.8 * left)
})
