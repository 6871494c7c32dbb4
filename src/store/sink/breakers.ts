import * as z from 'zod'
import { readJson } from '../../alert/json/json.ts'
import type { RedisClient } from '../connection/redis.ts'
import { breakerKeptMs, breakerKey } from '../keys.ts'

/**
 * Stores in Redis that a sink is down, so that a process that starts during the outage begins with an open breaker.
 * Written again while the outage lasts.
 */
export interface BreakerStore {
  read(sink: string): Promise<StoredBreaker | undefined>
  /** In the order of the names; one command for all. */
  readAll(sinks: readonly string[]): Promise<readonly (StoredBreaker | undefined)[]>
  write(sink: string, breaker: Pick<StoredBreaker, 'reason' | 'sinceMs'>): Promise<void>
  /**
   * Extends the entry; false when there is none any more: another process found that the sink answers, or Redis lost it.
   */
  confirm(sink: string): Promise<boolean>
  /** Ends an entry that no process has confirmed for so long. */
  clear(sink: string, oldMs: number): Promise<void>
}

/** The process that opened it confirms it every few seconds: one that is older is of a process that is gone. */
export const breakerFreshMs = 60_000

export interface StoredBreaker {
  readonly reason: string
  readonly sinceMs: number
  /** How long ago a process last confirmed it, by Redis' clock. */
  readonly ageMs: number
}

export function createBreakerStore(redis: RedisClient, prefix: string): BreakerStore {
  const readAll: BreakerStore['readAll'] = async (sinks) => {
    if (sinks.length === 0) return []
    const keys = sinks.map((sink) => breakerKey(prefix, sink))
    const stored = await redis.eval(readScript, keys.length, ...keys)
    return (stored as [string, number][]).map(([text, leftMs]) =>
      storedBreaker(text === '' ? null : text, leftMs),
    )
  }
  return {
    read: async (sink) => (await readAll([sink]))[0],
    readAll,
    async write(sink, { reason, sinceMs }) {
      await redis.set(breakerKey(prefix, sink), JSON.stringify({ reason, sinceMs }), 'PX', breakerKeptMs)
    },
    async confirm(sink) {
      return (await redis.pexpire(breakerKey(prefix, sink), breakerKeptMs)) === 1
    },
    async clear(sink, oldMs) {
      await redis.eval(clearScript, 1, breakerKey(prefix, sink), breakerKeptMs - oldMs)
    },
  }
}

/** KEYS breakers · Returns of each its text, '' when nothing is stored, and until when it lasts (ms). */
const readScript = `
local all = {}
for at = 1, #KEYS do all[at] = { redis.call('GET', KEYS[at]) or '', redis.call('PTTL', KEYS[at]) } end
return all
`

/** KEYS the breaker · ARGV how long one that is to end lasts at most (ms) */
const clearScript = `
if redis.call('PTTL', KEYS[1]) <= tonumber(ARGV[1]) then redis.call('DEL', KEYS[1]) end
`

/** `text`: what is stored, null when nothing is; `leftMs`: until it expires. */
export function storedBreaker(text: string | null, leftMs: number): StoredBreaker | undefined {
  const parsed = text === null ? undefined : storedSchema.safeParse(readJson(text))
  return parsed?.success ? { ...parsed.data, ageMs: Math.max(0, breakerKeptMs - leftMs) } : undefined
}

const storedSchema = z.object({ reason: z.string(), sinceMs: z.number() })
