import { within } from '../lib/time-limit.ts'
import type { RedisClient } from '../store/redis.ts'

/**
 * Jobs that are in no list of their queue. BullMQ's scripts are no transactions: where a user loses the right to one command, a
 * script ends in its middle. A job is then written and not queued, and adding it again changes nothing; or it was taken from the
 * active ones and put nowhere, where no check for stalled jobs finds it.
 */

/** Puts such a job among those that wait; one that is in a list, or gone, stays as it is. */
export async function putIntoQueue(redis: RedisClient, queue: Queue, id: string): Promise<void> {
  const names = ['wait', 'active', 'paused', 'delayed', 'completed', 'failed', 'meta', 'marker', id]
  const keys = names.map((name) => queue.toKey(name))
  await within(timeoutMs, 'putting a job into its queue', redis.eval(putScript, keys.length, ...keys, id))
}

interface Queue {
  toKey(name: string): string
}

const timeoutMs = 5_000

/** KEYS three lists, three sets, meta, marker, job · ARGV id */
const putScript = `
if redis.call('EXISTS', KEYS[9]) == 0 then return end
for at = 1, 3 do if redis.call('LPOS', KEYS[at], ARGV[1]) then return end end
for at = 4, 6 do if redis.call('ZSCORE', KEYS[at], ARGV[1]) then return end end
if redis.call('HEXISTS', KEYS[7], 'paused') == 0 then redis.call('ZADD', KEYS[8], 0, '0') end
redis.call('LPUSH', KEYS[1], ARGV[1])
`
