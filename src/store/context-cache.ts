import { randomUUID } from 'node:crypto'
import { parseJson } from '../alert/json/json-number.ts'
import type { RedisClient } from './connection/redis.ts'
import { contextBurstKey, contextKeys } from './context-keys.ts'

/**
 * What was bought of the API's other endpoints for alerts of one source, shared by all replicas: each value once, until it is
 * too old, too many or too large beside others. A lock lets one process buy at a time.
 */
export interface ContextCache {
  /** In the order of the fields; undefined for one that is not there. */
  read(fields: readonly string[]): Promise<readonly (CachedContext | undefined)[]>
  store(entries: readonly { readonly field: string; readonly value: unknown }[], atMs: number): Promise<void>
  /** A token, for `unlock`; undefined while another process has it. */
  lock(what: string, forMs: number): Promise<string | undefined>
  unlock(what: string, token: string): Promise<void>
  /** Takes units of the current span of `forMs`, which begins with its first units; false where fewer are left of `unitsMax`. */
  take(units: number, limit: { readonly unitsMax: number; readonly forMs: number }): Promise<boolean>
  /** Where none are left that were used, the span has not begun. */
  giveBack(units: number): Promise<void>
}

export interface CachedContext {
  readonly atMs: number
  /** null: the API holds nothing. */
  readonly value: unknown
}

interface ContextCacheLimits {
  readonly entriesMax: number
  readonly bytesMax: number
}

/** A row of the board has about 300 bytes, a chart 8 KB: a market of 700 instruments with all of it has some 15 MB. */
const contextCacheLimits: ContextCacheLimits = { entriesMax: 10_000, bytesMax: 16 * 1_048_576 }
const keptMs = 24 * 60 * 60 * 1_000

export function createContextCache(options: {
  readonly redis: RedisClient
  readonly prefix: string
  readonly source: string
  /** As the config names it: sources of one account have one limit for a burst. */
  readonly account?: string | undefined
  /** Of the account, see `hashAccount`: valuations are the caller's own. */
  readonly accountHash: string
  readonly limits?: ContextCacheLimits
}): ContextCache {
  const { redis, prefix, source, limits = contextCacheLimits } = options
  const { values, times, lockOf } = contextKeys(prefix, source, options.accountHash)
  const burst = contextBurstKey(prefix, source, options.account)
  return {
    async read(fields) {
      if (fields.length === 0) return []
      return (await redis.hmget(values, ...fields)).map(parse)
    },
    async store(entries, atMs) {
      if (entries.length === 0) return
      const at = Math.round(atMs)
      const pairs = entries.flatMap(({ field, value }) => [field, `${at} ${JSON.stringify(value ?? null)}`])
      const bounds = [at, keptMs, limits.entriesMax, limits.bytesMax]
      await redis.eval(storeScript, 2, values, times, ...bounds, ...pairs)
    },
    async lock(what, forMs) {
      const token = randomUUID()
      return (await redis.set(lockOf(what), token, 'PX', forMs, 'NX')) === 'OK' ? token : undefined
    },
    async unlock(what, token) {
      await redis.eval(unlockScript, 1, lockOf(what), token)
    },
    async take(units, { unitsMax, forMs }) {
      return (await redis.eval(takeScript, 1, burst, units, unitsMax, forMs)) === 1
    },
    async giveBack(units) {
      await redis.eval(giveBackScript, 1, burst, units)
    },
  }
}

/** What cannot be read is as if it were not there. */
function parse(text: string | null): CachedContext | undefined {
  const match = /^(\d+) /.exec(text ?? '')
  if (text === null || match === null) return undefined
  try {
    return { atMs: Number(match[1]), value: parseJson(text.slice(match[0].length)) }
  } catch {
    return undefined
  }
}

/**
 * KEYS values, times · ARGV now (ms), how long one is kept (ms), entries max, bytes max, then field and text of each · Returns
 * nothing.
 */
const storeScript = `
local bytes = tonumber(redis.call('HGET', KEYS[1], 'bytes') or '0')
local function remove(field)
  bytes = bytes - redis.call('HSTRLEN', KEYS[1], field) - #field
  redis.call('HDEL', KEYS[1], field)
  redis.call('ZREM', KEYS[2], field)
end
for i = 5, #ARGV, 2 do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then remove(ARGV[i]) end
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[2], ARGV[1], ARGV[i])
  bytes = bytes + #ARGV[i] + #ARGV[i + 1]
end
for _, field in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[1] - ARGV[2])) do remove(field) end
while redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[3]) or bytes > tonumber(ARGV[4]) do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not oldest then break end
  remove(oldest)
end
redis.call('HSET', KEYS[1], 'bytes', bytes)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
`

/** KEYS the lock · ARGV token · Returns nothing. */
const unlockScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`

/** KEYS units · ARGV units, units max, length of the span (ms) · Returns 1 when they were taken. */
const takeScript = `
local used = tonumber(redis.call('GET', KEYS[1]) or '0')
if used + ARGV[1] > tonumber(ARGV[2]) then return 0 end
redis.call('INCRBY', KEYS[1], ARGV[1])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
`

/** KEYS units · ARGV units · Returns nothing. */
const giveBackScript = `
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('DECRBY', KEYS[1], ARGV[1]) <= 0 then redis.call('DEL', KEYS[1]) end
`
