import { Counter, Gauge, Histogram } from 'prom-client'
import {
  apiLimits,
  contextResults,
  holdReasons,
  type Metrics,
  pollReasons,
  purposes,
  sendResults,
  sourceStates,
} from './metrics.ts'

/** Which series of the metrics exist: those of the sources and sinks of the config in force, and no other. */
interface Names {
  readonly sources: readonly string[]
  readonly sinks: readonly string[]
  /** What the routes ask of alerts, of every source. */
  readonly context?: readonly string[]
  /** Of the sinks that gather alerts: for how long. */
  readonly digestSeconds?: ReadonlyMap<string, number>
  /** Of the sinks that send each alert to several. */
  readonly recipients?: ReadonlyMap<string, number>
}

/**
 * Each is a histogram. A thousand sources and a hundred sinks, of which few meet, took 2.5 GB and a page of 100 MB: beyond
 * this, a source and a sink have one from their first delivery on.
 */
const pairsMax = 1_000

/**
 * Sets the counters and histograms of these sources and sinks to 0, so that rates and alerts work from the first scrape; those
 * that exist keep their values, also where their name had left the config. How many jobs there are, only Redis says.
 */
export function initialiseMetrics(metrics: Metrics, names: Names): void {
  const { initialised } = metrics
  const newSinks = names.sinks.filter((sink) => !initialised.sinks.has(sink))
  const fewPairs = names.sources.length * names.sinks.length <= pairsMax
  for (const source of names.sources)
    for (const what of names.context ?? [])
      for (const result of contextResults) metrics.context.inc({ source, what, result }, 0)
  for (const source of names.sources) {
    const isNew = !initialised.sources.has(source)
    if (fewPairs)
      for (const sink of isNew ? names.sinks : newSinks) metrics.deliveryLag.zero({ source, sink })
    if (!isNew) continue
    for (const limit of apiLimits) metrics.upstreamRateLimited.inc({ source, limit }, 0)
    for (const purpose of purposes) metrics.budgetUnits.inc({ source, purpose }, 0)
    for (const reason of holdReasons) metrics.alertsHeld.inc({ source, reason }, 0)
    for (const reason of pollReasons) metrics.polls.inc({ source, reason }, 0)
    const counters = [
      metrics.alertsSeen,
      metrics.alertsDuplicate,
      metrics.alertsQuarantined,
      metrics.quarantineFellOut,
      metrics.alertsUnrouted,
      metrics.feedGap,
      metrics.pollerRestarts,
      metrics.stateLost,
    ]
    for (const each of counters) each.inc({ source }, 0)
    for (const endpoint of ['alerts/deliveries', 'alerts']) {
      for (const status of ['200', '401', '403'])
        metrics.upstreamRequests.inc({ source, endpoint, status }, 0)
      metrics.upstreamRequestDuration.zero({ source, endpoint })
    }
    metrics.detectionLag.zero({ source })
  }
  for (const sink of newSinks) {
    for (const result of sendResults) metrics.sends.inc({ sink, result }, 0)
    metrics.sendDuration.zero({ sink })
    metrics.circuitOpen.set({ sink }, 0)
    metrics.sinkPaused.set({ sink }, 0)
    metrics.sinkStuck.set({ sink }, 0)
  }
  // Of the sinks that were there, too: a reload may have changed it.
  for (const sink of names.sinks) {
    metrics.sinkDigest.set({ sink }, names.digestSeconds?.get(sink) ?? 0)
    metrics.sinkRecipients.set({ sink }, names.recipients?.get(sink) ?? 1)
  }
  for (const source of names.sources) initialised.sources.add(source)
  for (const sink of newSinks) initialised.sinks.add(sink)
}

/** Another replica polls this source: only it knows these values, and those here would become outdated. */
export function forgetPolling(metrics: Metrics, source: string): void {
  const gauges = [
    metrics.budgetUnitsLimit,
    metrics.budgetUnitsLearned,
    metrics.budgetUnitsUsed,
    metrics.budgetReset,
    metrics.lastPoll,
    metrics.nextPoll,
    metrics.pollOverdue,
    metrics.planLearned,
    metrics.planOnMarks,
    metrics.planOnAnnounced,
    metrics.rulesSilent,
    metrics.lastCompleteWalk,
  ]
  for (const gauge of gauges) gauge.remove({ source })
  for (const state of sourceStates) metrics.sourceState.remove({ source, state })
}

/** Removes every series of a source or a sink that is not among these. */
export async function forgetOthers(
  { registry, orphanedJobs, initialised }: Metrics,
  { sources, sinks }: Names,
): Promise<void> {
  for (const source of initialised.sources) if (!sources.includes(source)) initialised.sources.delete(source)
  for (const sink of initialised.sinks) if (!sinks.includes(sink)) initialised.sinks.delete(sink)
  for (const metric of registry.getMetricsAsArray()) {
    if (!(metric instanceof Counter || metric instanceof Gauge || metric instanceof Histogram)) continue
    // Its labels are the names of sinks that left the config.
    if (metric === orphanedJobs) continue
    // Those of the library have other labels, and to read one is to begin its measurement anew, before the scrape has seen it.
    const { labelNames } = metric as unknown as { readonly labelNames: readonly string[] }
    if (!labelNames.includes('source') && !labelNames.includes('sink')) continue
    for (const { labels } of (await metric.get()).values) {
      const { le: _, ...own } = labels as Partial<Record<string, string>>
      const { source, sink } = own
      const isOther =
        (source !== undefined && !sources.includes(source)) || (sink !== undefined && !sinks.includes(sink))
      if (isOther) metric.remove(own as never)
    }
  }
}
