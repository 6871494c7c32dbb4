import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeMute, type Mute, mutedUntil } from '../../src/alert/mute.ts'

const allDay: Mute = { from: '00:00', to: '24:00', timeZone: 'Asia/Tehran', holidays: [] }
const night: Mute = { ...allDay, days: ['thu', 'fri'], from: '22:00', to: '06:00' }

function until(mutes: readonly Mute[], at: string): string | undefined {
  const untilMs = mutedUntil(mutes, Date.parse(at))
  return untilMs === undefined ? undefined : new Date(untilMs).toISOString()
}

/** 2026-11-19 is a Thursday; Tehran is at +03:30 all year. */
describe('a mute', () => {
  it.each([
    ['before it begins', '2026-11-19T21:59:59+03:30', undefined],
    ['from its first moment', '2026-11-19T22:00:00+03:30', '2026-11-20T06:00:00+03:30'],
    ['over midnight, by the day on which it began', '2026-11-20T03:00:00+03:30', '2026-11-20T06:00:00+03:30'],
    ['until its last moment', '2026-11-20T06:00:00+03:30', undefined],
    ['into a day that is not named', '2026-11-21T05:59:59+03:30', '2026-11-21T06:00:00+03:30'],
    ['on a day that is not named', '2026-11-21T23:00:00+03:30', undefined],
    ['before a named day began it', '2026-11-19T03:00:00+03:30', undefined],
  ])('%s', (_, at, end) => {
    expect(until([night], at)).toBe(end && new Date(end).toISOString())
  })

  it('holds on holidays as on the named days', () => {
    const holiday = { ...allDay, days: ['fri' as const], holidays: ['2026-11-25'] }
    expect(until([holiday], '2026-11-25T12:00:00+03:30')).toBe('2026-11-25T20:30:00.000Z')
    expect(until([holiday], '2026-11-24T12:00:00+03:30')).toBeUndefined()
    const alone = { ...allDay, holidays: ['2026-11-25'] }
    expect(until([alone], '2026-11-20T12:00:00+03:30')).toBeUndefined()
  })

  it('tells the end of all spans that follow on each other', () => {
    const weekend = { ...allDay, days: ['thu' as const, 'fri' as const] }
    const morning = { ...allDay, days: ['sat' as const], to: '08:00' }
    expect(until([morning, weekend], '2026-11-19T10:00:00+03:30')).toBe('2026-11-21T04:30:00.000Z')
  })

  it('of every minute ends some day', () => {
    const atMs = Date.parse('2026-11-19T10:00:00Z')
    expect(mutedUntil([allDay], atMs)).toBeGreaterThan(atMs + 300 * 86_400_000)
  })

  it('is as long as its clock says where clocks change', () => {
    const berlin = { ...allDay, from: '01:00', to: '04:00', timeZone: 'Europe/Berlin' }
    // From 02:00 to 03:00 that night the clock shows nothing, and in autumn everything twice.
    expect(until([berlin], '2026-03-29T00:30:00Z')).toBe('2026-03-29T02:00:00.000Z')
    expect(until([berlin], '2026-10-25T00:30:00Z')).toBe('2026-10-25T03:00:00.000Z')
  })

  it('is over at the end that it tells, and holds until then', () => {
    const spans = fc.record({
      days: fc.option(fc.uniqueArray(fc.constantFrom('mon', 'thu', 'fri'), { minLength: 1 }), {
        nil: undefined,
      }),
      from: fc.constantFrom('00:00', '08:30', '22:00'),
      to: fc.constantFrom('06:00', '12:45', '24:00'),
      timeZone: fc.constantFrom('Asia/Tehran', 'Europe/Berlin', 'UTC'),
      holidays: fc.constantFrom([], ['2026-11-25']),
    })
    const start = Date.parse('2026-10-20T00:00:00Z')
    fc.assert(
      fc.property(
        fc.array(spans, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 0, max: 60 * 86_400 }),
        (mutes, seconds) => {
          const atMs = start + seconds * 1_000
          const end = mutedUntil(mutes, atMs)
          fc.pre(end !== undefined && end < atMs + 90 * 86_400_000)
          expect(mutedUntil(mutes, end)).toBeUndefined()
          expect(mutedUntil(mutes, end - 1)).toBe(end)
        },
      ),
    )
  })

  it('is told to people', () => {
    expect(describeMute({ ...night, holidays: ['2026-11-25'] })).toBe(
      'thu, fri, 1 holiday 22:00–06:00 Asia/Tehran',
    )
    expect(describeMute(allDay)).toBe('every day 00:00–24:00 Asia/Tehran')
  })
})
