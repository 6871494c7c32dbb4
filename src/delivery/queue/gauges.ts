import { within } from '../../lib/time-limit.ts'
import { type Metrics, queueStates } from '../../telemetry/metrics.ts'
import type { SinkQueues } from './queues.ts'

interface CollectOptions {
  readonly queues: SinkQueues
  readonly metrics: Metrics
  readonly timeoutMs?: number
}

/**
 * Sets the gauges to the number of jobs in each state. Never throws and never takes longer than `timeoutMs`: while Redis
 * is away, the other metrics are needed most. These are then removed, because old numbers look like fresh ones. Resolves
 * to whether the numbers are fresh.
 */
export async function collectQueues({
  queues,
  metrics,
  timeoutMs = 1_000,
}: CollectOptions): Promise<boolean> {
  const fresh = queues.sinks.map((sink) =>
    within(timeoutMs, 'counting jobs', collectSink(queues, sink, metrics)).then(
      () => true,
      () => {
        forgetSink(sink, metrics)
        return false
      },
    ),
  )
  return (await Promise.all(fresh)).every(Boolean)
}

function forgetSink(sink: string, metrics: Metrics): void {
  for (const state of queueStates) metrics.queueJobs.remove({ sink, state })
  metrics.deadLetters.remove({ sink })
  // `sinkPaused` stays: nobody can resume a sink meanwhile, and the alerts of a sink that fails would fire without it.
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
  metrics.sinkPaused.set({ sink }, paused ? 1 : 0)
}
