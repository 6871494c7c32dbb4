import { describe, expect, test } from 'vitest'
import { digestMark } from '../../src/delivery/message/digest.ts'

const quarter = 900_000
const hour = 3_600_000
const day = 24 * hour

function markAfter(at: string, everyMs: number, timeZone: string): string {
  return new Date(digestMark(Date.parse(at), everyMs, timeZone)).toISOString()
}

describe('the mark of a digest', () => {
  test.each([
    ['2026-11-21T05:31:00Z', quarter, 'Asia/Tehran', '2026-11-21T05:45:00.000Z'],
    ['2026-11-21T05:45:00Z', quarter, 'Asia/Tehran', '2026-11-21T06:00:00.000Z'],
    // Half past by UTC is the full hour in Tehran.
    ['2026-11-21T05:31:00Z', hour, 'Asia/Tehran', '2026-11-21T06:30:00.000Z'],
    ['2026-11-21T05:31:00Z', hour, 'UTC', '2026-11-21T06:00:00.000Z'],
    ['2026-11-21T05:31:00Z', day, 'Asia/Tehran', '2026-11-21T20:30:00.000Z'],
    ['2026-11-21T20:30:00Z', day, 'Asia/Tehran', '2026-11-22T20:30:00.000Z'],
  ])('after %s, every %i ms in %s, is %s', (at, everyMs, zone, mark) => {
    expect(markAfter(at, everyMs, zone)).toBe(mark)
  })

  test('is midnight on a day of 25 hours and on one of 23', () => {
    expect(markAfter('2026-10-25T00:30:00Z', day, 'Europe/Berlin')).toBe('2026-10-25T23:00:00.000Z')
    expect(markAfter('2026-03-29T00:30:00Z', day, 'Europe/Berlin')).toBe('2026-03-29T22:00:00.000Z')
  })

  test('is always ahead, and never further than a step and the hour that a clock change adds', () => {
    for (let at = Date.parse('2026-10-24T20:00:00Z'); at < Date.parse('2026-10-25T06:00:00Z'); at += 411_000)
      for (const everyMs of [60_000, quarter, hour]) {
        const mark = digestMark(at, everyMs, 'Europe/Berlin')
        expect(mark).toBeGreaterThan(at)
        expect(mark - at).toBeLessThanOrEqual(everyMs + hour)
      }
  })
})
