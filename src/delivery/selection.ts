import type { Clock } from '../lib/clock.ts'
import type { AlertJob } from './processor.ts'
import { type AlertQueue, deliveryJobId, type SinkQueues } from './queues.ts'
import { within } from './time-limit.ts'

/**
 * Which ended deliveries an operator means. Times are milliseconds since the epoch; an id is `SOURCE.ID`, which is the
 * alert in every sink and target, or the whole id of a job.
 */
export type Selection =
  | { readonly ids: readonly string[]; readonly sink?: string }
  | { readonly ids?: never; readonly sink?: string; readonly sinceMs?: number; readonly untilMs?: number }

export interface Selected {
  readonly sink: string
  readonly job: AlertJob
  readonly state: EndState
}

export type EndState = 'completed' | 'failed'

export interface SelectionContext {
  readonly queues: SinkQueues
  readonly targets: ReadonlyMap<string, readonly (string | undefined)[]>
}

export interface Handled {
  readonly handled: number
  /** The call's bound was reached: the next one goes on. */
  readonly more: boolean
}

export interface EndedOptions extends SelectionContext {
  readonly clock: Clock
  /** How many one call may touch. */
  readonly limit?: number
}

/** What one call may touch; the next call goes on. */
export const selectedMax = 10_000

/**
 * At most `limit` jobs that stand in one of `states`, newest first; `timeOf` is what `sinceMs` and `untilMs` are
 * compared with, and may not lie behind the time the delivery ended.
 */
export async function select(
  selection: Selection,
  states: readonly EndState[],
  timeOf: (job: AlertJob) => number,
  limit: number,
  context: SelectionContext,
): Promise<Selected[]> {
  const { queues } = context
  const sinks = selection.sink === undefined ? queues.sinks : [selection.sink]
  const selected: Selected[] = []
  for (const sink of sinks) {
    const left = limit - selected.length
    if (left <= 0) break
    const found =
      selection.ids === undefined
        ? await byTime(sink, queues.queue(sink), selection, states, timeOf, left)
        : await byId(sink, selection.ids, states, left, context)
    selected.push(...found)
  }
  return selected
}

const pageSize = 200
const readTimeoutMs = 10_000

async function byTime(
  sink: string,
  queue: AlertQueue,
  {
    sinceMs = Number.NEGATIVE_INFINITY,
    untilMs = Number.POSITIVE_INFINITY,
  }: Exclude<Selection, { ids: readonly string[] }>,
  states: readonly EndState[],
  timeOf: (job: AlertJob) => number,
  limit: number,
): Promise<Selected[]> {
  const found: Selected[] = []
  for (const state of states) {
    for (let from = 0; found.length < limit; from += pageSize) {
      const page = await within(
        readTimeoutMs,
        'reading ended deliveries',
        queue.getJobs([state], from, from + pageSize - 1, false),
      )
      for (const job of page) {
        const atMs = timeOf(job)
        if (found.length < limit && atMs >= sinceMs && atMs <= untilMs) found.push({ sink, job, state })
      }
      // They come in the order in which they ended: what ended before `sinceMs` cannot have been seen after it.
      const last = page.at(-1)
      if (!last || (last.finishedOn ?? 0) < sinceMs) break
    }
  }
  return found
}

async function byId(
  sink: string,
  ids: readonly string[],
  states: readonly EndState[],
  limit: number,
  { queues, targets }: SelectionContext,
): Promise<Selected[]> {
  const queue = queues.queue(sink)
  const own = targets.get(sink) ?? [undefined]
  const jobIds = new Set(ids.flatMap((id) => [id, ...own.map((target) => withTarget(id, target))]))
  const found: Selected[] = []
  for (const jobId of jobIds) {
    if (found.length >= limit) break
    const read = Promise.all([queue.getJob(jobId), queue.getJobState(jobId)])
    const [job, jobState] = await within(readTimeoutMs, 'reading a delivery', read)
    const state = states.find((each) => each === jobState)
    if (job && state) found.push({ sink, job, state })
  }
  return found
}

function withTarget(id: string, target: string | undefined): string {
  const match = /^(.+)\.(\d+)$/.exec(id)
  return match ? deliveryJobId({ source: match[1] ?? '', id: Number(match[2]) }, target) : id
}
