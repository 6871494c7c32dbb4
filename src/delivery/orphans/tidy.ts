import type { Clock } from '../../lib/clock.ts'
import { within } from '../../lib/time-limit.ts'
import { droppedName, servedSinksKey, sinkNamesKey, targetTagsName } from '../../store/keys.ts'
import { servedMs } from '../../store/source/names.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import { type AlertQueue, deadLetterKeptMs, recordKeptMs, type SinkQueues } from '../queue/queues.ts'
import { tidyScript } from './scripts.ts'

interface TidyOptions {
  readonly queues: SinkQueues
  readonly prefix: string
  readonly retention: { readonly ageMs: number }
  readonly clock: Clock
}

const forgetMax = 200
/** What is kept of a queue beside its jobs, and is removed with its name. */
const rest = [
  'id',
  'events',
  'marker',
  'stalled',
  'stalled-check',
  'limiter',
  'pc',
  'prioritized',
  targetTagsName,
]

/**
 * BullMQ trims records whenever it adds one; to the queue of an orphan none is added. Removes a few of the records that
 * are too old, and the name when nothing is left.
 */
export async function tidyOrphan(
  queue: AlertQueue,
  { queues, prefix, retention, clock }: TidyOptions,
): Promise<void> {
  const nowMs = clock.now()
  const states = ['meta', 'wait', 'active', 'delayed', 'failed', 'completed', droppedName, ...rest]
  const keys = [sinkNamesKey(prefix), servedSinksKey(prefix), ...states.map((state) => queue.toKey(state))]
  const before = [nowMs - recordKeptMs(retention.ageMs), nowMs - deadLetterKeptMs]
  const tidying = queues.redis.eval(
    tidyScript,
    keys.length,
    ...keys,
    queue.name,
    queue.toKey(''),
    ...before,
    forgetMax,
    servedMs,
  )
  await within(commandTimeoutMs, 'tidying up an orphan', tidying)
}
