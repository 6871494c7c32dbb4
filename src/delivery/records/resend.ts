import { fromJobData, type JobData } from '../../alert/job.ts'
import type { AlertJob } from '../processor.ts'
import type { SinkQueues } from '../queues.ts'
import { type Operation, type PortionOptions, runPortion, type Selected } from './portion.ts'
import type { Order, Portion, Progress } from './selection.ts'

/** Sends again on purpose what was delivered, or given up on. */
export interface Replay {
  /**
   * `sinceMs` and `untilMs` (without it: now) are when the alert fired; when it was first seen where that is not known.
   * What still waits to be delivered is left to its schedule.
   */
  replay(order: Order): Promise<Portion>
}

export function createReplay(options: PortionOptions): Replay {
  return { replay: (order) => runPortion(replayOf(order, options), order, options) }
}

function replayOf(
  { ids, sinceMs = Number.NEGATIVE_INFINITY, untilMs }: Order,
  { targets, queues }: PortionOptions,
): Operation {
  const fired = (job: AlertJob, { atMs }: Progress) =>
    firedMs(job) >= sinceMs && firedMs(job) <= (untilMs ?? atMs)
  return {
    name: 'sending again',
    states: ['completed', 'failed'],
    // Nothing ends before it fires.
    range: { fromMs: sinceMs - clockErrorMs, throughMs: Number.POSITIVE_INFINITY },
    isWanted: (job, progress) =>
      (ids !== undefined || fired(job, progress)) && !isResent(job, progress) && !hasLeft(job, targets),
    act: (found, progress) => resend(queues, found, progress),
  }
}

/** A recipient that left its sink's list gets nothing any more: what it had stays delivered. */
function hasLeft({ queueName, data: { target } }: AlertJob, targets: PortionOptions['targets']): boolean {
  const today = targets.get(queueName) ?? [undefined]
  return target !== undefined && !today.includes(undefined) && !today.includes(target)
}

/** The clocks of the feed, of the poller and of the sender may differ; records of that much more are looked at. */
const clockErrorMs = 24 * 3_600_000

/** Whether this operation has put the job back already, and it has ended since. */
export function isResent(job: AlertJob, { atMs }: Progress): boolean {
  // A job that was marked, but not put back because the process was killed, still has the same end as when it was marked.
  return job.data.requestedAtMs === atMs && job.data.repeatedEndMs !== job.finishedOn
}

/** Puts an ended job back to waiting, with a fresh schedule. */
export async function resend(
  { redis, queue }: Pick<SinkQueues, 'redis' | 'queue'>,
  { sink, job, state }: Selected,
  { atMs }: Progress,
): Promise<boolean> {
  const { id = '', finishedOn: repeatedEndMs } = job
  try {
    // Marks it as a delivery of its own, so that neither its age nor the earlier acknowledgement stops it.
    const data: JobData = { ...job.data, requestedAtMs: atMs, ...(repeatedEndMs ? { repeatedEndMs } : {}) }
    const own = queue(sink)
    const keys = [own.toKey(state), own.toKey(id)]
    const given = [id, String(repeatedEndMs ?? ''), JSON.stringify(data)]
    if ((await redis.eval(markScript, keys.length, ...keys, ...given)) !== 1) return false
    // BullMQ deletes the last answer when it puts the job back.
    if (state === 'completed' && job.returnvalue) await job.log(JSON.stringify(job.returnvalue))
    await job.retry(state, { resetAttemptsMade: true, resetAttemptsStarted: true })
    return true
  } catch (error) {
    // It is gone or not in that state any more: too old by now, or another request was faster.
    if (error instanceof Error && 'code' in error && typeof error.code === 'number') return false
    throw error
  }
}

/**
 * KEYS the ended jobs of that state, the job · ARGV id, when it ended as it was read, data
 * Returns 0 when the job is being delivered again, or has been since: then its data must not change.
 */
const markScript = `
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
if (redis.call('HGET', KEYS[2], 'finishedOn') or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[2], 'data', ARGV[3])
return 1
`

/** When it fired; when it was seen where that is not known. */
function firedMs(job: AlertJob): number {
  const parsed = fromJobData('', job.data)
  if (!parsed.ok) return job.timestamp
  const { alert, seenAtMs } = parsed.job
  // It was not seen before it fired, whatever the clock of the feed says.
  return Math.min(alert.firedAtMs ?? seenAtMs, seenAtMs)
}
