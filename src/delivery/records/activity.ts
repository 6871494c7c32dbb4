import { within } from '../../lib/time-limit.ts'
import type { SinkQuarter, SinkQuarters } from '../../store/sink/sink-quarters.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { SinkQueues } from '../queue/queues.ts'

/** What a sink did with its alerts, hour by hour, as far as the records are still kept. */
export interface SinkActivity {
  readonly sink: string
  /** The oldest first; the last one is the hour up to now. */
  readonly hours: readonly { readonly delivered: number; readonly dead: number }[]
  /** Of the same day, as `SinkQuarters` has them. */
  readonly quarters: readonly (SinkQuarter | undefined)[]
}

export async function sinkActivity(
  queues: SinkQueues,
  stored: Pick<SinkQuarters, 'read'>,
  nowMs: number,
): Promise<SinkActivity[]> {
  const work = queues.sinks.map(async (sink): Promise<SinkActivity> => {
    // Each count is of all since then: that of an hour is the difference of two.
    const since = Array.from({ length: hours + 1 }, (_, at) => nowMs - (hours - at) * hourMs)
    const [quarters, ended] = await Promise.all([stored.read(sink, nowMs), queues.endedSince(sink, since)])
    const inHour = (which: 0 | 1, at: number) => (ended[at]?.[which] ?? 0) - (ended[at + 1]?.[which] ?? 0)
    return {
      sink,
      quarters,
      hours: Array.from({ length: hours }, (_, at) => ({
        delivered: inHour(0, at),
        dead: inHour(1, at),
      })),
    }
  })
  return within(commandTimeoutMs, 'counting by hour', Promise.all(work))
}

const hours = 24
const hourMs = 3_600_000
