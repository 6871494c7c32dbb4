import * as z from 'zod'
import type { RedisClient } from './redis.ts'

/**
 * Which run of which server of Redis answers. Two commands may reach two of them: a master and its successor, or one that came back
 * without its last second. What the second command removes, because the first stored something in its place, must stay then.
 */

/** In a script; '' where it does not say. */
export const serverRun = `string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''`

/** `key` is one that the later command is about: in a cluster it names the node. */
export async function readServerRun(redis: RedisClient, key: string): Promise<string> {
  return z.string().parse(await redis.eval(`return ${serverRun}`, 1, key))
}
