import type { AlertQueue } from './queues.ts'
import { within } from './time-limit.ts'
import type { QueueView } from './watchdog.ts'

/** Small questions to a sink's queue that BullMQ has no single call for. Each answers within a limit or throws. */

export async function viewOf(queue: AlertQueue, maxJobs: number): Promise<QueueView> {
  const answers = Promise.all([
    queue.getJobCounts('wait', 'active'),
    queue.isPaused(),
    queue.getRateLimitTtl(maxJobs),
  ])
  const [counts, paused, limitedMs] = await within(readTimeoutMs, 'looking at the queue', answers)
  return { waiting: counts['wait'] ?? 0, active: counts['active'] ?? 0, paused, limited: limitedMs > 0 }
}

/** When a delayed job is due; undefined for any other. */
export async function dueAt(queue: AlertQueue, jobId: string): Promise<number | undefined> {
  const read = async () => (await queue.getBackend().client).zscore(queue.toKey('delayed'), jobId)
  const score = await within(readTimeoutMs, 'reading when a job is due', read())
  return score === null ? undefined : dueOfScore(score)
}

export async function promoteDelayed(queue: AlertQueue): Promise<void> {
  await within(promoteTimeoutMs, 'promoting delayed jobs', queue.promoteJobs({ count: 1_000 }))
}

const readTimeoutMs = 5_000
const promoteTimeoutMs = 30_000

/** BullMQ keeps the time in the upper bits of the score and an order within the millisecond in the lower twelve. */
function dueOfScore(score: string | number | undefined): number {
  return Math.floor(Number(score) / 0x1000)
}
