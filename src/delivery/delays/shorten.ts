import { fromJobData } from '../../alert/job.ts'
import type { Clock } from '../../lib/clock.ts'
import { within } from '../../lib/time-limit.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { pauseMsMax } from '../backoff.ts'
import { waitsUntil } from '../message/digest.ts'
import { createJobFields, delayField } from '../queue/job-fields.ts'
import type { AlertQueue } from '../queue/queues.ts'
import type { SinkEntry } from '../settings.ts'

/**
 * Looks through the delayed jobs of a queue and shortens delays that are longer than the job's own schedule, and the retry and
 * the digest of this config need. Makes no job wait longer: a job that is too early is delayed again when a worker takes it,
 * and no attempt is counted. Works in small portions; other processes may do the same, or take the jobs, at the same time.
 */
interface ShortenDelays extends SinkEntry {
  readonly redis: RedisClient
  readonly queue: AlertQueue
  readonly clock: Clock
  /** The delayed jobs were tried at another receiver: their schedules do not apply to this one. */
  readonly otherReceiver: boolean
  readonly signal: AbortSignal
}

interface ShortenedDelays {
  readonly looked: number
  readonly shortened: number
}

/** Throws what Redis throws; then only some are shortened, and it is to be called again. */
export async function shortenDelays(options: ShortenDelays): Promise<ShortenedDelays> {
  const { redis, queue, clock, signal } = options
  // The marks of digests are by the wall clock, as BullMQ's delays are.
  const fromScore = (clock.now() + slackMs) * scoreUnits
  const reading = redis.zrangebyscore(queue.toKey('delayed'), fromScore, '+inf', 'LIMIT', 0, idsMax)
  const ids = await within(readTimeoutMs, 'reading delayed jobs', reading)
  let sooner = 0
  for (let from = 0; from < ids.length && !signal.aborted; from += portionMax) {
    const portion = ids.slice(from, from + portionMax).map((id) => shortenDelay(id, options))
    const done = await within(portionTimeoutMs, 'shortening delays', Promise.all(portion))
    sooner += done.filter((each) => each).length
  }
  return { looked: ids.length, shortened: sooner }
}

async function shortenDelay(id: string, options: ShortenDelays): Promise<boolean> {
  const { redis, queue, clock, otherReceiver } = options
  const [job, score, hasDelayField] = await Promise.all([
    queue.getJob(id),
    redis.zscore(queue.toKey('delayed'), id),
    redis.hexists(queue.toKey(id), delayField),
  ])
  if (job === undefined || score === null) return false
  const parsed = fromJobData(queue.name, job.data)
  if (!parsed.ok) return false
  // An older version delayed it after an attempt and has not stored until when.
  if (job.attemptsMade > 0 && hasDelayField === 0 && !otherReceiver) return false
  const fields = createJobFields(redis, queue)
  const delivery = { id, requestedAtMs: parsed.job.requestedAtMs }
  // A pause that the receiver asked for is also kept as a hold, which stays.
  if (job.attemptsMade > 0)
    await fields.shorten(delivery, pauseMsMax(job.attemptsMade, options.settings.retry))
  const { earlyMs } = await fields.read(delivery)
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
/** Of one look; what is beyond is looked at by the next, or is due by then. */
const idsMax = 200_000
const portionMax = 100
const readTimeoutMs = 10_000
const portionTimeoutMs = 10_000
