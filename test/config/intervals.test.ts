import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { intervalProblems, withIntervals } from '../../src/config/checks/intervals.ts'
import { budgetSchema, pollSchema } from '../../src/config/source.ts'
import { parseDuration } from '../../src/lib/duration.ts'

const budgets = fc.record({
  unitsPerDay: fc.integer({ min: 1, max: 1_000_000 }),
  requestsPerMinute: fc.integer({ min: 2, max: 240 }),
})

function problems(budget: object, poll: object) {
  return intervalProblems(budgetSchema.parse(budget), pollSchema.parse(poll))
}

describe('the pace', () => {
  it('that no one chose always fits the budget', () => {
    fc.assert(
      fc.property(budgets, (budget) => {
        expect(problems(budget, {})).toEqual([])
        const { minInterval, maxInterval } = withIntervals(budgetSchema.parse(budget), pollSchema.parse({}))
        expect(86_400_000 / maxInterval).toBeLessThanOrEqual(budget.unitsPerDay)
        expect(60_000 / minInterval).toBeLessThanOrEqual(budget.requestsPerMinute)
        expect(minInterval).toBeLessThanOrEqual(maxInterval)
      }),
    )
  })

  it('of a large budget may be ten times as fast as evenly, so that an opening bell gets its units', () => {
    const shortest = (unitsPerDay: number) =>
      withIntervals(budgetSchema.parse({ unitsPerDay, requestsPerMinute: 240 }), pollSchema.parse({}))
        .minInterval
    expect([400, 2_000, 20_000, 30_000].map(shortest)).toEqual([2_000, 2_000, 432, 288])
    expect(shortest(100_000)).toBe(250)
  })

  it('that is named as the shortest that fits does fit', () => {
    const interval = fc.integer({ min: 0, max: 100_000_000 }).map((ms) => `${ms}ms`)
    fc.assert(
      fc.property(
        budgets,
        interval,
        fc.constantFrom('every', 'maxInterval', 'minInterval'),
        (budget, text, key) => {
          const problem = problems(budget, { [key]: text }).find((each) => each.key === key)
          const named = /^(\S+) is the shortest/.exec(problem?.remedy ?? '')?.[1]
          fc.pre(named !== undefined)
          expect(
            problems(budget, { [key]: named }).filter(({ remedy }) => remedy.includes('shortest')),
          ).toEqual([])
          // And it is longer than what was refused.
          expect(parseDuration(named)).toBeGreaterThan(parseDuration(text) ?? 0)
        },
      ),
    )
  })

  it('may use up a budget to the last unit', () => {
    expect(problems({ unitsPerDay: 2_880 }, { every: '30s' })).toEqual([])
    expect(problems({ unitsPerDay: 2_879 }, { every: '30s' })).toHaveLength(1)
    expect(problems({ unitsPerDay: 96 }, { maxInterval: '15m' })).toEqual([])
    expect(problems({ unitsPerDay: 95 }, { maxInterval: '15m' })).toHaveLength(1)
  })

  it('that is left out follows what is given, and so never contradicts it', () => {
    const interval = fc.option(fc.integer({ min: 50, max: 100_000_000 }), { nil: undefined })
    fc.assert(
      fc.property(
        budgets,
        fc.constantFrom('every', 'minInterval', 'maxInterval'),
        interval,
        (budget, key, ms) => {
          const poll = ms === undefined ? {} : { [key]: `${ms}ms` }
          expect(problems(budget, poll).filter(({ severity }) => severity === 'mistake')).toEqual([])
          const filled = withIntervals(budgetSchema.parse(budget), pollSchema.parse(poll))
          const { minInterval, every = minInterval, maxInterval } = filled
          expect([minInterval <= every, every <= maxInterval]).toEqual([true, true])
        },
      ),
    )
  })

  it('of one poll in 250ms is the fastest that the API allows', () => {
    const budget = { unitsPerDay: 1_000_000, requestsPerMinute: 240 }
    expect(problems(budget, { every: '250ms' })).toEqual([])
    expect(problems(budget, { every: '249ms' })).toMatchObject([{ severity: 'warning' }])
  })
})
