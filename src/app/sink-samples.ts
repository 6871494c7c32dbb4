import type { SinkQueues } from '../delivery/queue/queues.ts'
import type { Clock } from '../lib/clock.ts'
import { toError } from '../lib/errors.ts'
import { within } from '../lib/time-limit.ts'
import type { SinkQuarters } from '../store/sink/sink-quarters.ts'
import type { Logger } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

interface SinkSamplesOptions {
  readonly queues: () => Pick<SinkQueues, 'sinks' | 'queue'>
  readonly store: SinkQuarters
  readonly metrics: Pick<Metrics, 'sendDuration'>
  readonly clock: Clock
  readonly log: Logger
  readonly lookEveryMs?: number | undefined
}

/** Stores for each sink how long its queue is and how long its sends took, once a minute. */
export async function sampleSinks(options: SinkSamplesOptions, signal: AbortSignal): Promise<void> {
  const { queues, store, metrics, clock, log, lookEveryMs = 60_000 } = options
  const before = new Map<string, Sends>()
  const look = async () => {
    const now = await sendsBySink(metrics)
    const { sinks, queue } = queues()
    const work = sinks.map(async (sink) => {
      const counts = Object.values(await queue(sink).getJobCounts('wait', 'active', 'delayed'))
      const [all, last] = [now.get(sink) ?? none, before.get(sink) ?? none]
      const sample = { sends: all.sends - last.sends, sendMs: all.sendMs - last.sendMs }
      const queued = counts.reduce((sum, count) => sum + count, 0)
      // What Redis did not answer may have been stored: rather a sample too few than one counted twice.
      before.set(sink, all)
      await store.add(sink, { queued, ...sample }, clock.now())
    })
    await within(lookMsMax, 'sampling the sinks', Promise.all(work))
  }
  while (!signal.aborted) {
    await look().catch((thrown: unknown) => log.debug({ err: toError(thrown) }, 'sinks not sampled'))
    await clock.sleep(lookEveryMs, signal).catch(() => {})
  }
}

interface Sends {
  readonly sends: number
  readonly sendMs: number
}

const none: Sends = { sends: 0, sendMs: 0 }
const lookMsMax = 10_000

/** Since this process started. */
async function sendsBySink({
  sendDuration,
}: Pick<Metrics, 'sendDuration'>): Promise<ReadonlyMap<string, Sends>> {
  const found = new Map<string, Sends>()
  for (const { metricName, labels, value } of (await sendDuration.get()).values) {
    const sink = String(labels['sink'])
    const own = found.get(sink) ?? none
    if (metricName?.endsWith('_sum')) found.set(sink, { ...own, sendMs: value * 1_000 })
    if (metricName?.endsWith('_count')) found.set(sink, { ...own, sends: value })
  }
  return found
}
