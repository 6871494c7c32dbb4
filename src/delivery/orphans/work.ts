import { type DeliveryJob, forTargets, fromJobData, storedJob } from '../../alert/job.ts'
import { droppedName } from '../../store/keys.ts'
import { droppedLimits } from '../queue/dropped-jobs.ts'
import { createJobFields } from '../queue/job-fields.ts'
import { type AlertJob, type AlertQueue, noteTargets } from '../queue/queues.ts'
import { replaceJob } from '../queue/replace-job.ts'
import type { PortionOptions } from '../records/portion.ts'
import { moveDeadScript, removeScript } from './scripts.ts'
import type { OrphanState, OrphanStep, OrphanTally } from './steps.ts'

/** What is done to the alerts of a queue that has no worker. */
interface Move {
  readonly queue: AlertQueue
  readonly to: string
  /** Of all keys. */
  readonly prefix: string
  /** Dead letters are sent again, and not only moved. */
  readonly retry: boolean
}

/**
 * Each alert is moved in one script to the queue of `to`, under the id that it would have had there: a process with
 * another config may take jobs from the old queue at the same time.
 */
export function moveStep(move: Move, options: PortionOptions): OrphanStep {
  const { queue } = move
  return async (ids, state, atMs, tally) => {
    const jobs = await Promise.all(ids.map((id) => queue.getJob(id)))
    const results = ids.map((id, index) => moveOne(id, jobs[index], { move, state, atMs }, options))
    return count(await Promise.all(results), tally)
  }
}

export function dropStep(queue: AlertQueue, options: PortionOptions): OrphanStep {
  return async (ids, state, _atMs, tally) =>
    count(await Promise.all(ids.map((id) => remove(queue, id, state, options, 'dropped'))), tally)
}

/** The result for one alert, as the tally counts it. */
export type MoveResult = Exclude<keyof OrphanTally, 'looked' | 'sample'>

function count(results: readonly MoveResult[], tally: OrphanTally): number {
  for (const fate of results) tally[fate] += 1
  return results.filter((fate) => fate === 'busy' || fate === 'unreadable').length
}

interface MoveContext {
  readonly move: Move
  readonly state: OrphanState
  readonly atMs: number
}

async function moveOne(
  id: string,
  job: AlertJob | undefined,
  { move, state, atMs }: MoveContext,
  options: PortionOptions,
): Promise<MoveResult> {
  const { queue, to, retry } = move
  const { redis } = options.queues
  // Only its id is left in the list, not its data: it cannot be sent.
  if (job === undefined) return (await remove(queue, id, state, options)) === 'busy' ? 'busy' : 'gone'
  const parsed = fromJobData(to, job.data)
  if (!parsed.ok) return 'unreadable'
  const { requestedAtMs } = parsed.job
  const { acknowledged } = await createJobFields(redis, queue).read({ id, requestedAtMs })
  if (acknowledged !== undefined) return asThere(await remove(queue, id, state, options))
  const copies = copiesOf(parsed.job, to, options)
  if (state === 'failed' && !retry) return moveDead(id, copies, move, options)
  // Its own time may be over: an operator asks for it now.
  const asked = copies.map((copy) => ({ ...copy, requestedAtMs: atMs }))
  return moveWaiting(id, asked, { move, state, atMs }, options)
}

async function moveWaiting(
  id: string,
  copies: readonly DeliveryJob[],
  { move: { queue, to, prefix }, state, atMs }: MoveContext,
  { queues }: PortionOptions,
): Promise<MoveResult> {
  const answer = await replaceJob({
    redis: queues.redis,
    prefix,
    from: queue,
    to: queues.queue(to),
    copies,
    nowMs: atMs,
    job: { id, state, token: '' },
  })
  return answer === -2 ? 'busy' : moveResultOf(answer)
}

async function moveDead(
  id: string,
  copies: readonly DeliveryJob[],
  { queue, to }: Move,
  { queues }: PortionOptions,
): Promise<MoveResult> {
  const target = queues.queue(to)
  const made = copies.map(storedJob)
  await noteTargets(queues.redis, target, made)
  const keys = [
    ...['failed', id, `${id}:logs`, `${id}:lock`].map((each) => queue.toKey(each)),
    target.toKey('failed'),
    ...made.flatMap((copy) => [target.toKey(copy.id), target.toKey(`${copy.id}:logs`)]),
  ]
  const answer = await queues.redis.eval(
    moveDeadScript,
    keys.length,
    ...keys,
    id,
    ...made.flatMap((copy) => [copy.id, JSON.stringify(copy.data)]),
  )
  return moveResultOf(answer)
}

/** Of a script that moves: how many were made there, or -1. */
function moveResultOf(made: unknown): MoveResult {
  if (made === -1) return 'gone'
  return made === 0 ? 'there' : 'handled'
}

/** One for the same target where the sink has it; else one for each that it has. */
export function copiesOf(job: DeliveryJob, sink: string, { targets }: PortionOptions): DeliveryJob[] {
  const { target: before, ...rest } = job
  const all = targets.get(sink) ?? [undefined]
  const own = before !== undefined && all.includes(before) ? [before] : all
  return forTargets({ ...rest, sink }, own)
}

function asThere(fate: MoveResult): MoveResult {
  return fate === 'handled' ? 'there' : fate
}

async function remove(
  queue: AlertQueue,
  id: string,
  state: OrphanState,
  { queues }: PortionOptions,
  why: 'dropped' | 'moved' = 'moved',
): Promise<MoveResult> {
  const names = [state, id, `${id}:logs`, `${id}:lock`, ...(why === 'dropped' ? [droppedName] : [])]
  const keys = names.map((each) => queue.toKey(each))
  const answer = await queues.redis.eval(removeScript, keys.length, ...keys, id, ...droppedLimits)
  if (answer === 1) return 'handled'
  return answer === 0 ? 'busy' : 'gone'
}
