import { describe, expect, it } from 'vitest'
import { targetByProfile } from '../../src/cli/plan/target.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { smallestBudget } from '../../src/schedule/simulate.ts'
import { benchOptions } from '../bench/compare.ts'
import { benchStartMs } from '../bench/traces.ts'
import { heldOutKinds } from '../bench/unfriendly.ts'

const dayMs = 86_400_000
const target = { measure: 'p95', seconds: 10 } as const
const alike = (seconds: number) => ({ mean: seconds, p50: seconds, p95: seconds, p99: seconds })

describe('the smallest budget that reaches a lag', () => {
  it.each([1, 2, 3, 7, 60, 499, 501, 9_000, 250_000, 1_000_000])(
    'is found where it is %d units, also where lag does not fall as units grow',
    (needed) => {
      for (const [enough, less] of [
        [9, 11],
        [0.01, 1_000],
      ] as const) {
        const { unitsPerDay = 0, budgets } = smallestBudget(target, 1_000_000, (units) =>
          alike(units >= needed ? enough : less),
        )
        expect(unitsPerDay).toBeGreaterThanOrEqual(needed)
        expect(unitsPerDay).toBeLessThanOrEqual(Math.floor(1.01 * needed))
        expect(budgets).toContainEqual({ unitsPerDay, lag: alike(enough) })
      }
    },
  )

  it.each([
    [11, 23],
    [50, 52],
  ])('is found among few units where so many reach it, %d, and some more do not', (needed, again) => {
    const lagAt = (units: number) => alike(units === needed || units >= again ? 9 : 11)
    expect(smallestBudget(target, 1_000_000, lagAt, 50).unitsPerDay).toBe(needed)
  })

  it('is found among few units of each source where two share those of an account', () => {
    const learned = createSchedule(benchOptions(24), undefined)
    const sevenMs = 7 * 3_600_000
    learned.learnHistory(
      Array.from(
        { length: 280 },
        (_, at) => benchStartMs + Math.floor(at / 40) * dayMs + sevenMs + (at % 40) * 22_000,
      ),
    )
    const half = (unitsPerDay: number) => benchOptions(Math.ceil(unitsPerDay / 2))
    const wish = { measure: 'p95', seconds: 148 } as const
    const { unitsPerDay } = targetByProfile(wish, learned.snapshot(), benchStartMs + 7 * dayMs, half)
    // 40 for each.
    expect(unitsPerDay).toBe(79)
  })

  it('is none where the largest does not reach it, and the budgets shown are those up to the largest', () => {
    const { unitsPerDay, budgets } = smallestBudget(target, 10_000, () => alike(11))
    expect(unitsPerDay).toBeUndefined()
    expect(budgets.map((each) => each.unitsPerDay)).toEqual([5_000, 7_500, 10_000])
  })

  it('is by what was learned that of a week, on whatever day it is asked for', () => {
    const options = benchOptions(500)
    const learned = createSchedule(options, undefined)
    // Nearly all alerts come on one day of the week.
    learned.learnHistory(heldOutKinds['fridays only']?.(5, 28) ?? [])
    const onDay = (day: number) =>
      targetByProfile(
        { measure: 'p95', seconds: 120 },
        learned.snapshot(),
        benchStartMs + (28 + day) * dayMs,
        benchOptions,
      ).unitsPerDay ?? 0
    const units = [0, 1, 2, 3, 4, 5, 6].map(onDay)
    expect(Math.max(...units)).toBeLessThan(1.05 * Math.min(...units))
  }, 60_000)
})
