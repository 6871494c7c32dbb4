import { describe, expect, it } from 'vitest'
import { lagsBy, quantile } from '../../src/app/lag.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'

describe('a quantile of a histogram', () => {
  const buckets = [
    [1, 10],
    [2, 30],
    [5, 40],
    [Number.POSITIVE_INFINITY, 40],
  ] as const

  it.each([
    [0.25, 1],
    [0.5, 1.5],
    [0.75, 2],
    [1, 5],
  ])('%d lies at %d, interpolated within its bucket', (share, seconds) => {
    expect(quantile(buckets, share)).toBeCloseTo(seconds)
  })

  it('beyond the last bound is that bound', () => {
    expect(
      quantile(
        [
          [1, 0],
          [Number.POSITIVE_INFINITY, 4],
        ],
        0.5,
      ),
    ).toBe(1)
  })

  it('of nothing is unknown', () => {
    expect(
      quantile(
        [
          [1, 0],
          [Number.POSITIVE_INFINITY, 0],
        ],
        0.5,
      ),
    ).toBeUndefined()
  })
})

describe('the lag of a source', () => {
  it('is its own, summed over what the labels leave open', async () => {
    const { deliveryLag } = createMetrics({ version: '1', node: 'v24' })
    const observe = (labels: { source: string; sink: string }, value: number) =>
      deliveryLag.observe({ labels, value, exemplarLabels: { alert: 'main.1' } })
    for (const source of ['main', 'other']) observe({ source, sink: 'ops' }, 4)
    observe({ source: 'main', sink: 'desk' }, 100)
    const lags = await lagsBy(deliveryLag, 'sink')
    expect(lags.get('ops')?.p50).toBeGreaterThan(2.5)
    expect(lags.get('ops')?.p95).toBeLessThanOrEqual(5)
    expect(lags.get('desk')?.p50).toBeGreaterThan(60)
    expect([...lags.keys()]).toEqual(['ops', 'desk'])
  })
})
