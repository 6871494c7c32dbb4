import { type Alert, parseRow } from '../../src/alert/alert.ts'

export const nowMs = Date.parse('2026-11-21T09:00:00Z')

export function alertOf(id: number, fields: Record<string, unknown> = {}, source = 'main'): Alert {
  const row = {
    id,
    kind: 'price',
    symbol: 'فولاد',
    payload: [],
    headline: 'h',
    url: 'https://example.com/7',
    ruleIds: ['1'],
    firedAt: '2026-11-21T09:00:00Z',
    channels: [],
    isRead: false,
    ...fields,
  }
  const parsed = parseRow(source, row)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.alert
}
