import { alertOfKey } from '../alert/alert.ts'
import { readByTime, type TimeRange } from './by-time.ts'
import type { RedisClient } from './connection/redis.ts'
import { firedAlertsKey } from './operator-keys.ts'

/**
 * The alerts that have a record (a delivery, or a note of what was withheld), in the order in which they fired: what people search
 * through. It is written after the records, and never decides anything: an alert that it lacks is only not found by a search.
 */
export interface FiredAlerts {
  /** One that is there already keeps its time; each may be named several times. */
  add(alerts: readonly FiredAlert[]): Promise<void>
  /**
   * Those that fired before `last`, the last one to fire first, and of one instant the largest id; fewer than `count` only at the
   * end. With `isAgain` from `last` on.
   */
  before(
    range: TimeRange,
    last: (FiredAlert & { readonly isAgain?: boolean }) | undefined,
    count: number,
  ): Promise<FiredAlert[]>
  /** When each fired; null for one that is not there. */
  timesOf(names: readonly string[]): Promise<(number | null)[]>
  /** The names of all, in parts; one that is added meanwhile may be left out, and one may come twice. */
  all(): AsyncGenerator<readonly string[]>
  /** Any of them, at most `count`. */
  some(count: number): Promise<string[]>
  remove(names: readonly string[]): Promise<void>
}

export interface FiredAlert {
  /** `SOURCE.ID`: see `alertKey`. */
  readonly name: string
  /** When it fired; when it was first seen where that is not known. */
  readonly atMs: number
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
    before: ({ fromMs, throughMs }, last, count) =>
      readByTime(redis, {
        key,
        first: 'newest',
        count,
        range: { fromMs, throughMs: Math.min(throughMs, last?.atMs ?? throughMs) },
        among: largestFirst,
        isPassed: (each) =>
          last !== undefined && each.atMs === last.atMs && largestFirst(each, last) < (last.isAgain ? 0 : 1),
      }),
    async timesOf(names) {
      if (names.length === 0) return []
      return (await redis.zmscore(key, ...names)).map((score) => (score === null ? null : Number(score)))
    },
    async *all() {
      let cursor = '0'
      do {
        const [next, entries] = await redis.zscan(key, cursor, 'COUNT', batchMax)
        yield entries.filter((_, at) => at % 2 === 0)
        cursor = next
      } while (cursor !== '0')
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

/** As texts, 999 would be larger than 2100. */
function largestFirst(one: Named, other: Named): number {
  return idOf(other) - idOf(one) || (one.name > other.name ? -1 : Number(one.name < other.name))
}

type Named = Pick<FiredAlert, 'name'>

/** What has no id, which the bridge never wrote there, comes last. */
function idOf({ name }: Named): number {
  const { id } = alertOfKey(name)
  return Number.isFinite(id) ? id : -1
}
