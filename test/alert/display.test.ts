import { describe, expect, test } from 'vitest'
import type { Alert } from '../../src/alert/alert.ts'
import { type Display, firedTime, linkOf, localDay, titleOf } from '../../src/alert/text/display.ts'
import { alertOf } from '../sinks/samples.ts'

const at = (firedAt: string): Alert => alertOf({ firedAt })
const tehran = (calendar: Display['calendar'], language: Display['language']): Display => ({
  timeZone: 'Asia/Tehran',
  calendar,
  language,
})

describe('the fired time', () => {
  const autumn = at('2026-11-21T05:30:05Z')

  test.each([
    ['jalali', 'fa', 'شنبه ۳۰ آبان ۱۴۰۵، ساعت ۰۹:۰۰:۰۵ به وقت ایران'],
    ['gregorian', 'fa', 'شنبه ۲۱ نوامبر ۲۰۲۶، ساعت ۰۹:۰۰:۰۵ به وقت ایران'],
    ['both', 'fa', 'شنبه ۳۰ آبان ۱۴۰۵ (۲۱ نوامبر ۲۰۲۶)، ساعت ۰۹:۰۰:۰۵ به وقت ایران'],
    ['jalali', 'en', 'Saturday, 30 Aban 1405, 09:00:05 Iran Time'],
    ['gregorian', 'en', 'Saturday, 21 November 2026, 09:00:05 Iran Time'],
    ['both', 'en', 'Saturday, 30 Aban 1405 (21 November 2026), 09:00:05 Iran Time'],
  ] as const)('in the %s calendar for readers of %s', (calendar, language, text) => {
    expect(firedTime(autumn, tehran(calendar, language))).toBe(text)
  })

  test('follows the zone, its summer time of old years included', () => {
    const summer = (year: number) => firedTime(at(`${year}-07-01T12:00:00Z`), tehran('gregorian', 'en'))
    expect(summer(2022)).toContain('16:30:00')
    expect(summer(2026)).toContain('15:30:00')
    const utc = firedTime(autumn, { timeZone: 'UTC', calendar: 'gregorian', language: 'fa' })
    expect(utc).toBe('شنبه ۲۱ نوامبر ۲۰۲۶، ساعت ۰۵:۳۰:۰۵ UTC')
  })

  test('names no summer time by the letters of winter', () => {
    const berlin: Display = { timeZone: 'Europe/Berlin', calendar: 'gregorian', language: 'en' }
    expect(firedTime(at('2026-07-01T12:00:00Z'), berlin)).toContain('14:00:00 CEST')
    expect(firedTime(autumn, berlin)).toContain('06:30:05 CET')
  })

  test('changes its day at midnight of the zone, and its year at Nowruz', () => {
    expect(firedTime(at('2026-03-20T20:29:59Z'), tehran('jalali', 'en'))).toContain(
      '29 Esfand 1404, 23:59:59',
    )
    expect(firedTime(at('2026-03-20T20:30:00Z'), tehran('jalali', 'en'))).toContain(
      '1 Farvardin 1405, 00:00:00',
    )
  })

  test('of 9999-12-31T23:59:59Z is still a text', () => {
    expect(firedTime(at('9999-12-31T23:59:59Z'), tehran('both', 'fa'))).toMatch(/ساعت/)
  })

  test('that is no date, or one that cannot be true, is shown as it came', () => {
    expect(firedTime(at('yesterday\n noon'), tehran('both', 'fa'))).toBe('yesterday noon')
    expect(firedTime(at('1405-08-30T12:30:00+03:30'), tehran('both', 'fa'))).toBe('1405-08-30T12:30:00+03:30')
  })
})

test('a local day is the Gregorian date where the reader is', () => {
  const ms = Date.parse('2026-11-20T21:00:00Z')
  expect(localDay(ms, 'Asia/Tehran')).toBe('2026-11-21')
  expect(localDay(ms, 'America/New_York')).toBe('2026-11-20')
})

describe('a link', () => {
  test.each([
    ['https://example.com/a?b=1&c=2#d', 'https://example.com/a?b=1&c=2#d'],
    [' http://example.com ', 'http://example.com/'],
    ['https://مثال.com/فولاد', 'https://xn--mgbh0fb.com/%D9%81%D9%88%D9%84%D8%A7%D8%AF'],
    ['https://example.com/a|b>c"d', 'https://example.com/a%7Cb%3Ec%22d'],
    ['https://example.com/a\r\nb', 'https://example.com/ab'],
    ['https://example.com/USD_IRR~1*', 'https://example.com/USD_IRR~1*'],
  ])('of %j is %s', (url, link) => {
    expect(linkOf(alertOf({ url }))).toBe(link)
  })

  test.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'mailto:a@b',
    '',
  ])('is not made of %j', (url) => {
    expect(linkOf(alertOf({ url }))).toBeUndefined()
  })

  test('does not hide where it leads behind a user name', () => {
    expect(linkOf(alertOf({ url: 'https://bank.example@evil.example/' }))).toBeUndefined()
  })
})

test('an alert without a headline is called by what it has', () => {
  expect(titleOf(alertOf({ headline: ' a \n b ' }))).toBe('a b')
  expect(titleOf(alertOf({ headline: '\u202e' }))).toBe('فولاد · price')
  expect(titleOf(alertOf({ headline: '', symbol: null, kind: ' ' }))).toBe('main 4711')
})
