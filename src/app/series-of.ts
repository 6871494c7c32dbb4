import type { Config } from '../config/schema.ts'
import type { initialiseMetrics } from '../telemetry/series.ts'

/** What of a config decides which series of the metrics exist, and what it tells them. */
export function seriesOf({ sources, sinks, routes }: Config): Parameters<typeof initialiseMetrics>[1] {
  const digests = Object.entries(sinks).flatMap(([name, sink]) =>
    'digest' in sink && sink.digest !== undefined ? [[name, sink.digest / 1_000] as const] : [],
  )
  const recipients = Object.entries(sinks).flatMap(([name, sink]) =>
    sink.type === 'email' ? [[name, sink.to.length] as const] : [],
  )
  return {
    sources: Object.keys(sources),
    sinks: Object.keys(sinks),
    context: [...new Set(routes.flatMap(({ context }) => context))],
    digestSeconds: new Map(digests),
    recipients: new Map(recipients),
  }
}
