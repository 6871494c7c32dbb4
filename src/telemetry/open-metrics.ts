import { type Metric, type OpenMetricsContentType, Registry } from 'prom-client'

/**
 * The same metrics in the OpenMetrics format, which adds exemplars: one alert of each bucket of a histogram, by its id, so
 * that a slow bucket leads to `deliveries ID`. Ids are never labels: an exemplar makes no series.
 */
export function openMetricsText(registry: Registry): Promise<string> {
  const open = new Registry<OpenMetricsContentType>()
  open.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
  for (const metric of registry.getMetricsAsArray()) open.registerMetric(viewOf(metric as unknown as Metric))
  return open.metrics()
}

/** A counter's name has no `_total` in this format. The library would rename the metric itself; here only a view is renamed. */
function viewOf(metric: Metric): Metric {
  const { name, type } = metric as Metric & { name: string; type: unknown }
  const get = async () => {
    const values = await metric.get()
    return { ...values, name: values.name.replace(/_total$/, '') }
  }
  // The library needs no more of a metric than this.
  return { name, type, get } as unknown as Metric
}
