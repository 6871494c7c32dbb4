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

export interface Due {
  readonly jobId: string
  readonly atMs: number
}

/** The delayed jobs, earliest first, up to `countMax`. */
export async function delayedDues(queue: AlertQueue, countMax = 10_000): Promise<Due[]> {
  const read = async () => {
    const client = await queue.getBackend().client
    return client.zrange(queue.toKey('delayed'), 0, countMax - 1, { WITHSCORES: true })
  }
  const flat = await within(readTimeoutMs, 'reading the delayed jobs', read())
  const dues: Due[] = []
  for (let index = 0; index + 1 < flat.length; index += 2)
    dues.push({ jobId: flat[index] ?? '', atMs: dueOfScore(flat[index + 1]) })
  return dues
}

/** When a delayed job is due; undefined for any other. */
export async function dueAt(queue: AlertQueue, jobId: string): Promise<number | undefined> {
  const read = async () => (await queue.getBackend().client).zscore(queue.toKey('delayed'), jobId)
  const score = await within(readTimeoutMs, 'reading when a job is due', read())
  return score === null ? undefined : dueOfScore(score)
}

/** Lets the delayed job that is due first go now, unless others wait already; tells which, and when it was due. */
export async function promoteEarliest(queue: AlertQueue): Promise<Due | undefined> {
  const counts = await within(readTimeoutMs, 'counting jobs', queue.getJobCounts('wait', 'active'))
  if ((counts['wait'] ?? 0) > 0 || (counts['active'] ?? 0) > 0) return undefined
  const [due] = await delayedDues(queue, 1)
  const job = due && (await within(readTimeoutMs, 'reading a job', queue.getJob(due.jobId)))
  if (!job) return undefined
  await within(readTimeoutMs, 'promoting a job', job.promote())
  return due
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
