import { type DeliveryJob, forTargets, storedJob } from '../../alert/job.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { sinkNamesKey } from '../../store/keys.ts'
import { moveWaitingScript } from '../orphans/scripts.ts'
import { type AlertQueue, noteTargets } from './queues.ts'

/**
 * A sink that changed its type has targets of another kind: recipients instead of a single one, or the other way round.
 * Returns the jobs that replace one that was stored before, or undefined where the job fits. Alerts of a recipient that
 * left the list of its sink are not replaced.
 */
export function replacementsOf(
  { target, ...rest }: DeliveryJob,
  targets: readonly (string | undefined)[],
): DeliveryJob[] | undefined {
  const single = targets.includes(undefined)
  if (single === (target === undefined)) return undefined
  return forTargets(rest, targets)
}

export interface JobReplacement {
  readonly redis: RedisClient
  readonly prefix: string
  readonly from: AlertQueue
  readonly to: AlertQueue
  /** `state`: the list that has its id; `token`: of our lock on it, '' where no process may have one. */
  readonly job: { readonly id: string; readonly state: string; readonly token: string }
  readonly copies: readonly DeliveryJob[]
  readonly nowMs: number
}

/** Puts the copies in the place of the job, in one script. Returns as `moveWaitingScript`. */
export async function replaceJob({
  redis,
  prefix,
  from,
  to,
  job,
  copies,
  nowMs,
}: JobReplacement): Promise<unknown> {
  const { id, state, token } = job
  const made = copies.map(storedJob)
  await noteTargets(redis, to, made)
  const keys = [
    ...[state, id, `${id}:logs`, `${id}:lock`].map((each) => from.toKey(each)),
    sinkNamesKey(prefix),
    ...['wait', 'meta', 'marker'].map((each) => to.toKey(each)),
    ...made.map((copy) => to.toKey(copy.id)),
  ]
  const given = [id, to.name, nowMs, token, ...made.flatMap((copy) => [copy.id, JSON.stringify(copy.data)])]
  return redis.eval(moveWaitingScript, keys.length, ...keys, ...given)
}
