import { fromJobData, storedJob } from '../../alert/job.ts'
import { createJobFields } from '../queue/job-fields.ts'
import type { AlertQueue } from '../queue/queues.ts'
import type { PortionOptions } from '../records/portion.ts'
import { newestOf, sampleOf } from '../records/sample.ts'
import type { OrphanStep } from './steps.ts'
import { copiesOf, type MoveResult } from './work.ts'

/** What a move to `to`, or a drop without it, would do, by the rules of its scripts. All stay where they are. */
export function dryStep(
  { queue, to }: { readonly queue: AlertQueue; readonly to?: string },
  options: PortionOptions,
): OrphanStep {
  const { redis } = options.queues
  /** Of several recipients here, the first may be moved to all there. */
  const made = new Set<string>()
  const resultOf = async (id: string) => {
    const [job, locks] = await Promise.all([queue.getJob(id), redis.exists(queue.toKey(`${id}:lock`))])
    const parsed = job && fromJobData(to ?? queue.name, job.data)
    const sample = parsed?.ok ? [sampleOf(parsed.job)] : []
    const as = (result: MoveResult) => ({ result, sample: result === 'handled' ? sample : [] })
    if (locks > 0) return as('busy')
    if (to === undefined) return as('handled')
    if (parsed === undefined) return as('gone')
    if (!parsed.ok) return as('unreadable')
    const { requestedAtMs } = parsed.job
    const { acknowledged } = await createJobFields(redis, queue).read({ id, requestedAtMs })
    if (acknowledged !== undefined) return as('there')
    const there = options.queues.queue(to)
    const ids = copiesOf(parsed.job, to, options).map((copy) => storedJob(copy).id)
    const known = await Promise.all(ids.map((each) => redis.exists(there.toKey(each))))
    const fresh = ids.filter((each, at) => known[at] === 0 && !made.has(each))
    for (const each of fresh) made.add(each)
    return as(fresh.length > 0 ? 'handled' : 'there')
  }
  return async (ids, _state, _atMs, tally) => {
    const found = await Promise.all(ids.map(resultOf))
    for (const { result } of found) tally[result] += 1
    tally.sample = newestOf([...(tally.sample ?? []), ...found.flatMap(({ sample }) => sample)])
    return ids.length
  }
}
