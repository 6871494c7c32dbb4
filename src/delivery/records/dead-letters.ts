import * as z from 'zod'
import { within } from '../../lib/time-limit.ts'
import { droppedName } from '../../store/keys.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import { droppedLimits, rememberDropped } from '../queue/dropped-jobs.ts'
import type { SinkQueues } from '../queue/queues.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { countEnded, type Ended, type EndedSet, endedBefore } from './ended.ts'
import { type JobView, viewOfJob } from './job-view.ts'
import { failureReason, type LetterGroups, readLetterGroups } from './letter-groups.ts'
import { type Operation, type PortionOptions, runPortion, type Selected } from './portion.ts'
import { isResent, resend } from './resend.ts'
import type { Order, Portion } from './selection.ts'

/**
 * What could not be delivered: the failed jobs of the queues, nothing beside them, so that nothing can be lost on the
 * way here. They are kept for 90 days, the newest million of a sink.
 */
export interface DeadLetters {
  list(query: DeadLetterQuery): Promise<DeadLetterPage>
  groups(): Promise<LetterGroups>
  /** Sends them again with a full schedule, the same `webhook-id` and no regard to their age. */
  retry(order: Order): Promise<Portion>
  /** Forgets them. An alert that the feed shows again is not sent again: it was seen. */
  drop(order: Order): Promise<Portion>
}

export interface DeadLetterQuery {
  readonly limit: number
  readonly sink?: string
  /** When the alert was given up on. */
  readonly sinceMs?: number
  /** Of the page before. */
  readonly cursor?: string
}

/** The newest first. */
interface DeadLetterPage {
  readonly letters: readonly DeadLetter[]
  /** How many there are, on this page and on all others. */
  readonly total: number
  /** Absent on the last page. */
  readonly cursor?: string
}

export interface DeadLetter extends JobView {
  /** See `failureReason`. */
  readonly reason: string
}

export function createDeadLetters(options: PortionOptions): DeadLetters {
  return {
    list: (query) => listLetters(options.queues, query),
    groups: () => readLetterGroups(options.queues),
    retry: (order) =>
      runPortion(
        {
          ...ofLetters(order),
          name: 'sending again',
          act: (found, progress) => resend(options.queues, found, progress),
        },
        order,
        options,
      ),
    drop: (order) =>
      runPortion(
        { ...ofLetters(order), name: 'dropping', act: (found) => drop(options.queues, found) },
        order,
        options,
      ),
  }
}

function ofLetters(order: Order): Omit<Operation, 'name' | 'act'> {
  const { sinceMs = Number.NEGATIVE_INFINITY, untilMs = Number.POSITIVE_INFINITY } =
    order.ids === undefined ? order : {}
  return {
    states: ['failed'],
    range: { fromMs: sinceMs, throughMs: untilMs },
    isWanted: (job, progress) =>
      (order.reason === undefined || failureReason(job.failedReason) === order.reason) &&
      !isResent(job, progress),
  }
}

/**
 * KEYS the failed jobs, the set of dropped ids, the job, its logs · ARGV id, those of `rememberDropped`
 * Returns 1, or 0 when it is no dead letter any more: then another request is sending it again. Where Redis refuses its middle, the
 * next call continues: a job in no list would be found, and sent. A Redis that refuses DEL refuses it for the logs.
 */
const dropScript = `
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end${rememberDropped('KEYS[2]')}
redis.call('DEL', KEYS[4])
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[3])
return 1
`

async function drop({ redis, queue }: SinkQueues, { sink, job }: Selected): Promise<boolean> {
  const id = job.id ?? ''
  const own = queue(sink)
  const keys = ['failed', droppedName, id, `${id}:logs`].map((each) => own.toKey(each))
  return (await redis.eval(dropScript, keys.length, ...keys, id, ...droppedLimits)) === 1
}

function letterOf(view: JobView): DeadLetter {
  return { ...view, reason: failureReason(view.failure) }
}

/** Letters that are read together: a row may be as large as a page of the feed. */
const partMax = 25

async function listLetters(queues: SinkQueues, query: DeadLetterQuery): Promise<DeadLetterPage> {
  const { limit, sink, sinceMs: fromMs = Number.NEGATIVE_INFINITY } = query
  const place = query.cursor === undefined ? undefined : readCursor(positionSchema, query.cursor)
  const sets = (sink === undefined ? queues.sinks : [sink]).map((name) => setOf(queues, name))
  const range = { fromMs, throughMs: place?.endedAtMs ?? Number.POSITIVE_INFINITY }
  // Each sink gives its newest; only then is it known which are the newest of all.
  const newest = sets.map(async (set) => {
    const isPassed = (each: Ended) => place !== undefined && inOrder({ ...each, sink: set.sink }, place) <= 0
    const own = await endedBefore(set, range, isPassed, limit + 1)
    return own.map((each) => ({ ...each, sink: set.sink }))
  })
  const all = { fromMs, throughMs: Number.POSITIVE_INFINITY }
  const counting = sets.map((set) => countEnded(set, all))
  const [found, counts] = await Promise.all([Promise.all(newest), Promise.all(counting)])
  const merged = found.flat().sort(inOrder)
  const shown = merged.slice(0, limit)
  const letters: DeadLetter[] = []
  for (let from = 0; from < shown.length; from += partMax) {
    const reading = shown
      .slice(from, from + partMax)
      .map(async (each) => ({ sink: each.sink, job: await queues.queue(each.sink).getJob(each.jobId) }))
    for (const { sink: name, job } of await within(commandTimeoutMs, 'reading letters', Promise.all(reading)))
      if (job) letters.push(letterOf(viewOfJob(name, job, 'failed')))
  }
  const total = counts.reduce((sum, count) => sum + count, 0)
  const last = merged.length > limit ? shown.at(-1) : undefined
  return {
    letters,
    total,
    ...(last ? { cursor: writeCursor(last) } : {}),
  }
}

function setOf(queues: SinkQueues, sink: string): EndedSet & { readonly sink: string } {
  return { sink, redis: queues.redis, queue: queues.queue(sink), state: 'failed' }
}

const positionSchema = z.object({ sink: z.string(), jobId: z.string(), endedAtMs: z.number() })
type ListPosition = z.infer<typeof positionSchema>

function inOrder(a: ListPosition, b: ListPosition): number {
  if (a.endedAtMs !== b.endedAtMs) return b.endedAtMs - a.endedAtMs
  if (a.sink !== b.sink) return a.sink < b.sink ? -1 : 1
  return a.jobId === b.jobId ? 0 : a.jobId > b.jobId ? -1 : 1
}
