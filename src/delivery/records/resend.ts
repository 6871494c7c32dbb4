import { firedMsOf, fromJobData, type JobData } from '../../alert/job.ts'
import { recordsMax } from '../queue/attempt-record.ts'
import { waitedField } from '../queue/job-fields.ts'
import type { AlertJob, SinkQueues } from '../queue/queues.ts'
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

/** Whether this operation has put the job back already. */
export function isResent({ data: { requestedAtMs } }: AlertJob, { atMs }: Progress): boolean {
  return requestedAtMs === atMs
}

/** Puts an ended job back to waiting, with a fresh schedule; false when it is gone, or is not in that state any more. */
export async function resend(
  { redis, queue }: Pick<SinkQueues, 'redis' | 'queue'>,
  { sink, job, state }: Selected,
  { atMs }: Progress,
): Promise<boolean> {
  const { id = '', finishedOn = '', returnvalue } = job
  const own = queue(sink)
  // A delivery of its own, so that neither its age nor the earlier acknowledgement stops it.
  const data: JobData = { ...job.data, requestedAtMs: atMs }
  const answer = state === 'completed' && returnvalue ? JSON.stringify(returnvalue) : ''
  const keys = [state, id, `${id}:logs`, 'wait', 'meta', 'marker'].map((each) => own.toKey(each))
  const given = [id, finishedOn, JSON.stringify(data), answer, recordsMax]
  return (await redis.eval(resendScript, keys.length, ...keys, ...given)) === 1
}

/**
 * KEYS the ended jobs of that state, the job, its logs, what waits, meta, marker · ARGV id, when it ended as it was read, data,
 * its acknowledgement or '', records to keep
 * As BullMQ puts a job back, in one step with its new data: of two processes that do the same portion, only one does it. Nothing of
 * the delivery before counts, also not how often it stalled: BullMQ makes a job that stalls too often a dead letter without a send.
 * Returns 0 when the job is being delivered again, or has been since. Where Redis refuses its middle, the job stays where it ended,
 * perhaps without the time when, and the next call continues.
 */
const resendScript = `
if (redis.call('HGET', KEYS[2], 'finishedOn') or '') ~= ARGV[2] then return 0 end
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('HSET', KEYS[2], 'data', ARGV[3])
redis.call('HDEL', KEYS[2], 'finishedOn', 'processedOn', 'returnvalue', 'failedReason', 'atm', 'ats', 'stc', '${waitedField}')
if ARGV[4] ~= '' then
  redis.call('RPUSH', KEYS[3], ARGV[4])
  redis.call('LTRIM', KEYS[3], -ARGV[5], -1)
end
if ARGV[2] ~= '' or not redis.call('LPOS', KEYS[4], ARGV[1]) then redis.call('LPUSH', KEYS[4], ARGV[1]) end
redis.call('ZREM', KEYS[1], ARGV[1])
if redis.call('HEXISTS', KEYS[5], 'paused') == 0 then redis.call('ZADD', KEYS[6], 0, '0') end
return 1
`

function firedMs(job: AlertJob): number {
  const parsed = fromJobData('', job.data)
  return parsed.ok ? firedMsOf(parsed.job) : job.timestamp
}
