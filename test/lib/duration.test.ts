import { describe, expect, it } from 'vitest'
import { formatDuration, parseDuration } from '../../src/lib/duration.ts'

describe('a duration', () => {
  it.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['1.5s', 1_500],
    ['15m', 900_000],
    ['6h', 21_600_000],
    ['3d', 259_200_000],
    [' 10s ', 10_000],
    ['0s', 0],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  it.each(['', '10', '10 s', '-5s', '1h30m', '5w', 's', '1e3s', '١٠s'])('does not read %j', (text) => {
    expect(parseDuration(text)).toBeUndefined()
  })

  it.each([
    [0, '0ms'],
    [850, '850ms'],
    [12_500, '12.5s'],
    [180_000, '3m'],
    [4_800_000, '1h 20m'],
    [187_200_000, '2d 4h'],
    [-2_000, '-2s'],
    [Number.POSITIVE_INFINITY, 'never'],
  ])('%d ms reads as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })
})
