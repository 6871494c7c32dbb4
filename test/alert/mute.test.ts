import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { describeMute, type Mute, mutedUntil } from '../../src/alert/mute.ts'

const allDay: Mute = { from: '00:00', to: '24:00', timeZone: 'Asia/Tehran', holidays: [] }
const night: Mute = { ...allDay, days: ['thu', 'fri'], from: '22:00', to: '06:00' }

function until(mutes: readonly Mute[], at: string): string | undefined {
  const untilMs = mutedUntil(mutes, Date.parse(at))
  return untilMs === undefined ? undefined : new Date(untilMs).toISOString()
}

afterEach(() => {
  vi.restoreAllMocks()
})

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
    // It began at 02:30; half an hour later the clock shows 02:00 again.
    const short = { ...berlin, from: '02:30', to: '03:00' }
    expect(until([short], '2026-10-25T01:10:00Z')).toBe('2026-10-25T02:00:00.000Z')
    expect(until([{ ...short, from: '02:00', to: '02:30' }], '2026-10-25T01:10:00Z')).toBeUndefined()
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
          // A copy of the list: of the list itself the end is known.
          expect(mutedUntil([...mutes], end - 1)).toBe(end)
        },
      ),
    )
  })

  it('that never ends is not gone through again for each alert', () => {
    const muted = [{ ...allDay }, { ...allDay, timeZone: 'Europe/Berlin' }]
    const atMs = Date.parse('2026-11-19T10:00:00Z')
    const end = mutedUntil(muted, atMs)
    const questions = vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts')
    for (let alert = 1; alert < 100; alert += 1) expect(mutedUntil(muted, atMs + alert * 60_000)).toBe(end)
    expect(questions.mock.calls.length).toBeLessThan(20)
    // A clock that was set back asks again.
    expect(mutedUntil([night, ...muted], Date.parse('2026-01-01T00:00:00Z'))).toBeGreaterThan(atMs)
    expect(mutedUntil(muted, Date.parse('2025-01-01T00:00:00Z'))).toBeLessThan(end ?? 0)
  })

  it('made of a span for each minute looks at the dates of few of them', () => {
    const clock = (minute: number) => new Date(minute * 60_000).toISOString().slice(11, 16)
    const minutes = Array.from({ length: 1_440 }, (_, minute) => ({
      ...allDay,
      ...{ from: clock(minute), to: clock((minute + 1) % 1_440) },
    }))
    const dates = vi.spyOn(Date.prototype, 'toISOString')
    expect(mutedUntil(minutes, Date.parse('2026-11-19T10:00:00Z'))).toBeDefined()
    expect(dates.mock.calls.length).toBeLessThan(5_000)
  })

  it('is told to people', () => {
    expect(describeMute({ ...night, holidays: ['2026-11-25'] })).toBe(
      'thu, fri, 1 holiday 22:00–06:00 Asia/Tehran',
    )
    expect(describeMute(allDay)).toBe('every day 00:00–24:00 Asia/Tehran')
  })
})
