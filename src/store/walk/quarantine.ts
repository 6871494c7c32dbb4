import * as z from 'zod'
import type { RedisClient } from '../connection/redis.ts'
import { readServerRun, serverRun } from '../connection/server-run.ts'
import { sourceKeys } from '../keys.ts'

/**
 * The rows of one source that could not be read, whole where they are of a usable length, so that a later reading can
 * send them. The walk adds them, in the same change that marks them as seen, and removes those that the feed shows again in
 * a form that can be read (`walk-scripts.ts`); an operator lists, retries and drops them.
 */
export interface QuarantineStore {
  /** Newest first. */
  list(limit: number): Promise<readonly Quarantined[]>
  /** Those of them that are stored. */
  find(keys: readonly string[]): Promise<readonly Quarantined[]>
  /** Removes them, since they were sent or dropped; resolves to how many there were. They stay seen. */
  remove(keys: readonly string[]): Promise<number>
  /**
   * Removes them once `store` has stored what takes their place, all of it. Where another Redis answers by then, or another run of it,
   * that may be lost, so `store` is called again there; rejects after some such changes. Resolves to what the last call did.
   */
  replace<T>(keys: readonly string[], store: () => Promise<T>): Promise<T>
  /** Removes all that were quarantined by then, at a time as `newestMs` has it. */
  removeAll(throughMs?: number): Promise<number>
  /** When the newest was quarantined, in milliseconds since 1970 by the clock of who did; 0 where there is none. */
  newestMs(): Promise<number>
  counts(): Promise<QuarantineCounts>
}

export interface Quarantined {
  readonly key: string
  readonly reason: string
  /** JSON of the row; no JSON any more where it was cut to `rawCharactersMax`. */
  readonly raw: string
  readonly atMs: number
}

export interface QuarantineCounts {
  /** Rows that are quarantined now, also those whose copy was removed. */
  readonly quarantined: number
  /** Rows that were ever quarantined. */
  readonly ever: number
  /** Rows whose copy was removed because the quarantine was full. */
  readonly fellOut: number
}

export interface QuarantineLimits {
  readonly rowsMax: number
  readonly bytesMax: number
}

export const quarantineLimits: QuarantineLimits = { rowsMax: 500, bytesMax: 8 * 1_048_576 }
/** A row of the feed has about a thousand. */
export const rawCharactersMax = 65_536

/** JSON of a row, as it is stored. */
export function rawOf(row: unknown): string {
  return (JSON.stringify(row) ?? String(row)).slice(0, rawCharactersMax).toWellFormed()
}

export function createQuarantineStore(options: {
  readonly redis: RedisClient
  readonly prefix: string
  readonly source: string
}): QuarantineStore {
  const { redis } = options
  const { quarantined, quarantinedTimes, meta } = sourceKeys(options.prefix, options.source)
  const find = async (keys: readonly string[]) => {
    if (keys.length === 0) return []
    const entries = await redis.hmget(quarantined, ...keys)
    return entries.flatMap((entry) => (entry === null ? [] : [quarantinedSchema.parse(JSON.parse(entry))]))
  }
  const remove = async (keys: readonly string[]) => {
    if (keys.length === 0) return 0
    const removed = await redis.eval(removeScript, 2, quarantined, quarantinedTimes, '', ...keys)
    return z.number().parse(removed)
  }
  return {
    // A row whose copy was removed has a negative time, and nothing to show.
    list: async (limit) => find(await redis.zrevrangebyscore(quarantinedTimes, '+inf', 0, 'LIMIT', 0, limit)),
    find,
    remove,
    async replace(keys, store) {
      for (let left = serversMax; left > 0; left -= 1) {
        const before = await readServerRun(redis, quarantined)
        const stored = await store()
        const removed = await redis.eval(removeScript, 2, quarantined, quarantinedTimes, before, ...keys)
        if (removed !== -1) return stored
      }
      throw new Error(`Redis was replaced ${serversMax} times meanwhile`)
    },
    async removeAll(throughMs) {
      const [from, to] = throughMs === undefined ? ['-inf', '+inf'] : [-throughMs, throughMs]
      let removed = 0
      for (;;) {
        const keys = await redis.zrangebyscore(quarantinedTimes, from, to, 'LIMIT', 0, removeMax)
        if (keys.length === 0) return removed
        removed += await remove(keys)
      }
    },
    async newestMs() {
      const ends = [
        await redis.zrange(quarantinedTimes, '0', '0', 'WITHSCORES'),
        await redis.zrange(quarantinedTimes, '-1', '-1', 'WITHSCORES'),
      ]
      return Math.max(0, ...ends.map(([, score = 0]) => Math.abs(Number(score))))
    },
    async counts() {
      const counted = await redis.eval(countsScript, 2, quarantinedTimes, meta)
      const [now, ever, fellOut] = countedSchema.parse(counted)
      return { quarantined: now, ever, fellOut }
    },
  }
}

/** Rows that one command removes at most, so that it does not delay Redis. */
const removeMax = 500

const quarantinedSchema = z.object({ key: z.string(), reason: z.string(), raw: z.string(), atMs: z.number() })

/** `HMGET` has null for what was never counted. */
const count = z.coerce.number()
const countedSchema = z.tuple([count, count, count])

/** One command: where there are operators, it is asked every few seconds. KEYS quarantinedTimes, meta */
const countsScript = `
return {redis.call('ZCARD', KEYS[1]), unpack(redis.call('HMGET', KEYS[2], 'quarantined', 'fellOut'))}
`

const serversMax = 3

/**
 * KEYS quarantined, quarantinedTimes · ARGV the server that it is for, or '', then keys of rows
 * Returns how many were quarantined; -1 where this is another server.
 */
const removeScript = `
if ARGV[1] ~= '' and (${serverRun}) ~= ARGV[1] then return -1 end
local removed = 0
for index = 2, #ARGV do
  redis.call('HDEL', KEYS[1], ARGV[index])
  removed = removed + redis.call('ZREM', KEYS[2], ARGV[index])
end
return removed
`
