import { Cluster, type Redis } from 'ioredis'
import * as z from 'zod'
import { namedKeys, namesFoundKey, sinkNamesKey, sourceNamesKey } from './keys.ts'
import type { RedisClient } from './redis.ts'

/**
 * Under which names work was ever stored, so that what a config does not name any more is not forgotten. A sink's name
 * is written down by whoever stores its alerts, in the same breath; that of a source by its poller.
 */
export interface Names {
  sinks(): Promise<readonly string[]>
  forgetSink(name: string): Promise<void>
  sources(): Promise<ReadonlyMap<string, KnownSource>>
  /** `mark`: of the account, see `accountMark`. */
  addSource(name: string, known: KnownSource): Promise<void>
  forgetSource(name: string): Promise<void>
  /**
   * Looks once for the names of an installation that did not write them down yet, in the keys themselves. Throws what
   * Redis throws, and then looks again the next time.
   */
  findOnce(): Promise<void>
}

export type KnownSource = z.infer<typeof knownSchema>

export function createNames(redis: RedisClient, prefix: string): Names {
  const sinksKey = sinkNamesKey(prefix)
  const sourcesKey = sourceNamesKey(prefix)
  return {
    sinks: async () => (await redis.smembers(sinksKey)).sort(),
    async forgetSink(name) {
      await redis.srem(sinksKey, name)
    },
    async sources() {
      const stored = Object.entries(await redis.hgetall(sourcesKey))
      return new Map(stored.map(([name, text]) => [name, knownOf(text)]))
    },
    async addSource(name, known) {
      await redis.hset(sourcesKey, name, JSON.stringify(known))
    },
    async forgetSource(name) {
      await redis.hdel(sourcesKey, name)
    },
    async findOnce() {
      if ((await redis.exists(namesFoundKey(prefix))) === 1) return
      const { pattern, nameOf } = namedKeys(prefix)
      // In a cluster all keys of one prefix are on one node; which one it is may change while they are looked for.
      const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis]
      for (const node of nodes)
        for await (const key of scan(node, pattern)) {
          const found = nameOf(key)
          if (found?.kind === 'sink') await redis.sadd(sinksKey, found.name)
          if (found?.kind === 'source') await redis.hsetnx(sourcesKey, found.name, JSON.stringify({}))
        }
      await redis.set(namesFoundKey(prefix), String(Date.now()))
    },
  }
}

const knownSchema = z.object({ mark: z.string().optional() })

/** What another version wrote says nothing of the account to this one. */
function knownOf(text: string): KnownSource {
  try {
    return knownSchema.parse(JSON.parse(text))
  } catch {
    return {}
  }
}

/** So many keys of a Redis that others may use too are looked at by one call. */
const scanCount = 1_000

async function* scan(node: Redis, pattern: string): AsyncGenerator<string> {
  let cursor = '0'
  do {
    const [next, keys] = await node.scan(cursor, 'MATCH', pattern, 'COUNT', scanCount)
    cursor = next
    yield* keys
  } while (cursor !== '0')
}
