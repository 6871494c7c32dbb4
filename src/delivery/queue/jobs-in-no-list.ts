import { alertOfKey } from '../../alert/alert.ts'
import { jobId } from '../../alert/job.ts'
import { within } from '../../lib/time-limit.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { createFiredAlerts } from '../../store/fired-alerts.ts'
import { targetTagsName } from '../../store/keys.ts'
import { commandTimeoutMs } from '../command-timeout.ts'

/**
 * Jobs that are in no list of their queue. BullMQ's scripts are no transactions: where a user loses the right to one command, a
 * script ends in its middle. A job is then written and not queued, and adding it again changes nothing; or it was taken from the
 * active or the delayed ones and put nowhere, where no check for stalled jobs finds it.
 */

/** Puts every such job of the queue among those that wait. Throws what Redis throws: then it is to be called again. */
export async function putAllIntoQueue(redis: RedisClient, queue: Queue, prefix: string): Promise<void> {
  const inTime = <T>(reading: Promise<T>) => within(commandTimeoutMs, 'looking for jobs in no list', reading)
  const tags = [undefined, ...(await inTime(redis.smembers(queue.toKey(targetTagsName))))]
  const unended = new Set<string>()
  for await (const names of createFiredAlerts({ redis, prefix }).all()) {
    const alerts = names.map(alertOfKey)
    for (const tag of tags) {
      const ids = alerts.map((alert) => jobId(alert, tag))
      for (const id of await inTime(inNoSet(redis, queue, ids))) unended.add(id)
    }
  }
  // Read last: what is taken or ends meanwhile is looked for once more, and stays as it is.
  for (const list of ['wait', 'active', 'paused'])
    for (let from = 0, count = -1; count !== 0; from += count) {
      const ids = await inTime(redis.lrange(queue.toKey(list), from, from + portionMax - 1))
      for (const id of ids) unended.delete(id)
      count = ids.length
    }
  for (const id of unended) await putIntoQueue(redis, queue, id)
}

async function inNoSet(redis: RedisClient, queue: Queue, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return []
  const asked = ['completed', 'failed', 'delayed'].map((set) => redis.zmscore(queue.toKey(set), ...ids))
  const scores = await Promise.all(asked)
  const others = ids.filter((_, at) => scores.every((each) => each[at] == null))
  const exist = await Promise.all(others.map((id) => redis.exists(queue.toKey(id))))
  return others.filter((_, at) => exist[at] === 1)
}

/** Puts such a job among those that wait; one that is in a list, or gone, stays as it is. */
export async function putIntoQueue(redis: RedisClient, queue: Queue, id: string): Promise<void> {
  const names = ['wait', 'active', 'paused', 'delayed', 'completed', 'failed', 'meta', 'marker', id]
  const keys = names.map((name) => queue.toKey(name))
  await within(
    commandTimeoutMs,
    'putting a job into its queue',
    redis.eval(putScript, keys.length, ...keys, id),
  )
}

interface Queue {
  toKey(name: string): string
}

const portionMax = 10_000

/** KEYS three lists, three sets, meta, marker, job · ARGV id */
const putScript = `
if redis.call('EXISTS', KEYS[9]) == 0 then return end
for at = 1, 3 do if redis.call('LPOS', KEYS[at], ARGV[1]) then return end end
for at = 4, 6 do if redis.call('ZSCORE', KEYS[at], ARGV[1]) then return end end
if redis.call('HEXISTS', KEYS[7], 'paused') == 0 then redis.call('ZADD', KEYS[8], 0, '0') end
redis.call('LPUSH', KEYS[1], ARGV[1])
`
