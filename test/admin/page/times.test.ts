import { expect, test } from 'vitest'
import { createTimes } from '../../../src/admin/page/times.ts'

const now = '2026-11-21T05:30:00Z'
const nowMs = Date.parse(now)
const times = (calendar: 'jalali' | 'gregorian' | 'both', timeZone = 'Asia/Tehran') =>
  createTimes({ calendar, timeZone, language: 'en' }, nowMs)

test('dates are written in the configured calendar and zone', () => {
  expect(times('jalali').date(now)).toBe('1405/08/30')
  expect(times('gregorian').date(now)).toBe('2026-11-21')
  expect(times('both').date(now)).toBe('1405/08/30 · 2026-11-21')
  expect(times('jalali').clock(now)).toBe('09:00:00')
  expect(times('gregorian', 'UTC').clock(now)).toBe('05:30:00')
})

test('the day changes at midnight of the zone', () => {
  expect(times('jalali').isToday('2026-11-20T20:30:00Z')).toBe(true)
  expect(times('jalali').isToday('2026-11-20T20:29:59Z')).toBe(false)
  expect(times('jalali').clock('2026-11-20T20:30:00Z')).toBe('00:00:00')
})

test.each([
  [-12_000, '12s ago'],
  [-400, 'now'],
  [8_600, 'in 9s'],
  [-3_930_000, '1h 5m ago'],
  [86_400_000, 'in 1d'],
])('%i ms from now reads "%s"', (ms, text) => {
  expect(times('jalali').distance(new Date(nowMs + ms).toISOString()).markup).toContain(`>${text}</time>`)
})

test('a distance carries the instant for machines and the full time for people', () => {
  expect(times('jalali').distance(now).markup).toBe(
    `<time data-age datetime="${now}" title="1405/08/30 09:00:00">now</time>`,
  )
})

test('a text that is no time is shown as it came, never as an error', () => {
  expect(times('both').clock('soon')).toBe('soon')
  expect(times('both').date('<b>')).toBe('<b>')
  expect(times('both').distance('<b>').markup).toBe(
    '<time data-age datetime="&lt;b&gt;" title="&lt;b&gt; &lt;b&gt;">at an unknown time</time>',
  )
})

test('numbers are grouped, and a dash stands for what is not known', () => {
  const { words } = times('jalali')
  expect(words.count(12_480)).toBe('12,480')
  expect(words.count(null)).toBe('–')
  expect([words.alerts(1), words.alerts(2_000)]).toEqual(['1 alert', '2,000 alerts'])
  expect(words.duration(80_000)).toBe('1m 20s')
})

test('a Persian page has Persian digits, units and order', () => {
  const persian = createTimes({ calendar: 'both', timeZone: 'Asia/Tehran', language: 'fa' }, nowMs)
  const { words } = persian
  expect([persian.date(now), persian.clock(now)]).toEqual(['۱۴۰۵/۰۸/۳۰، ۲۰۲۶/۱۱/۲۱', '۰۹:۰۰:۰۰'])
  expect([words.count(12_480), words.count(null), words.percent(62)]).toEqual(['۱۲٬۴۸۰', '–', '۶۲٪'])
  expect([8_400, 80_000, 93_600_000, 850].map(words.duration)).toEqual([
    ...['۸٫۴ ثانیه', '۱ دقیقه و ۲۰ ثانیه', '۱ روز و ۲ ساعت', '۸۵۰ میلی‌ثانیه'],
  ])
  const distance = (ms: number) => persian.distance(new Date(nowMs + ms).toISOString()).markup
  expect(distance(-12_000)).toContain('>۱۲ ثانیه پیش</time>')
  expect(distance(9_000)).toContain('>۹ ثانیه دیگر</time>')
})
