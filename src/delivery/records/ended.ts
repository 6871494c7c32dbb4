import { within } from '../../lib/time-limit.ts'
import type { RedisClient } from '../../store/redis.ts'
import type { AlertQueue } from '../queues.ts'
import type { EndState } from './selection.ts'

/**
 * The ended deliveries of one queue in the order in which they ended, page by page. A position in that order is a time
 * and an id, not a number of records: records leave the set while it is read, and none may be skipped because of it.
 */
export interface Ended {
  readonly jobId: string
  readonly endedAtMs: number
}

export interface EndedRange {
  readonly fromMs: number
  readonly throughMs: number
}

export interface EndedSet {
  readonly redis: RedisClient
  readonly queue: AlertQueue
  readonly state: EndState
}

/** Those that come after `place` when the oldest end is first, at most `count`; fewer than `count` only at the end. */
export async function endedAfter(
  { redis, queue, state }: EndedSet,
  { fromMs, throughMs }: EndedRange,
  place: Ended | undefined,
  count: number,
): Promise<Ended[]> {
  const min = Math.max(fromMs, place?.endedAtMs ?? fromMs)
  const isPassed = ({ endedAtMs, jobId }: Ended) => endedAtMs === place?.endedAtMs && jobId <= place.jobId
  return freshOf(count, isPassed, (read) =>
    redis.zrangebyscore(queue.toKey(state), bound(min), bound(throughMs), 'WITHSCORES', 'LIMIT', 0, read),
  )
}

/** As `endedAfter` with the newest end first; `isPassed` is asked of those that ended at `throughMs`. */
export async function endedBefore(
  { redis, queue, state }: EndedSet,
  { fromMs, throughMs }: EndedRange,
  isPassed: (ended: Ended) => boolean,
  count: number,
): Promise<Ended[]> {
  return freshOf(
    count,
    (ended) => ended.endedAtMs === throughMs && isPassed(ended),
    (read) =>
      redis.zrevrangebyscore(
        queue.toKey(state),
        bound(throughMs),
        bound(fromMs),
        'WITHSCORES',
        'LIMIT',
        0,
        read,
      ),
  )
}

export async function countEnded(
  { redis, queue, state }: EndedSet,
  { fromMs, throughMs }: EndedRange,
): Promise<number> {
  const counting = redis.zcount(queue.toKey(state), bound(fromMs), bound(throughMs))
  return within(readTimeoutMs, 'counting ended deliveries', counting)
}

/** When the newest of them ended; undefined where there is none. */
export async function lastEndedMs({ redis, queue, state }: EndedSet): Promise<number | undefined> {
  const reading = redis.zrevrange(queue.toKey(state), 0, 0, 'WITHSCORES')
  const [, score] = await within(readTimeoutMs, 'reading the newest ended delivery', reading)
  return score === undefined ? undefined : Number(score)
}

const readTimeoutMs = 5_000

/**
 * Several may have ended in one millisecond; Redis sorts those by id. A page that begins within such a millisecond is
 * read from its start, so more is read until enough of it is new.
 */
async function freshOf(
  count: number,
  isPassed: (ended: Ended) => boolean,
  readFirst: (count: number) => Promise<string[]>,
): Promise<Ended[]> {
  for (let read = count; ; read *= 2) {
    const all = pairs(await within(readTimeoutMs, 'reading ended deliveries', readFirst(read)))
    const fresh = all.filter((each) => !isPassed(each))
    if (fresh.length >= count || all.length < read) return fresh.slice(0, count)
  }
}

function pairs(flat: readonly string[]): Ended[] {
  const found: Ended[] = []
  for (let index = 0; index + 1 < flat.length; index += 2)
    found.push({ jobId: flat[index] ?? '', endedAtMs: Number(flat[index + 1]) })
  return found
}

function bound(ms: number): string {
  if (Number.isFinite(ms)) return String(ms)
  return ms > 0 ? '+inf' : '-inf'
}
