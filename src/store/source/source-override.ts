import { isFarAhead, waits } from '../../lib/waits.ts'
import type { RedisClient } from '../connection/redis.ts'
import { sourceKeys } from '../keys.ts'

/**
 * What an operator asks of a source: more polls until an instant. Stored in Redis, because the replica that gets the
 * request may not be the one that polls.
 */
export interface SourceOverride {
  /** 0 when nothing is asked. */
  hotUntilMs(nowMs: number): Promise<number>
  /** An instant that has passed removes the request. */
  setHot(untilMs: number, nowMs: number): Promise<void>
  /** With `untilMs`, only where it is still asked until then: false where it is not. */
  endHot(untilMs?: number): Promise<boolean>
}

export function createSourceOverride(options: {
  redis: RedisClient
  prefix: string
  source: string
}): SourceOverride {
  const { redis } = options
  const { override } = sourceKeys(options.prefix, options.source)
  return {
    async hotUntilMs(nowMs) {
      const untilMs = Number(await redis.get(override))
      return Number.isSafeInteger(untilMs) && !isFarAhead(untilMs, nowMs) ? untilMs : 0
    },
    async setHot(askedMs, nowMs) {
      const untilMs = Math.min(askedMs, nowMs + waits.hot.maxMs)
      if (untilMs <= nowMs) await redis.del(override)
      else await redis.set(override, String(Math.round(untilMs)), 'PX', Math.ceil(untilMs - nowMs))
    },
    async endHot(untilMs) {
      if (untilMs === undefined) await redis.del(override)
      return untilMs === undefined || (await redis.eval(endScript, 1, override, String(untilMs))) === 1
    },
  }
}

/** KEYS instant · ARGV the one that is to end · Returns 1 where it was that one. */
const endScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`
