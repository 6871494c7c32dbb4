import type { RedisClient } from '../connection/redis.ts'
import { sourceKeys } from '../keys.ts'

/** How many alerts of each kind one source has had: shows which routes ask for a kind that does not exist. */
export interface KindStore {
  load(): Promise<ReadonlyMap<string, number>>
  add(counts: ReadonlyMap<string, number>): Promise<void>
}

/**
 * An API that sends a new kind with every alert has none that could be mistyped: from this number on nothing more is
 * counted, and a kind that is not stored may have come all the same.
 */
export const kindsMax = 200

export function createKindStore(options: { redis: RedisClient; prefix: string; source: string }): KindStore {
  const { redis } = options
  const { kinds } = sourceKeys(options.prefix, options.source)
  return {
    async load() {
      const stored = await redis.hgetall(kinds)
      return new Map(Object.entries(stored).map(([kind, count]) => [kind, Number(count)]))
    },
    async add(counts) {
      const room = kindsMax - (await redis.hlen(kinds))
      if (room <= 0) return
      const some = [...counts].slice(0, room)
      await Promise.all(some.map(([kind, count]) => redis.hincrby(kinds, kind, count)))
    },
  }
}
