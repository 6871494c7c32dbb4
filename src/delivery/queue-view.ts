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
  const key = (name: string) => queue.toKey(name)
  const read = async (): Promise<QueueView> => {
    const [paused, limitedMs, waiting, next, overdue, active] = await Promise.all([
      queue.isPaused(),
      queue.getRateLimitTtl(maxJobs),
      redis.llen(key('wait')),
      redis.lindex(key('wait'), -1),
      redis.zcount(key('delayed'), 0, (Date.now() - overdueMs) * 0x1000),
      redis.lrange(key('active'), 0, activeLookedAt - 1),
    ])
    const locked = active.length === 0 ? 0 : await redis.exists(...active.map((id) => `${key(id)}:lock`))
    return {
      waiting: waiting + overdue + active.length - locked,
      locked,
      next: next ?? undefined,
      paused,
      limited: limitedMs > 0,
    }
  }
  return within(readTimeoutMs, 'looking at the queue', read())
}

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
