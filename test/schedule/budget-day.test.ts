import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { budgetDay } from '../../src/schedule/budget.ts'

const hourMs = 3_600_000
const at = (iso: string) => Date.parse(iso)

describe('a budget day', () => {
  it.each([
    [
      'of Tehran starts at its midnight',
      '2026-11-21T09:00:00Z',
      '00:00',
      'Asia/Tehran',
      '2026-11-20T20:30:00Z',
      24,
    ],
    [
      'keeps its date while another reset time is not reached',
      '2026-11-21T05:00:00Z',
      '09:30',
      'Asia/Tehran',
      '2026-11-20T06:00:00Z',
      24,
    ],
    [
      'has 23 hours when clocks go forward',
      '2026-03-29T12:00:00Z',
      '00:00',
      'Europe/Berlin',
      '2026-03-28T23:00:00Z',
      23,
    ],
    [
      'has 25 hours when clocks go back',
      '2026-10-25T12:00:00Z',
      '00:00',
      'Europe/Berlin',
      '2026-10-24T22:00:00Z',
      25,
    ],
    [
      'starts after a reset time that the clocks leap over',
      '2026-03-08T12:00:00Z',
      '02:30',
      'America/New_York',
      '2026-03-08T07:00:00Z',
      23.5,
    ],
    [
      'of Tehran knew summer time until 2022',
      '2022-03-22T12:00:00Z',
      '00:00',
      'Asia/Tehran',
      '2022-03-21T20:30:00Z',
      23,
    ],
  ] as const)('%s', (_, now, resetsAt, timeZone, start, hours) => {
    const day = budgetDay(at(now), { resetsAt, timeZone })
    expect(new Date(day.startMs).toISOString().replace('.000', '')).toBe(start)
    expect((day.endMs - day.startMs) / hourMs).toBe(hours)
  })

  it('of any zone and reset time holds its instant, is 22 to 26 hours long, and the next one begins where it ends', () => {
    const zones = fc.constantFrom(
      'Asia/Tehran',
      'Europe/Berlin',
      'America/New_York',
      'Australia/Lord_Howe',
      'UTC',
    )
    const instants = fc.integer({ min: at('2020-01-01T00:00:00Z'), max: at('2030-01-01T00:00:00Z') })
    const clock = fc
      .tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
      .map(([hour, minute]) => `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`)
    fc.assert(
      fc.property(zones, instants, clock, (timeZone, nowMs, resetsAt) => {
        const day = budgetDay(nowMs, { resetsAt, timeZone })
        expect(nowMs).toBeGreaterThanOrEqual(day.startMs)
        expect(nowMs).toBeLessThan(day.endMs)
        expect(day.endMs - day.startMs).toBeGreaterThanOrEqual(22 * hourMs)
        expect(day.endMs - day.startMs).toBeLessThanOrEqual(26 * hourMs)
        const next = budgetDay(day.endMs, { resetsAt, timeZone })
        expect(next.startMs).toBe(day.endMs)
        expect(next.key).not.toBe(day.key)
      }),
      { numRuns: 300 },
    )
  })
})
