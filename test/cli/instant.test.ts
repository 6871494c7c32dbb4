import { describe, expect, it } from 'vitest'
import { isoInstantOf } from '../../src/cli/arguments/instant.ts'
import { UserError } from '../../src/lib/errors.ts'

const nowMs = Date.parse('2026-11-21T09:00:00Z')

describe('a time as operators type it', () => {
  it.each([
    ['2026-11-21T08:45:00Z', '2026-11-21T08:45:00.000Z'],
    ['2026-11-21T08:45:00.250Z', '2026-11-21T08:45:00.250Z'],
    ['2026-11-21T08:45:00+03:30', '2026-11-21T05:15:00.000Z'],
    ['2026-11-21T08:45+0330', '2026-11-21T05:15:00.000Z'],
    ['2h', '2026-11-21T07:00:00.000Z'],
    ['0s', '2026-11-21T09:00:00.000Z'],
    ['3650d', '2016-11-23T09:00:00.000Z'],
  ])('%s is %s', (text, instant) => {
    expect(isoInstantOf(text, '--since', nowMs)).toBe(instant)
  })

  it.each([
    'foo 5Z',
    '5Z',
    'Nov 21 2026 Z',
    '2026-11-21',
    '2026-11-21T08:45:00',
    '2026-02-31T08:45:00Z',
    '2026-11-21T25:00:00Z',
    '2026-11-21T08:45:00+99:99',
    '',
    'yesterday',
  ])('%s is none, and the sentence says what would be', (text) => {
    expect(() => isoInstantOf(text, '--since', nowMs)).toThrow(UserError)
    expect(() => isoInstantOf(text, '--since', nowMs)).toThrow(/^--since: .*2026-11-21T08:45:00\+03:30.*2h/)
  })

  it.each(['3651d', '99999999999d', `${'9'.repeat(400)}d`])('%s is longer ago than anything', (text) => {
    expect(() => isoInstantOf(text, '--since', nowMs)).toThrow(UserError)
    expect(() => isoInstantOf(text, '--since', nowMs)).toThrow(/at most 3650d/)
  })
})
