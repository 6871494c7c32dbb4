import { createHash } from 'node:crypto'
import { type DeliveryJob, jobId } from '../alert/job.ts'
import { targetTagsName } from '../store/keys.ts'
import type { RedisClient } from '../store/redis.ts'

/**
 * The ids of one alert's jobs in a sink's queue: one for each target that the sink has, or had when the alert came. Redis
 * stores the tags of all targets, so that an alert is found whose recipient has left the config.
 */

/** The id of an alert's job in a sink's queue; `target` as in `DeliveryJob`. */
export function deliveryJobId(alert: { source: string; id: number }, target: string | undefined): string {
  return jobId(alert, target === undefined ? undefined : targetTag(target))
}

/** Every id that a job of this alert may have there; `targets` are those of the present config. */
export async function jobIdsOf(
  alert: { source: string; id: number },
  {
    redis,
    queue,
    targets,
  }: { redis: RedisClient; queue: OwnKeys; targets: readonly DeliveryJob['target'][] },
): Promise<string[]> {
  await queue.waitUntilReady()
  const tags = await redis.smembers(queue.toKey(targetTagsName))
  const today = targets.map((target) => deliveryJobId(alert, target))
  return [...new Set([...today, jobId(alert), ...tags.map((tag) => jobId(alert, tag))])]
}

/** To be done before the first of these jobs is stored. */
export async function noteTargets(
  redis: RedisClient,
  queue: OwnKeys,
  jobs: readonly DeliveryJob[],
): Promise<void> {
  const tags = new Set(jobs.flatMap(({ target }) => (target === undefined ? [] : [targetTag(target)])))
  if (tags.size > 0) await redis.sadd(queue.toKey(targetTagsName), ...tags)
}

/** A queue, as far as it is asked here. */
interface OwnKeys {
  toKey(name: string): string
  waitUntilReady(): Promise<unknown>
}

/** A hash, because recipients are long, may contain any character, and do not belong in a log. */
function targetTag(target: string): string {
  return createHash('sha256').update(target).digest('hex').slice(0, 12)
}
