import { describe, expect, it } from 'vitest'
import { sweepGoesOn, sweepPages, sweepShareLeft } from '../../src/poller/spare.ts'

const endMs = Date.UTC(2026, 10, 22)
const day = { key: '2026-11-21', startMs: endMs - 86_400_000, endMs }
const minuteMs = 60_000

describe('a sweep', () => {
  it.each<[string, Partial<Situation>, number]>([
    ['takes what the polls until the reset do not need', { unitsLeft: 25 }, 2],
    ['takes a few pages at a time', { unitsLeft: 500 }, 5],
    ['takes no more than its share of the day has left', { unitsLeft: 500, shareLeft: 3 }, 3],
    ['takes nothing that a poll may need', { unitsLeft: 23 }, 0],
    ['waits for the last half hour', { unitsLeft: 500, minutesLeft: 31 }, 0],
    ['ends before the reset', { unitsLeft: 500, minutesLeft: 0.4 }, 0],
    ['does not stand in the way of a poll', { unitsLeft: 500, nextInMs: 1_000 }, 0],
    [
      'leaves all to polls while alerts are expected',
      { unitsLeft: 123, nextReason: 'expected', nextInMs: 9_000 },
      0,
    ],
    [
      'counts a quick quiet plan as a poll a minute',
      { unitsLeft: 123, nextReason: 'floor', nextInMs: 9_000 },
      5,
    ],
    ['counts a slow plan as it is', { unitsLeft: 8, nextReason: 'fixed', nextInMs: 9 * minuteMs }, 2],
    ['counts a quick fixed pace as it is', { unitsLeft: 123, nextReason: 'fixed', nextInMs: 9_000 }, 0],
    [
      'leaves each source with a learned pace that has the same units a poll a minute',
      { unitsLeft: 47, nextReason: 'fixed', nextInMs: 9 * minuteMs, planners: () => 2 },
      1,
    ],
    ['does not run before the first poll', { unitsLeft: 500, lastStartMs: null }, 0],
    ['does not run while something is wrong', { unitsLeft: 500, healthy: false }, 0],
    ['does not run while a limit holds', { unitsLeft: 500, state: 'held' }, 0],
  ])('%s', (_, situation, pages) => {
    const { minutesLeft = 20, nextInMs = 50_000, nextReason = 'even', state = 'waiting', ...rest } = situation
    const nowMs = endMs - minutesLeft * minuteMs
    const pace = { atMs: nowMs + nextInMs, state, nextReason, reason: '' } as const
    expect(
      sweepPages({
        ...usual,
        nowMs,
        day,
        nextPoll: pace,
        lastStartMs: nowMs - 1_000,
        healthy: true,
        unitsLeft: 0,
        ...rest,
      }),
    ).toBe(pages)
  })

  it.each([
    [2_000, 0.05, 98, 2],
    [2_000, 0.05, 120, 0],
    [10, 0.05, 0, 1],
    [2_000, 0, 0, 0],
  ])('of %d units leaves a share of %d, less the %d that are spent', (unitsPerDay, share, swept, left) => {
    expect(sweepShareLeft({ budget: { unitsPerDay }, byPurpose: { sweep: swept } }, share)).toBe(left)
  })

  it('goes on where its units, the minute or a poll were what ended it', () => {
    for (const reason of ['units_spent', 'refused_minute', 'refused_hold', 'refused_rest'] as const)
      expect(sweepGoesOn(reason)).toBe(true)
    expect(sweepGoesOn('refused_budget')).toBe(false)
    expect(sweepGoesOn('round_done')).toBe(false)
    expect(sweepGoesOn('failed')).toBe(false)
  })
})

const usual = { shareLeft: 1_000, planners: () => 0 }

type Input = Parameters<typeof sweepPages>[0]
interface Situation extends Omit<Input, 'nowMs' | 'day' | 'pace'> {
  minutesLeft: number
  nextInMs: number
  nextReason: Input['nextPoll']['nextReason']
  state: Input['nextPoll']['state']
}
