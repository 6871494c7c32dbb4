import { within } from '../lib/time-limit.ts'
import type { RedisClient } from '../store/redis.ts'
import type { AlertQueue } from './queues.ts'
import type { QueueView } from './watchdog.ts'

/** Small reads of a sink's queue that BullMQ has no single call for. Each returns within a limit or throws. */

/** `maxJobs`: of the sink's rate limit. `redis`: a connection that fails fast. */
export async function readQueueView(
  redis: RedisClient,
  queue: AlertQueue,
  maxJobs: number,
): Promise<QueueView> {
  const keys = ['meta', 'wait', 'delayed', 'active', ''].map((name) => queue.toKey(name))
  const dueScore = (Date.now() - overdueMs) * 0x1000
  const read = async (): Promise<QueueView> => {
    const [limitedMs, answer] = await Promise.all([
      queue.getRateLimitTtl(maxJobs),
      redis.eval(viewScript, keys.length, ...keys, dueScore, activeLookedAt),
    ])
    const [paused, waiting, next, overdue, active, locked] = answer as [...Counts, number, number]
    return {
      waiting: waiting + overdue + active - locked,
      locked,
      next: next === '' ? undefined : next,
      paused: paused === 1,
      limited: limitedMs > 0,
    }
  }
  return within(readTimeoutMs, 'looking at the queue', read())
}

type Counts = [paused: number, waiting: number, next: string, overdue: number]

/**
 * One command in the place of six: each lane asks every few seconds, all the time.
 * KEYS meta, wait, delayed, active, start of a job's key · ARGV highest score that is overdue, active jobs that are looked at
 */
const viewScript = `
local active = redis.call('LRANGE', KEYS[4], 0, ARGV[2] - 1)
local locked = 0
for _, id in ipairs(active) do locked = locked + redis.call('EXISTS', KEYS[5] .. id .. ':lock') end
return {
  redis.call('HEXISTS', KEYS[1], 'paused'),
  redis.call('LLEN', KEYS[2]),
  redis.call('LINDEX', KEYS[2], -1) or '',
  redis.call('ZCOUNT', KEYS[3], 0, ARGV[1]),
  #active,
  locked,
}
`

/** When a delayed job is due; undefined for any other. */
export async function readDueMs(queue: AlertQueue, jobId: string): Promise<number | undefined> {
  const read = async () => (await queue.getBackend().client).zscore(queue.toKey('delayed'), jobId)
  const score = await within(readTimeoutMs, 'reading when a job is due', read())
  return score === null ? undefined : dueOfScore(score)
}

export async function promoteDelayed(queue: AlertQueue): Promise<void> {
  await within(promoteTimeoutMs, 'promoting delayed jobs', queue.promoteJobs({ count: 1_000 }))
}

const readTimeoutMs = 5_000
/** Due for so long by the clock that BullMQ uses; clocks of replicas differ a little. */
const overdueMs = 30_000
const activeLookedAt = 100
const promoteTimeoutMs = 30_000

/** BullMQ keeps the time in the upper bits of the score and an order within the millisecond in the lower twelve. */
function dueOfScore(score: string | number | undefined): number {
  return Math.floor(Number(score) / 0x1000)
}
