import { within } from '../lib/time-limit.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { SinkQueues } from './queues.ts'

export interface CollectOptions {
  readonly queues: SinkQueues
  readonly metrics: Metrics
  readonly timeoutMs?: number
}

/**
 * Reads how many jobs stand where into the gauges. Never throws and never takes longer than `timeoutMs`: while Redis is
 * away the metrics that need no Redis are worth the most. Resolves to whether the numbers are fresh.
 */
export async function collectQueues({
  queues,
  metrics,
  timeoutMs = 1_000,
}: CollectOptions): Promise<boolean> {
  const reads = Promise.all(queues.sinks.map((sink) => collectSink(queues, sink, metrics)))
  return within(timeoutMs, 'counting jobs', reads).then(
    () => true,
    () => false,
  )
}

async function collectSink(queues: SinkQueues, sink: string, metrics: Metrics): Promise<void> {
  const queue = queues.queue(sink)
  const [counts, paused] = await Promise.all([
    queue.getJobCounts('wait', 'active', 'delayed', 'failed', 'completed'),
    queue.isPaused(),
  ])
  const waiting = counts['wait'] ?? 0
  const states = {
    waiting: paused ? 0 : waiting,
    paused: paused ? waiting : 0,
    active: counts['active'] ?? 0,
    delayed: counts['delayed'] ?? 0,
    failed: counts['failed'] ?? 0,
    completed: counts['completed'] ?? 0,
  }
  for (const [state, count] of Object.entries(states)) metrics.queueJobs.set({ sink, state }, count)
  metrics.deadLetters.set({ sink }, states.failed)
}
