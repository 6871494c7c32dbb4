import { type Alert, parseRow } from './alert.ts'
import type { AlertContext, ContextName } from './context.ts'

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

/**
 * Context of the sample, of what these names ask for: a price and a chart, so that people see how they look. The names of their
 * fields are examples, as in the sandbox: the API's document does not show them.
 */
export function sampleContext(names: readonly ContextName[], nowMs: number): AlertContext {
  const at = new Date(nowMs).toISOString()
  const instrument = { symbol: 'فولاد', slug: 'foolad', unit: 'rial' }
  const points = closes.map((close, index) => {
    const dayMs = nowMs - (closes.length - 1 - index) * 86_400_000
    return { date: new Date(dayMs).toISOString().slice(0, 10), close, halted: false }
  })
  const samples: Partial<Record<ContextName, unknown>> = {
    price: { ...instrument, last: closes.at(-1) },
    chart: { ...instrument, points },
  }
  const [known, others] = [
    names.filter((name) => name in samples),
    names.filter((name) => !(name in samples)),
  ]
  return {
    parts: Object.fromEntries(known.map((name) => [name, { data: samples[name], at }])),
    skipped: others.map((what) => ({ what, why: 'unavailable' as const })),
    names: {},
  }
}

const closes = [
  ...[4_870, 4_905, 4_990, 5_040, 5_010, 5_120, 5_090, 5_160, 5_080, 5_010],
  ...[4_960, 5_020, 5_070, 5_110, 5_050, 5_140, 5_180, 5_150, 5_190, 5_230],
]
