import type { RedisClient } from './connection/redis.ts'

/** Both ends belong to it; they may be infinite. */
export interface TimeRange {
  readonly fromMs: number
  readonly throughMs: number
}

/** A member of a sorted set whose scores are times. */
export interface Dated {
  readonly name: string
  readonly atMs: number
}

interface Query {
  readonly key: string
  readonly range: TimeRange
  readonly first: 'oldest' | 'newest'
  readonly count: number
  /** Whether a page before had it; asked of those at the time at which the range begins, seen from where reading begins. */
  readonly isPassed: (each: Dated) => boolean
  /** The order of those with the same time, where it is not that of Redis: all of them are read before some are given. */
  readonly among?: (one: Dated, other: Dated) => number
}

/**
 * Members in the order of their times, page by page; fewer than `count` only at the end. A position in that order is a time and
 * a name, not a number of members: members leave the set while it is read, and none may be skipped because of it. Many may have
 * the same time; Redis sorts those by name, as texts. A page that begins among them is read from the first of them, so more is read until
 * enough of it is new.
 */
export async function readByTime(redis: RedisClient, query: Query): Promise<Dated[]> {
  const { key, range, first, count, isPassed, among } = query
  const [from, through] = [bound(range.fromMs), bound(range.throughMs)]
  const startMs = first === 'oldest' ? range.fromMs : range.throughMs
  for (let read = count; ; read *= 2) {
    const flat =
      first === 'oldest'
        ? await redis.zrangebyscore(key, from, through, 'WITHSCORES', 'LIMIT', 0, read)
        : await redis.zrevrangebyscore(key, through, from, 'WITHSCORES', 'LIMIT', 0, read)
    const some = pairs(flat)
    const all = among === undefined ? some : await sorted(redis, key, some, among)
    const fresh = all.filter((each) => each.atMs !== startMs || !isPassed(each))
    if (fresh.length >= count || some.length < read) return fresh.slice(0, count)
  }
}

/** With all of the time at which these end, of which the rest may not have been read. */
async function sorted(
  redis: RedisClient,
  key: string,
  some: readonly Dated[],
  among: NonNullable<Query['among']>,
): Promise<Dated[]> {
  const endMs = some.at(-1)?.atMs
  if (endMs === undefined) return []
  const end = pairs(await redis.zrangebyscore(key, bound(endMs), bound(endMs), 'WITHSCORES'))
  const groups = Map.groupBy([...some.filter(({ atMs }) => atMs !== endMs), ...end], ({ atMs }) => atMs)
  return [...groups.values()].flatMap((group) => group.toSorted(among))
}

export function countByTime(redis: RedisClient, key: string, range: TimeRange): Promise<number> {
  return redis.zcount(key, bound(range.fromMs), bound(range.throughMs))
}

function pairs(flat: readonly string[]): Dated[] {
  return flat.flatMap((name, at) => (at % 2 === 0 ? [{ name, atMs: Number(flat[at + 1]) }] : []))
}

function bound(ms: number): string {
  if (Number.isFinite(ms)) return String(ms)
  return ms > 0 ? '+inf' : '-inf'
}
