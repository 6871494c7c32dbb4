import { type Alert, parseRow } from '../../src/alert/alert.ts'
import type { Display } from '../../src/alert/text/display.ts'

export const persianDisplay: Display = { timeZone: 'Asia/Tehran', calendar: 'both', language: 'fa' }
export const englishDisplay: Display = { timeZone: 'Asia/Tehran', calendar: 'both', language: 'en' }

const base = {
  id: 4711,
  kind: 'price',
  symbol: 'فولاد',
  slug: 'foolad',
  payload: [],
  headline: 'فولاد از مرز ۵٬۲۰۰ ریال گذشت',
  url: 'https://example.com/alerts/4711?ref=feed&tab=rules',
  why: 'آخرین قیمت ۵٬۲۱۰ ریال است و از حد بالای ۵٬۲۰۰ ریال گذشت.\nحجم معاملات امروز (TSE: FOLD) دو برابر میانگین ۳۰ روز است.',
  ruleIds: ['12', '40'],
  firedAt: '2026-11-21T05:30:05Z',
  notifiedAt: '2026-11-21T05:30:06Z',
  channels: ['push'],
  isRead: false,
}

export function alertOf(fields: Readonly<Record<string, unknown>> = {}): Alert {
  const parsed = parseRow('main', { ...base, ...fields })
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.alert
}

export const persian = alertOf()

export const english = alertOf({
  id: 4712,
  kind: 'screen',
  symbol: 'XAU_USD',
  headline: 'Gold crossed above its 200-day average (XAU_USD 4,120.50)',
  why: 'Close 4,120.50 > SMA(200) 4,118.20\n1 new match on screen "Trend followers"',
  ruleIds: ['7'],
})

/** Everything that upstream text could try at once. */
export const hostile = alertOf({
  id: 4713,
  kind: 'price`*_~',
  symbol: '\u202eDLOG\u202c <@U024BE7LH>',
  headline:
    '<!channel> <https://evil.example|bank> *bold* _it_ ~no~ `code` :fire:\r\nBcc: victim@example.com <img src=x onerror=alert(1)> & {{constructor}} \u0024{7*7} \u001b[31m\ud800 @here #general',
  url: 'https://example.com/a|b>c<d"e\'f`g?q=<!channel>',
  why: '> quoted\n&gt; again\n```block```\n<script>alert(1)</script>\n"><svg onload=alert(1)>\n\u2067\u202eevil.example/moc.knab//:sptth',
  ruleIds: ['<b>', 'x'.repeat(400)],
})
