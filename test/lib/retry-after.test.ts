import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseRetryAfter } from '../../src/lib/retry-after.ts'

const nowMs = Date.parse('2026-11-21T09:00:00Z')

describe('Retry-After', () => {
  const zone = process.env['TZ']
  beforeAll(() => {
    process.env['TZ'] = 'Asia/Tehran'
  })
  afterAll(() => {
    if (zone === undefined) delete process.env['TZ']
    else process.env['TZ'] = zone
  })

  it.each([
    'Sat, 21 Nov 2026 09:00:30 GMT',
    'Saturday, 21-Nov-26 09:00:30 GMT',
    'Sat Nov 21 09:00:30 2026',
    'Sat, 21 Nov 2026 09:00:30',
    'Sat, 21 Nov 2026 12:30:30 +0330',
  ])('means the same instant wherever the bridge runs: %s', (header) => {
    expect(new Date(nowMs).getTimezoneOffset()).toBe(-210)
    expect(parseRetryAfter(header, nowMs)).toBe(30_000)
  })

  it('reads the day of asctime that has one digit', () => {
    expect(parseRetryAfter('Sun Nov  6 08:49:37 1994', Date.UTC(1994, 10, 6, 8, 49, 30))).toBe(7_000)
  })

  it.each([
    ['7', 7_000],
    ['0', 0],
    ['1.5', 1_500],
    ['Sat, 21 Nov 2026 09:00:30 GMT', 30_000],
    ['Saturday, 21-Nov-26 09:00:30 GMT', 30_000],
    ['Sat, 21 Nov 2026 08:00:00 GMT', 0],
  ])('of %s is %d ms', (header, ms) => {
    expect(parseRetryAfter(header, nowMs)).toBe(ms)
  })

  it.each([
    undefined,
    null,
    '',
    'soon',
    '-5',
    '7 apples',
    '2026-11-21',
    'NaN',
    'Someday, when I like',
    'Sat 5',
    'Saturday, soon',
  ])('of %j says nothing', (header) => {
    expect(parseRetryAfter(header, nowMs)).toBeUndefined()
  })
})
