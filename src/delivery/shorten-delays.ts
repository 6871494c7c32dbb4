import { fromJobData } from '../alert/job.ts'
import type { Clock } from '../lib/clock.ts'
import { within } from '../lib/time-limit.ts'
import type { RedisClient } from '../store/redis.ts'
import { waitsUntil } from './digest-wait.ts'
import { createJobMarks, delayField } from './job-marks.ts'
import type { AlertQueue } from './queues.ts'
import type { SinkEntry } from './settings.ts'

/**
 * Looks through what a queue puts off, and lets go sooner what waits longer than its own schedule and the digest of this
 * config ask for. Nothing is made to wait longer: that is found out of when its turn comes. In small portions, and
 * harmless beside other processes that do the same or take the jobs meanwhile: an attempt that comes too early because
 * of it burns nothing.
 */
export interface ShortenDelays extends SinkEntry {
  readonly redis: RedisClient
  readonly queue: AlertQueue
  readonly clock: Clock
  /** What was put off had been tried at another receiver: its schedule says nothing of this one. */
  readonly otherReceiver: boolean
  readonly signal: AbortSignal
}

export interface ShortenedDelays {
  readonly looked: number
  readonly shortened: number
}

/** Throws what Redis throws; then some may go sooner, and it is to be asked for again. */
export async function shortenDelays(options: ShortenDelays): Promise<ShortenedDelays> {
  const { redis, queue, clock, signal } = options
  // Who counts from the mark of a digest counts by the wall clock, as BullMQ does.
  const fromScore = (clock.now() + slackMs) * scoreUnits
  const reading = redis.zrangebyscore(queue.toKey('delayed'), fromScore, '+inf', 'LIMIT', 0, idsMax)
  const ids = await within(readTimeoutMs, 'reading what is put off', reading)
  let sooner = 0
  for (let from = 0; from < ids.length && !signal.aborted; from += portionMax) {
    const portion = ids.slice(from, from + portionMax).map((id) => shortenDelay(id, options))
    const done = await within(portionTimeoutMs, 'letting alerts go sooner', Promise.all(portion))
    sooner += done.filter((each) => each).length
  }
  return { looked: ids.length, shortened: sooner }
}

async function shortenDelay(id: string, options: ShortenDelays): Promise<boolean> {
  const { redis, queue, clock, otherReceiver } = options
  const [job, score, marked] = await Promise.all([
    queue.getJob(id),
    redis.zscore(queue.toKey('delayed'), id),
    redis.hexists(queue.toKey(id), delayField),
  ])
  if (job === undefined || score === null) return false
  const parsed = fromJobData(queue.name, job.data)
  if (!parsed.ok) return false
  // An older version, which put it off after an attempt, has not written down until when.
  if (job.attemptsMade > 0 && marked === 0 && !otherReceiver) return false
  const { earlyMs } = await createJobMarks(redis, queue).read({
    id,
    requestedAtMs: parsed.job.requestedAtMs,
  })
  const nowMs = clock.now()
  const ownMs = otherReceiver ? nowMs : nowMs + earlyMs
  const dueMs = Math.max(ownMs, waitsUntil(parsed.job, options, nowMs) ?? 0)
  if (Math.floor(Number(score) / scoreUnits) - dueMs < slackMs) return false
  return queue
    .getBackend()
    .changeDelay(id, Math.ceil(dueMs - nowMs))
    .then(
      () => true,
      // Taken meanwhile.
      (error: unknown) => {
        if (error instanceof Error && 'code' in error && typeof error.code === 'number') return false
        throw error
      },
    )
}

/** BullMQ keeps the time in the upper bits of the score. */
const scoreUnits = 0x1000
/** Clocks of Redis and of replicas differ a little. */
const slackMs = 1_000
/** Of one look; what is beyond is looked at by the next, or goes by its own time. */
const idsMax = 200_000
const portionMax = 100
const readTimeoutMs = 10_000
const portionTimeoutMs = 10_000
