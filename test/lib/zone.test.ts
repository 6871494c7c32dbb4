import { expect, it, vi } from 'vitest'
import { wallTime } from '../../src/lib/zone.ts'

const dayMs = 86_400_000
const quarterMs = 900_000

function shown(atMs: number, timeZone: string): string {
  return new Date(wallTime(atMs, timeZone)).toISOString().slice(0, 19)
}

it.each([
  ['America/New_York', '2026-11-01T05:59:59Z', '2026-11-01T01:59:59', '2026-11-01T01:00:00'],
  ['Europe/Berlin', '2027-03-28T00:59:59Z', '2027-03-28T01:59:59', '2027-03-28T03:00:00'],
  // By half an hour.
  ['Australia/Lord_Howe', '2027-04-03T14:59:59Z', '2027-04-04T01:59:59', '2027-04-04T01:30:00'],
])('a clock in %s changes at the second at which the zone does', (timeZone, at, before, after) => {
  const atMs = Date.parse(at)
  expect(shown(atMs, timeZone)).toBe(before)
  expect(shown(atMs + 1_000, timeZone)).toBe(after)
})

it('a day without a change of the clock takes two questions to Intl, not one for each quarter of an hour', () => {
  const asked = vi.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts')
  const startMs = Date.parse('2026-06-10T00:00:00Z')
  for (let at = startMs; at < startMs + dayMs; at += quarterMs) wallTime(at, 'Asia/Tokyo')
  expect(asked).toHaveBeenCalledTimes(2)
  asked.mockRestore()
})
