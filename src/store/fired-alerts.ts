import { firedAlertsKey } from './operator-keys.ts'
import type { RedisClient } from './redis.ts'

/**
 * The alerts that have a record (a delivery, or a note of what was withheld), in the order in which they fired: what people search
 * through. It is written after the records, and never decides anything: an alert that it lacks is only not found by a search.
 */
export interface FiredAlerts {
  /** One that is there already keeps its place; each may be named several times. */
  add(alerts: readonly FiredAlert[]): Promise<void>
  /** Those that come after `place` when the last one to fire is first; fewer than `count` only at the end. */
  before(range: FiredRange, place: FiredAlert | undefined, count: number): Promise<FiredAlert[]>
  /** When each fired; null for one that is not there. */
  timesOf(names: readonly string[]): Promise<(number | null)[]>
  /** Any of them, at most `count`. */
  some(count: number): Promise<string[]>
  remove(names: readonly string[]): Promise<void>
}

export interface FiredAlert {
  /** `SOURCE.ID`. */
  readonly name: string
  /** When it fired; when it was first seen where that is not known. */
  readonly atMs: number
}

export interface FiredRange {
  readonly fromMs: number
  readonly throughMs: number
}

export function createFiredAlerts({ redis, prefix }: { redis: RedisClient; prefix: string }): FiredAlerts {
  const key = firedAlertsKey(prefix)
  return {
    async add(alerts) {
      const times = [...new Map(alerts.map(({ name, atMs }) => [name, atMs]))]
      for (let from = 0; from < times.length; from += batchMax) {
        const entries = times.slice(from, from + batchMax).flatMap(([name, atMs]) => [atMs, name])
        await redis.zadd(key, 'NX', ...entries)
      }
    },
    async before({ fromMs, throughMs }, place, count) {
      const max = Math.min(throughMs, place?.atMs ?? throughMs)
      const isPassed = ({ atMs, name }: FiredAlert) => atMs === place?.atMs && name >= place.name
      // Many may fire in one millisecond: a place within it is reached by reading more, until enough is new.
      for (let read = count; ; read *= 2) {
        const flat = await redis.zrevrangebyscore(
          key,
          bound(max),
          bound(fromMs),
          'WITHSCORES',
          'LIMIT',
          0,
          read,
        )
        const all = pairs(flat)
        const fresh = all.filter((each) => !isPassed(each))
        if (fresh.length >= count || all.length < read) return fresh.slice(0, count)
      }
    },
    async timesOf(names) {
      if (names.length === 0) return []
      return (await redis.zmscore(key, ...names)).map((score) => (score === null ? null : Number(score)))
    },
    async some(count) {
      const names: unknown = await redis.zrandmember(key, count)
      return Array.isArray(names) ? names.map(String) : []
    },
    async remove(names) {
      if (names.length > 0) await redis.zrem(key, ...names)
    },
  }
}

const batchMax = 1_000

function pairs(flat: readonly string[]): FiredAlert[] {
  return flat.flatMap((name, at) => (at % 2 === 0 ? [{ name, atMs: Number(flat[at + 1]) }] : []))
}

function bound(ms: number): string {
  if (Number.isFinite(ms)) return String(ms)
  return ms > 0 ? '+inf' : '-inf'
}
