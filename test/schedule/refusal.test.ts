import { describe, expect, it } from 'vitest'
import {
  budgetInForce,
  confirmSpending,
  type Grant,
  grantSchema,
  learnRefusal,
} from '../../src/schedule/budget.ts'
import { createRandom } from '../bench/random.ts'

const hourMs = 3_600_000
const day = { key: '2026-11-21', startMs: 0, endMs: 24 * hourMs }
const nextDay = { key: '2026-11-22', startMs: 24 * hourMs, endMs: 48 * hourMs }
const at10 = { atMs: 10 * hourMs, day, unitsPerDay: 2_000, retryAfterMs: 14 * hourMs, unitsUsed: 500 }
const smaller = learnRefusal(at10).grant

describe('a refusal by the API', () => {
  it('before our budget is spent teaches a smaller one, and says both figures', () => {
    const { grant, text } = learnRefusal(at10)
    expect(grant).toMatchObject({ unitsPerDay: 500, resetsAtMs: null })
    expect(text).toMatch(/500.*2000/)
  })

  const theirDay = { key: 'theirs', startMs: 13 * hourMs, endMs: 37 * hourMs }
  const inTheirDay = { atMs: 30 * hourMs, day: nextDay, unitsPerDay: 2_000, unitsUsed: 300 }

  it('at the end of the day that it named earlier teaches the size, by the count of that day', () => {
    const apiDay = { day: theirDay, used: 1_500, whole: true }
    const { grant, text } = learnRefusal({ ...inTheirDay, retryAfterMs: 7 * hourMs, apiDay })
    expect(grant).toMatchObject({ unitsPerDay: 1_500, resetsAtMs: 37 * hourMs })
    expect(text).toMatch(/1500.*2000/)
    expect(learnRefusal({ ...inTheirDay, retryAfterMs: undefined, apiDay }).grant).toEqual(grant)
  })

  it('in a day that was not counted from its start teaches no size', () => {
    const apiDay = { day: theirDay, used: 900, whole: false }
    expect(learnRefusal({ ...inTheirDay, retryAfterMs: 7 * hourMs, apiDay }).grant).toMatchObject({
      unitsPerDay: null,
      resetsAtMs: 37 * hourMs,
    })
  })

  it('that names our reset again takes back that it named another one', () => {
    const apiDay = { day: theirDay, used: 1_500, whole: true }
    expect(learnRefusal({ ...inTheirDay, retryAfterMs: 18 * hourMs, apiDay }).grant).toMatchObject({
      unitsPerDay: 300,
      resetsAtMs: null,
    })
  })

  it('that names another time of reset teaches the time and nothing about the size', () => {
    const { grant, text } = learnRefusal({ ...at10, retryAfterMs: 3 * hourMs })
    expect(grant).toMatchObject({ unitsPerDay: null, resetsAtMs: 13 * hourMs })
    expect(text).toContain('3h')
  })

  it('after a handful of units says that somebody else spends, and does not shrink tomorrow', () => {
    const { grant, text } = learnRefusal({ ...at10, unitsUsed: 20 })
    expect(grant.unitsPerDay).toBeNull()
    expect(text).toContain('somebody else')
  })

  it('after the same handful on two days in a row is believed; on one day, a week later, or after other handfuls, it is not', () => {
    const { grant: earlier } = learnRefusal({ ...at10, unitsUsed: 20 })
    const again = { ...at10, earlier, unitsUsed: 20 }
    const tomorrow = { ...again, atMs: 26 * hourMs, retryAfterMs: 22 * hourMs, day: nextDay }
    expect(
      learnRefusal({ ...again, atMs: 11 * hourMs, retryAfterMs: 13 * hourMs }).grant.unitsPerDay,
    ).toBeNull()
    expect(learnRefusal({ ...tomorrow, unitsUsed: 35 }).grant.unitsPerDay).toBeNull()
    // As another program's job that takes all that is left once a week: the days between have all units.
    const nextWeek = { key: '2026-11-28', startMs: 7 * 24 * hourMs, endMs: 8 * 24 * hourMs }
    const aWeekLater = { ...again, atMs: nextWeek.startMs + 10 * hourMs, day: nextWeek }
    expect(learnRefusal(aWeekLater).grant.unitsPerDay).toBeNull()
    const { grant } = learnRefusal(tomorrow)
    expect(grant.unitsPerDay).toBe(20)
    // One more was asked for in vain, at the end of that day.
    const trial = { ...tomorrow, atMs: 47.9 * hourMs, retryAfterMs: 0.1 * hourMs, earlier: grant }
    expect(learnRefusal(trial).grant.unitsPerDay).toBe(20)
    expect(learnRefusal({ ...trial, unitsUsed: 0 }).grant.unitsPerDay).toBeNull()
  })

  it('of a day that ends a little later than ours teaches when, and no size, whatever ours has used', () => {
    const atTurn = { ...at10, atMs: 24 * hourMs + 62_000, day: nextDay, retryAfterMs: 28_000 }
    const resetsAtMs = 24 * hourMs + 90_000
    for (const unitsUsed of [0, 1, 2]) {
      const refusal = { ...atTurn, unitsPerDay: 10, unitsUsed }
      const { grant, text } = learnRefusal(refusal)
      expect(grant).toMatchObject({ unitsPerDay: null, resetsAtMs, refused: null })
      expect(text).not.toContain('starts anew')
      const { refused } = smaller
      expect(learnRefusal({ ...refusal, earlier: smaller }).grant).toMatchObject({
        unitsPerDay: 500,
        refused,
      })
      // Where it names too short a wait at the end of its own day.
      const theirs = { ...nextDay, startMs: nextDay.startMs + 60_000, endMs: nextDay.endMs + 60_000 }
      const apiDay = { day: theirs, used: unitsUsed, whole: true }
      const again = learnRefusal({ ...refusal, earlier: smaller, apiDay }).grant
      expect(again).toMatchObject({ unitsPerDay: 500, resetsAtMs, refused })
      expect(confirmSpending(again, { atMs: resetsAtMs + 500, unitsUsed: 2 })).toBeUndefined()
      // The day that has just begun asks for more, as any.
      const spent = { unitsPerDay: 2_000, unitsLeft: 1_500, day: theirs }
      expect(budgetInForce(spent, again, 40 * hourMs)).toEqual(budgetInForce(spent, smaller, 40 * hourMs))
    }
  })

  it('without a time teaches the size alone', () => {
    expect(learnRefusal({ ...at10, retryAfterMs: undefined }).grant).toMatchObject({
      unitsPerDay: 500,
      resetsAtMs: null,
    })
  })
})

describe('the budget in force', () => {
  const view = (used: number, on = nextDay) => ({ unitsPerDay: 2_000, unitsLeft: 2_000 - used, day: on })

  it('is the configured one until something is learned', () => {
    expect(budgetInForce(view(10), undefined, 0)).toEqual(view(10))
  })

  it('is what the API granted, on the next days with one call more, which asks for more', () => {
    expect(budgetInForce(view(100), smaller, 30 * hourMs)).toMatchObject({ unitsPerDay: 500, unitsLeft: 401 })
  })

  it('once spent, is tried again shortly before the reset of a later day', () => {
    const { unitsLeft, trialAtMs = 0 } = budgetInForce(view(500), smaller, 40 * hourMs)
    expect(unitsLeft).toBe(0)
    expect(trialAtMs).toBeGreaterThan(47 * hourMs)
    expect(trialAtMs).toBeLessThan(48 * hourMs)
    // After a call beyond it that failed, this instant is over.
    expect(budgetInForce(view(501), smaller, trialAtMs + 10_000).trialAtMs).toBe(trialAtMs)
    expect(budgetInForce(view(500), smaller, trialAtMs + 10_000).trialAtMs).toBe(trialAtMs + 10_000)
  })

  it('is not tried again on the day of the refusal, nor beyond what the config allows', () => {
    expect(budgetInForce(view(500, day), smaller, 23 * hourMs).trialAtMs).toBeUndefined()
    expect(budgetInForce({ ...view(500), unitsLeft: 0 }, smaller, 40 * hourMs).trialAtMs).toBeUndefined()
  })
})

describe('a call that is granted', () => {
  it('beyond the learned budget makes the configured one hold again', () => {
    const lesson = confirmSpending(smaller, { atMs: 47.95 * hourMs, unitsUsed: 501 })
    expect(lesson?.grant.unitsPerDay).toBeNull()
    expect(lesson?.text).toContain('501')
  })

  it('within it teaches nothing', () => {
    expect(confirmSpending(smaller, { atMs: 30 * hourMs, unitsUsed: 499 })).toBeUndefined()
  })

  it('long before the time that a refusal named makes the configured reset hold again', () => {
    const { grant } = learnRefusal({ ...at10, retryAfterMs: 3 * hourMs })
    expect(confirmSpending(grant, { atMs: 11 * hourMs, unitsUsed: 21 })?.grant.resetsAtMs).toBeNull()
    expect(confirmSpending(grant, { atMs: 12.95 * hourMs, unitsUsed: 21 })).toBeUndefined()
  })
})

describe('another program that spends of the account as it likes', () => {
  const daysMax = 42
  /** Days at an even pace, with what the other program leaves of 2,000 units each day. */
  function sixWeeks(leftOver: (day: number) => number) {
    let grant: Grant | undefined
    const refusedOn: number[] = []
    const plannedWith: number[] = []
    for (let number = 0; number < daysMax; number++) {
      const on = { key: `day ${number}`, startMs: number * 24 * hourMs, endMs: (number + 1) * 24 * hourMs }
      const budget = budgetInForce({ unitsPerDay: 2_000, unitsLeft: 2_000, day: on }, grant, on.startMs)
      plannedWith.push(budget.unitsPerDay)
      const [planned, left] = [budget.unitsLeft, leftOver(number)]
      const atMs = on.startMs + 24 * hourMs * Math.min(0.999, left / planned)
      const spent = { atMs, unitsUsed: Math.min(planned, left) }
      if (planned > left) {
        refusedOn.push(number)
        grant = learnRefusal({
          ...spent,
          day: on,
          unitsPerDay: 2_000,
          retryAfterMs: on.endMs - atMs,
          earlier: grant,
        }).grant
      } else if (grant) grant = confirmSpending(grant, spent)?.grant ?? grant
    }
    return { refusedOn, plannedWith }
  }
  it.each([1, 2, 3, 4, 5])(
    'by 600 to 1,000 units a day, is met with at most five refusals after the first three days (%d)',
    (seed) => {
      const { next } = createRandom(seed)
      const { refusedOn, plannedWith } = sixWeeks(() => 1_400 - Math.floor(400 * next()))
      expect(refusedOn.filter((number) => number >= 3).length).toBeLessThanOrEqual(5)
      // Who knew would plan with 1,000; a mean lag of 1.3 times that one's needs 770.
      expect(Math.min(...plannedWith.slice(3))).toBeGreaterThan(850)
    },
  )

  it('and then no longer, leaves the whole budget to the plan again within six weeks', () => {
    const { plannedWith } = sixWeeks((number) => (number < 5 ? 1_000 + 50 * number : 2_000))
    expect(plannedWith.at(-1)).toBe(2_000)
  })

  it('to a handful at the same time each day, and then no longer, costs the day after', () => {
    const { plannedWith } = sixWeeks((number) => [9, 5, 8, 7][number] ?? 2_000)
    expect(plannedWith[4]).toBe(7)
    expect(plannedWith.slice(5).every((units) => units === 2_000)).toBe(true)
  })

  it('on one day alone, costs that day and the next', () => {
    const { refusedOn, plannedWith } = sixWeeks((number) => (number === 3 ? 1_100 : 2_000))
    expect(refusedOn).toEqual([3])
    expect(plannedWith.slice(3, 7)).toEqual([2_000, 1_100, 2_000, 2_000])
  })
})

it('an instant before all times, which no budget day holds, is none that was learned', () => {
  const grant = { v: 1, unitsPerDay: 40, resetsAtMs: 0, learnedAtMs: 0 }
  expect(grantSchema.safeParse(grant).success).toBe(true)
  for (const ms of [-1, -8.64e15, -1e300])
    expect(grantSchema.safeParse({ ...grant, resetsAtMs: ms }).success).toBe(false)
})
