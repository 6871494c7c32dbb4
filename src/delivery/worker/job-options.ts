import { within } from '../../lib/time-limit.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import { recordsMax } from '../queue/attempt-record.ts'
import { type Retention, recordsKept } from '../queue/queues.ts'

/** What BullMQ is to do with every job, told by the worker that takes it, so that no alert carries it while it waits. */
export const jobOptions = {
  // The sender decides what follows an attempt, by the sink's settings of today and not of the day the job was
  // stored; BullMQ's own limit only has to lie beyond any of ours.
  attempts: 1_000_000,
  backoff: { type: 'custom' },
  keepLogs: recordsMax,
  // Stack traces help nobody here and could contain a secret.
  stackTraceLimit: 0,
}

/**
 * Which records stay when the next acknowledgement is recorded: false where it deletes none. One in a hundred, and one a minute, deletes
 * those that are too old or too many: at most 1,000 of them, which is more than come between two of these. `countKept`: how many
 * records there are. Never rejects.
 */
export function trimming(
  retention: () => Retention,
  countKept: () => Promise<number>,
): () => Promise<ReturnType<typeof recordsKept> | false> {
  let [acknowledged, trimmedMs] = [0, Number.NEGATIVE_INFINITY]
  return async () => {
    acknowledged += 1
    if (acknowledged < trimEvery && performance.now() - trimmedMs < trimEveryMs) return false
    acknowledged = 0
    trimmedMs = performance.now()
    try {
      const kept = await within(commandTimeoutMs, 'counting records', countKept())
      const { age, count } = recordsKept(retention())
      // BullMQ itself limits only how many it deletes for their age. After the config lowered the count, Redis did nothing else meanwhile.
      return { age, count: Math.max(count, kept + 1 - trimMax) }
    } catch {
      return false
    }
  }
}

const trimEvery = 100
const trimEveryMs = 60_000
const trimMax = 1_000
