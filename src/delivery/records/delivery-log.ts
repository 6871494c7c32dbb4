import { within } from '../../lib/time-limit.ts'
import { type AttemptRecord, parseAttemptRecord, recordsMax } from '../queue/attempt-record.ts'
import { type AlertQueue, jobIdsOf, type SinkQueues } from '../queue/queues.ts'
import { readDueMs } from '../queue/view.ts'
import { type JobState, type JobView, jobStates, viewOfJob } from './job-view.ts'
import { readSinkQueue, type SinkQueueView } from './sink-queue.ts'

/**
 * The state of the alerts, read from the queues themselves, which are the only record. Every call ends within a limit
 * and throws when Redis is away.
 */
export interface DeliveryLog {
  /**
   * One alert over all sinks, with every attempt and its answer; empty when no sink got it, or its records were removed.
   * A recipient that left the list of its sink is not part of it.
   */
  historiesOf(alert: { source: string; id: number }): Promise<JobHistory[]>
  /** What changed last comes first. */
  list(query: { limit: number; state?: JobState; sink?: string }): Promise<JobView[]>
  /** Each sink's queue; `deliveredSince` counts what was acknowledged at or after `sinceMs` and is still kept. */
  sinks(sinceMs?: number): Promise<SinkQueueView[]>
}

export interface JobHistory extends JobView {
  /** Oldest first; the last `recordsMax` of them. */
  readonly history: readonly AttemptRecord[]
}

interface DeliveryLogOptions {
  readonly queues: SinkQueues
  /** The targets of each sink, as the sink itself names them. */
  readonly targets: ReadonlyMap<string, readonly (string | undefined)[]>
  /**
   * Sinks that are not in the config and have records. They are searched too, of their targets those that Redis knows.
   */
  readonly orphans?: () => Promise<readonly string[]>
}

const listLimitMax = 500

export function createDeliveryLog({ queues, targets, orphans }: DeliveryLogOptions): DeliveryLog {
  return {
    async historiesOf(alert) {
      const sinks = [...queues.sinks, ...((await orphans?.()) ?? [])]
      const found = sinks.map(async (sink) => {
        const queue = queues.anyQueue(sink)
        const own = { redis: queues.redis, queue, targets: targets.get(sink) ?? [] }
        const ids = await jobIdsOf(alert, own)
        return Promise.all(ids.map((id) => historyOf(sink, own, id)))
      })
      const parts = await within(readTimeoutMs, 'reading an alert', Promise.all(found))
      return parts.flat().filter((part) => part !== undefined)
    },
    async list({ limit, state, sink }) {
      const count = Math.min(Math.max(1, limit), listLimitMax)
      const states = state === undefined ? jobStates : [state]
      const lists = (sink === undefined ? queues.sinks : [sink]).flatMap((name) =>
        states.map((each) => listState(queues, name, each, count)),
      )
      const found = (await within(readTimeoutMs, 'listing deliveries', Promise.all(lists))).flat()
      const newest = found.sort((a, b) => b.changedAtMs - a.changedAtMs).slice(0, count)
      const views: (JobView | undefined)[] = []
      for (let from = 0; from < newest.length; from += partMax) {
        const part = newest.slice(from, from + partMax).map(viewOf)
        views.push(...(await within(readTimeoutMs, 'reading deliveries', Promise.all(part))))
      }
      return views.filter((view) => view !== undefined)
    },
    async sinks(sinceMs = 0) {
      const views = queues.sinks.map((sink) =>
        readSinkQueue(sink, queues, sinceMs, targets.get(sink)?.length),
      )
      return within(readTimeoutMs, 'reading the queues', Promise.all(views))
    },
  }
}

const readTimeoutMs = 10_000
/** Deliveries that are read together: a row may be as large as a page of the feed. */
const partMax = 25

async function historyOf(
  sink: string,
  { redis, queue }: Pick<SinkQueues, 'redis'> & { readonly queue: AlertQueue },
  jobId: string,
): Promise<JobHistory | undefined> {
  const [job, state, logs, nextAtMs] = await Promise.all([
    queue.getJob(jobId),
    queue.getJobState(jobId),
    // BullMQ's own call reads them in a transaction, and these Redis refuses while its memory is full.
    redis.lrange(queue.toKey(`${jobId}:logs`), 0, recordsMax),
    readDueMs(queue, jobId),
  ])
  const known = jobStates.find((each) => each === state)
  if (!job || !known) return undefined
  const view = viewOfJob(sink, job, known, nextAtMs)
  // An answer may be stored twice where a process was killed while it put the alert back.
  const failed = [...new Set(logs)].map(parseAttemptRecord).filter((record) => record !== undefined)
  return { ...view, history: view.delivered ? [...failed, view.delivered] : failed }
}

interface Listed {
  readonly sink: string
  readonly queue: AlertQueue
  readonly state: JobState
  readonly jobId: string
  readonly changedAtMs: number
}

/** The newest of one queue in one state, by what is small of each. */
async function listState(
  { redis, queue: queueOf }: SinkQueues,
  sink: string,
  state: JobState,
  count: number,
): Promise<Listed[]> {
  const queue = queueOf(sink)
  const ids = await queue.getRanges([state === 'waiting' ? 'wait' : state], 0, count - 1, false)
  const listed = ids.map(async (jobId) => {
    const times = await redis.hmget(queue.toKey(jobId), 'finishedOn', 'processedOn', 'timestamp')
    return { sink, queue, state, jobId, changedAtMs: Number(times.find((each) => each !== null) ?? 0) }
  })
  return Promise.all(listed)
}

async function viewOf({ sink, queue, state, jobId }: Listed): Promise<JobView | undefined> {
  const [job, dueMs] = await Promise.all([
    queue.getJob(jobId),
    state === 'delayed' ? readDueMs(queue, jobId) : undefined,
  ])
  return job && viewOfJob(sink, job, state, dueMs)
}
