import { type Alert, parseRow } from './alert.ts'

/** One alert as the feed shows them, for trying a sink or a template. Its id is one that no feed uses. */
export function sampleAlert(nowMs: number): Alert {
  const firedAt = new Date(nowMs).toISOString()
  const parsed = parseRow('test', {
    id: Number.MAX_SAFE_INTEGER - (nowMs % 1_000_000_000),
    kind: 'price',
    symbol: 'فولاد',
    slug: 'foolad',
    payload: ['last=5230', 'threshold=5200'],
    headline: 'آزمایش: قیمت فولاد از ۵٬۲۰۰ ریال گذشت',
    url: 'https://example.com/alerts/test',
    why: 'پیام آزمایشی alert-bridge؛ هیچ هشداری رخ نداده است',
    ruleIds: ['0'],
    firedAt,
    notifiedAt: null,
    channels: ['test'],
    isRead: false,
  })
  if (!parsed.ok) throw new Error(`the sample does not parse: ${parsed.reason}`)
  return parsed.alert
}
