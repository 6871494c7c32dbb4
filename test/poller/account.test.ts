import { expect, it } from 'vitest'
import { learnedBeside, unitsBesideFixed, unitsOfSource } from '../../src/config/checks/accounts.ts'
import type { SourceConfig } from '../../src/config/schema.ts'
import { GrantedBudget, shareOf } from '../../src/poller/budget.ts'
import { clockAt } from '../support/clock.ts'
import { captureLog } from '../support/log.ts'

const dayMs = 86_400_000
const minuteMs = 60_000
const paced = (every?: number) => ({ poll: { every } }) as SourceConfig

it.each([
  [60_000, 1_435],
  [45_000, 1_912],
  [300_000, 287],
])(
  'of an account that another source polls every %i ms, a source with a learned pace leaves it its polls until the reset',
  (every, fixedMin) => {
    const sharing = [paced(every), paced()]
    const share = (units: number, dayShare: number) => unitsOfSource(paced(), sharing, units, dayShare)
    let unitsLeft = 2_000
    let [fixed, learned] = [0, 0]
    let [nextFixedMs, nextLearnedMs] = [0, 0]
    for (let nowMs = 0; nowMs < dayMs && unitsLeft > 0; nowMs += minuteMs / 4) {
      if (nowMs >= nextFixedMs) {
        fixed += 1
        unitsLeft -= 1
        nextFixedMs += every
      }
      // As evenly as what it may use allows.
      if (nowMs >= nextLearnedMs && unitsLeft > 0) {
        learned += 1
        unitsLeft -= 1
        const day = { key: '', startMs: 0, endMs: dayMs }
        const own = shareOf({ unitsPerDay: 2_000, unitsLeft, day }, nowMs, share)
        nextLearnedMs = nowMs + (dayMs - nowMs) / Math.max(1, own.unitsLeft)
      }
    }
    expect(fixed).toBeGreaterThan(fixedMin)
    expect(fixed + learned).toBeGreaterThan(1_900)
  },
)

it("the day that a source plans with is the scarcer one by its own part: another source's fixed pace needs most of both", async () => {
  const sharing = [paced(60_000), paced()]
  const hourMs = dayMs / 24
  // 1,100 units for 17 hours, of which the fixed pace takes 1,020; and 1,600 for 20 hours, of which it takes 1,200.
  const configured = { key: 'configured', startMs: -7 * hourMs, endMs: 17 * hourMs }
  const theirs = { key: 'theirs', startMs: -4 * hourMs, endMs: 20 * hourMs }
  const byPurpose = {}
  const budgetOf = (share?: (units: number, dayShare: number) => number) =>
    new GrantedBudget(
      {
        ...{ source: 'main', unitsPerDay: 2_000, budgetDay: () => configured, ...(share ? { share } : {}) },
        ledger: {
          used: async () => ({ used: 900, byPurpose }),
          usedSince: async () => undefined,
          apiDay: async () => ({ day: theirs, used: 400, byPurpose, whole: true }),
          async countApiDay() {},
        },
        clock: clockAt(() => 0),
        log: captureLog().log,
      },
      { load: async () => undefined, async save() {} },
    )
  const shared = budgetOf((units, dayShare) => unitsOfSource(paced(), sharing, units, dayShare))
  expect((await shared.available(0)).budget.day.key).toBe('configured')
  expect((await budgetOf().available(0)).budget.day.key).toBe('theirs')
})

it('of an account, what a fixed pace leaves is in its part and in those of the learned ones', () => {
  const [fixed, learned] = [paced(minuteMs), paced()]
  const sharing = [fixed, learned, paced(2 * minuteMs), learned]
  expect([fixed, learned].map((each) => learnedBeside(each, sharing))).toEqual([2, 0])
  expect(learnedBeside(fixed, [fixed])).toBe(0)
})

it.each([35_000, 37_000, 43_000])(
  'a fixed pace of %i ms, more than all units buy, has all units for its part and not one more',
  (every) => {
    for (const units of [60, 1_000, 2_000])
      expect(unitsOfSource(paced(every), [paced(every)], units, 1)).toBe(units)
  },
)

it('a backlog has half of what fixed paces leave, not of a part of that: learned ones adapt to what is left', () => {
  const [fixed, learned] = [paced(minuteMs), paced()]
  expect(unitsBesideFixed(learned, [learned, learned], 2_000)).toBe(2_000)
  expect(unitsBesideFixed(learned, [learned, fixed, learned], 2_000)).toBe(560)
  expect(unitsBesideFixed(fixed, [fixed, learned, paced(4 * minuteMs)], 2_000)).toBe(1_640)
})
