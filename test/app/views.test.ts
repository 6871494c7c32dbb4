import { expect, test } from 'vitest'
import { deliveryRow } from '../../src/app/operator-api/views.ts'
import type { JobView } from '../../src/delivery/records/job-view.ts'

const alert = {
  source: 'main',
  id: 7,
  kind: 'price',
  symbol: 'فولاد',
  headline: 'headline',
  url: 'https://market.example.com/7',
  why: null,
  ruleIds: ['12'],
  firedAt: '2026-11-21T05:30:00Z',
}
const view: JobView = {
  sink: 'hook',
  jobId: 'main.7',
  state: 'completed',
  alert,
  attempts: 1,
  changedAtMs: 0,
}

test('a row of a list shows an alert as it came', () => {
  expect(deliveryRow(view)).toMatchObject(alert)
})

test('a row of a list stays a row, however much upstream wrote into a field', () => {
  const long = 'متن long '.repeat(200_000)
  const fields = {
    kind: long,
    symbol: long,
    headline: long,
    why: long,
    firedAt: long,
    ruleIds: Array(90_000).fill(long),
  }
  const row = deliveryRow({ ...view, alert: { ...alert, ...fields, url: `https://x.example/${long}` } })
  expect(JSON.stringify(row).length).toBeLessThan(30_000)
  expect(row.headline).toMatch(/^متن long .*…$/)
  // Half an address leads elsewhere.
  expect(row.url).toBe('')
})
