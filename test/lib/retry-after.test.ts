import { describe, expect, it } from 'vitest'
import { parseRetryAfter } from '../../src/lib/retry-after.ts'

const nowMs = Date.parse('2026-11-21T09:00:00Z')

describe('Retry-After', () => {
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

  it.each([undefined, null, '', 'soon', '-5', '7 apples', '2026-11-21', 'NaN', 'Someday, when I like'])(
    'of %j says nothing',
    (header) => {
      expect(parseRetryAfter(header, nowMs)).toBeUndefined()
    },
  )
})
