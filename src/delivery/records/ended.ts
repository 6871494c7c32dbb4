import { within } from '../../lib/time-limit.ts'
import { countByTime, type Dated, readByTime, type TimeRange } from '../../store/by-time.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { AlertQueue } from '../queue/queues.ts'
import type { EndState } from './selection.ts'

/** An ended delivery of one queue, which keeps them in the order in which they ended. */
export interface Ended {
  readonly jobId: string
  readonly endedAtMs: number
}

export interface EndedSet {
  readonly redis: RedisClient
  readonly queue: AlertQueue
  readonly state: EndState
}

/** Those that come after `last` when the oldest end is first, at most `count`; fewer than `count` only at the end. */
export async function endedAfter(
  { redis, queue, state }: EndedSet,
  { fromMs, throughMs }: TimeRange,
  last: Ended | undefined,
  count: number,
): Promise<Ended[]> {
  const reading = readByTime(redis, {
    key: queue.toKey(state),
    first: 'oldest',
    count,
    range: { fromMs: Math.max(fromMs, last?.endedAtMs ?? fromMs), throughMs },
    isPassed: ({ atMs, name }) => atMs === last?.endedAtMs && name <= last.jobId,
  })
  return (await within(commandTimeoutMs, 'reading ended deliveries', reading)).map(endedOf)
}

/** As `endedAfter` with the newest end first; `isPassed` is asked of those that ended at `throughMs`. */
export async function endedBefore(
  { redis, queue, state }: EndedSet,
  range: TimeRange,
  isPassed: (ended: Ended) => boolean,
  count: number,
): Promise<Ended[]> {
  const reading = readByTime(redis, {
    key: queue.toKey(state),
    first: 'newest',
    count,
    range,
    isPassed: (each) => isPassed(endedOf(each)),
  })
  return (await within(commandTimeoutMs, 'reading ended deliveries', reading)).map(endedOf)
}

export async function countEnded({ redis, queue, state }: EndedSet, range: TimeRange): Promise<number> {
  const counting = countByTime(redis, queue.toKey(state), range)
  return within(commandTimeoutMs, 'counting ended deliveries', counting)
}

/** When the newest of them ended; undefined where there is none. */
export async function lastEndedMs({ redis, queue, state }: EndedSet): Promise<number | undefined> {
  const reading = redis.zrevrange(queue.toKey(state), 0, 0, 'WITHSCORES')
  const [, score] = await within(commandTimeoutMs, 'reading the newest ended delivery', reading)
  return score === undefined ? undefined : Number(score)
}

function endedOf({ name, atMs }: Dated): Ended {
  return { jobId: name, endedAtMs: atMs }
}
