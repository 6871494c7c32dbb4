import * as z from 'zod'
import { breakerKeptMs, breakerKey } from './keys.ts'
import type { RedisClient } from './redis.ts'

/**
 * That a sink is down, as the processes that send to it have found: kept in Redis, so that who starts in the middle of
 * an outage goes on with it. Written anew while the outage lasts.
 */
export interface BreakerStore {
  read(sink: string): Promise<StoredBreaker | undefined>
  write(sink: string, breaker: Pick<StoredBreaker, 'reason' | 'sinceMs'>): Promise<void>
  /**
   * Says again that the sink is down; false when that is not kept any more: another process found it well, or Redis
   * forgot.
   */
  confirm(sink: string): Promise<boolean>
  clear(sink: string): Promise<void>
}

export interface StoredBreaker {
  readonly reason: string
  readonly sinceMs: number
  /** How long ago a process last said so, by Redis' clock. */
  readonly ageMs: number
}

export function createBreakerStore(redis: RedisClient, prefix: string): BreakerStore {
  return {
    async read(sink) {
      const key = breakerKey(prefix, sink)
      const [text, leftMs] = await Promise.all([redis.get(key), redis.pttl(key)])
      const parsed = text === null ? undefined : storedSchema.safeParse(parseJson(text))
      return parsed?.success ? { ...parsed.data, ageMs: Math.max(0, breakerKeptMs - leftMs) } : undefined
    },
    async write(sink, { reason, sinceMs }) {
      await redis.set(breakerKey(prefix, sink), JSON.stringify({ reason, sinceMs }), 'PX', breakerKeptMs)
    },
    async confirm(sink) {
      return (await redis.pexpire(breakerKey(prefix, sink), breakerKeptMs)) === 1
    },
    async clear(sink) {
      await redis.del(breakerKey(prefix, sink))
    },
  }
}

const storedSchema = z.object({ reason: z.string(), sinceMs: z.number() })

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
