import { describe, expect, it } from 'vitest'
import { believedAt, datedAt, dateLimits, doubtOf } from '../../src/alert/fired-at.ts'

const escapeByte = String.fromCharCode(27)
const nowMs = Date.parse('2026-11-21T09:00:00Z')

describe('a firing time', () => {
  it.each([
    '2026-11-21T08:59:59Z',
    '2026-11-21T12:29:59.5+03:30',
    '2026-11-21',
    'Sat, 21 Nov 2026 08:59:59 GMT',
  ])('%s is one', (text) => {
    expect(datedAt(text)).toBe(Date.parse(text))
    expect(doubtOf(text, nowMs)).toBeNull()
  })

  it.each([
    '1405-08-30T09:00:00Z',
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00Z',
    '1601-01-01T00:00:00Z',
    '1900-01-01T00:00:00Z',
    '1970-01-01T00:00:00Z',
    '1980-01-01T00:00:00Z',
    '2000-01-01T00:00:00Z',
    'some day',
    '7 apples',
    '5',
    '1767225600',
    '',
    7,
    null,
    undefined,
    ['2026-11-21T09:00:00Z'],
  ])('%j is none', (text) => {
    expect(datedAt(text)).toBeNull()
    expect(doubtOf(text, nowMs)).not.toBeNull()
  })

  it.each(['9999-12-31T23:59:59Z', '2027-01-01T00:00:00Z', '2026-11-21T09:01:01Z'])(
    '%s lies ahead, and is not believed before its time',
    (text) => {
      const datedMs = datedAt(text) ?? 0
      expect(believedAt(datedMs, nowMs)).toBeNull()
      expect(doubtOf(text, nowMs)).toContain('lies more than 1m ahead')
      expect(believedAt(datedMs, datedMs - dateLimits.aheadMsMax)).toBe(datedMs)
    },
  )

  it.each(['1405-08-30T09:00:00Z', '1405/08/30 12:30', '1405/8/30', '۱۴۰۵/۰۸/۳۰ ۱۲:۳۰', '١٤٠٥-٠٨-٣٠'])(
    '%s is known for one of the Jalali calendar',
    (text) => {
      expect(doubtOf(text, nowMs)).toContain('Jalali calendar, which is 2026-11-21 of the Gregorian')
    },
  )

  it.each(['1405-13-01', '1405-08-31', '1205-01-01', '14050830', '1405-08-300'])('%s is not', (text) => {
    expect(doubtOf(text, nowMs)).not.toContain('Jalali')
  })

  it('is quoted in one short line', () => {
    const text = doubtOf(`x${escapeByte}[31m\n${'y'.repeat(500)}`, nowMs) ?? ''
    expect(text.length).toBeLessThan(120)
    expect(text).not.toContain(escapeByte)
    expect(text).not.toContain('\n')
  })
})
