import type { LagView } from '../admin/status-view.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/**
 * Quantiles of a lag histogram, by linear interpolation within a bucket as Prometheus' histogram_quantile does it, over
 * all that this process measured since it started.
 */
export async function lagOf(
  histogram: Metrics['detectionLag'] | Metrics['deliveryLag'],
  labels: Readonly<Record<string, string>>,
): Promise<LagView | null> {
  const { values } = await histogram.get()
  const counts = new Map<number, number>()
  for (const { metricName, labels: own, value } of values) {
    const fits = Object.entries(labels).every(([name, wanted]) => own[name as keyof typeof own] === wanted)
    if (!fits || !metricName?.endsWith('_bucket')) continue
    const bound = Number(String((own as Record<string, unknown>)['le']).replace('+Inf', 'Infinity'))
    counts.set(bound, (counts.get(bound) ?? 0) + value)
  }
  const buckets = [...counts].sort(([a], [b]) => a - b)
  const p50 = quantile(buckets, 0.5)
  const p95 = quantile(buckets, 0.95)
  return p50 === undefined || p95 === undefined ? null : { p50, p95 }
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
