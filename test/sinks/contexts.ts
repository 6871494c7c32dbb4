import type { AlertContext } from '../../src/alert/context.ts'

/** What was bought for an alert, as messages are given it. */
export const contextAt = '2026-11-21T05:30:06.000Z'
const closes = [4_870, 4_905, 4_990, 5_040, 5_010, 5_120, 5_160, 5_230]

export function contextOf(
  parts: Readonly<Record<string, unknown>>,
  names: AlertContext['names'] = {},
): AlertContext {
  const read = Object.entries(parts).map(([name, data]) => [name, { data, at: contextAt }])
  return { parts: Object.fromEntries(read), skipped: [{ what: 'indicators', why: 'budget' }], names }
}

export const whole = contextOf({
  price: { symbol: 'فولاد', last: 5_230, change: 1.36, unit: 'rial' },
  chart: { unit: 'rial', points: closes.map((close, index) => ({ date: `2026-11-${14 + index}`, close })) },
  indicators: { seriesHash: 'a', indicators: { rsi: 74.2, mfi: 50, stoch_k: 11.27, willr: -82.79 } },
  filing: { title: 'اطلاعات و صورت‌های مالی', periodMonths: 12 },
  ownership: {
    summary: {
      holders: [
        { name: 'هلدینگ', percent: 41.5 },
        { name: 'صندوق', percent: null },
      ],
    },
  },
  valuation: [{ gapAtSave: 10, gapNow: 12.4 }],
  'macro:usd_free': [{ key: 'usd_free', unit: 'toman', points: [{ value: 93_100 }, { value: 93_600 }] }],
})

/** Markup, mentions, marks of direction, controls and length, in every text that context may bring. */
const nasty =
  '<!channel> *b* _i_ `c` <https://evil.example|x> <img src=x onerror=alert(1)> &amp; @here #tag :fire: \u202eLTR\u2067 \u001b[31m\r\nBcc: a@b \ud800'
export const evil = contextOf({
  price: { last: 5_230, unit: nasty.repeat(50), changePercent: '9%' },
  chart: { unit: nasty, points: closes.map((close) => ({ close })) },
  filing: { title: nasty.repeat(500), periodMonths: 1e300 },
  ownership: { summary: { holders: Array(900).fill({ name: nasty.repeat(20), percent: 33.333 }) } },
  [`macro:${'x'.repeat(100)}`]: [{ unit: nasty, points: [{ value: -0.00001 }] }],
})
