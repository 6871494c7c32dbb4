import type { LagView } from '../admin/views/status-view.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/**
 * Quantiles of a lag histogram for each value of a label, by linear interpolation within a bucket as Prometheus'
 * histogram_quantile does it, over all that this process measured since it started. It is read once for all of them: there
 * may be a thousand sources.
 */
export async function lagsBy(
  histogram: Metrics['detectionLag'] | Metrics['deliveryLag'],
  label: 'source' | 'sink',
): Promise<ReadonlyMap<string, LagView>> {
  const { values } = await histogram.get()
  const counts = new Map<string, Map<number, number>>()
  for (const { metricName, labels, value } of values) {
    if (!metricName?.endsWith('_bucket')) continue
    const { [label]: name = '', le } = labels as Readonly<Record<string, string | number>>
    const own = counts.get(String(name)) ?? new Map<number, number>()
    const bound = Number(String(le).replace('+Inf', 'Infinity'))
    counts.set(String(name), own.set(bound, (own.get(bound) ?? 0) + value))
  }
  const lags = new Map<string, LagView>()
  for (const [name, own] of counts) {
    const buckets = [...own].sort(([a], [b]) => a - b)
    const p50 = quantile(buckets, 0.5)
    const p95 = quantile(buckets, 0.95)
    if (p50 !== undefined && p95 !== undefined) lags.set(name, { p50, p95 })
  }
  return lags
}

/** `buckets`: upper bounds with cumulative counts, ascending, the last one infinite. Pure. */
export function quantile(buckets: readonly (readonly [number, number])[], share: number): number | undefined {
  const total = buckets.at(-1)?.[1] ?? 0
  if (total === 0) return undefined
  const rank = share * total
  const index = buckets.findIndex(([, count]) => count >= rank)
  const [upper, count] = buckets[index] ?? [Number.POSITIVE_INFINITY, total]
  const [lower, below] = index > 0 ? (buckets[index - 1] ?? [0, 0]) : [0, 0]
  // Above the last bound the histogram has no more detail.
  if (!Number.isFinite(upper)) return lower
  return count === below ? upper : lower + ((upper - lower) * (rank - below)) / (count - below)
}
