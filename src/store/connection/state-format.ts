import { stateFormatKey } from '../keys.ts'
import type { RedisClient } from './redis.ts'
import type { RedisFinding } from './redis-check.ts'

/**
 * The format of what is stored in Redis. It is raised only when an earlier version could no longer read it rightly: what a
 * later version merely adds, earlier ones leave alone.
 */
export const stateFormat = 2

/** Stores that this version writes here, or returns why it must not. */
export async function claimFormat(
  redis: RedisClient,
  prefix: string,
  own: number = stateFormat,
): Promise<readonly RedisFinding[]> {
  const stored = Number(await redis.eval(claimScript, 1, stateFormatKey(prefix), own))
  if (stored <= own) return []
  const message = `A later version of alert-bridge has stored its state in this Redis, in format ${stored}, and this one reads formats up to ${own}; run that version again, or give this one a redis.prefix of its own`
  return [{ level: 'refuse', code: 'format', message }]
}

/** KEYS format · ARGV own format · Returns the one that was stored before, or the own one. */
const claimScript = `
local stored = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
if stored < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return math.max(stored, tonumber(ARGV[1]))
`
