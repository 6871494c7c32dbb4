import { readJson } from '../../alert/json/json.ts'
import { given } from '../../lib/given.ts'
import { holdCountMin } from '../../store/sink/delay-origins.ts'
import { answerText } from '../attempt/follow-up.ts'
import { parseAttemptRecord, tooOldText } from '../queue/attempt-record.ts'
import { delayField, isOfDelivery } from '../queue/job-fields.ts'
import type { SinkQueues } from '../queue/queues.ts'
import { type JobState, jobStates } from './job-view.ts'

/** One sink's queue as the status shows it. */
export interface SinkQueueView {
  readonly sink: string
  readonly paused: boolean
  readonly counts: Readonly<Record<JobState, number>>
  readonly lastDeliveredAtMs?: number
  /** What the sink answered then. */
  readonly lastAnswer?: string
  readonly lastDeadAtMs?: number
  /** Why the last dead letter was given up on. */
  readonly lastDeadReason?: string
  readonly deliveredSince: number
  /** When the pause ends that the sink asked for, or that its breaker made. */
  readonly heldUntilMs?: number
  /** When the alert that is next to be sent was queued, or an operator asked for it. */
  readonly oldestWaitingAtMs?: number
  /** As that, of the alert that has been tried in vain for the longest, of the few whose next attempt is the last one to come. */
  readonly oldestTriedAtMs?: number
  /** The last attempt in vain of those few. */
  readonly lastRetry?: { readonly atMs: number; readonly text: string }
  /** How many were acknowledged or given up on within `paceMs`, and since that one was queued where one waits. */
  readonly endedOfLate: number
  /**
   * Alerts given up on since the last acknowledgement; a mail that each recipient refused is one. Where the newest hardly have one
   * among them that was sent at all, only those that were: alerts of long ago, as of a first start with `startFrom: beginning`, say
   * nothing of their sink.
   */
  readonly refusedInARow: number
}

/** Over how long the pace of a sink is measured. */
export const paceMs = 5 * 60_000

/** One command, or two where an alert has waited for less than `paceMs`: an open status page asks for every sink each second. */
export async function readSinkQueue(
  sink: string,
  queues: Pick<SinkQueues, 'redis' | 'queue' | 'endedSince'>,
  sinceMs: number,
  recipients = 1,
): Promise<SinkQueueView> {
  const queue = queues.queue(sink)
  const paceFromMs = Date.now() - paceMs
  const keys = ['meta', ...stateNames, '', 'limiter'].map((name) => queue.toKey(name))
  const reading = queues.redis.eval(
    ...([sinkQueueScript, keys.length, ...keys] as const),
    ...[sinceMs, paceFromMs, `expired: ${tooOldText}`, recipients, holdCountMin],
  )
  const [paused, sizes, done, dead, next, deliveredSince, ended, refusedInARow, tried, heldUntilMs] =
    (await reading) as SinkQueueAnswer
  const [finishedOn, returnvalue] = done
  const [deadOn, lastDeadReason] = dead
  const oldestWaitingAtMs = waitingSince(next)
  const isShorter = oldestWaitingAtMs !== undefined && oldestWaitingAtMs > paceFromMs
  const [[doneOfLate, deadOfLate] = [0, 0]] = isShorter
    ? await queues.endedSince(sink, [oldestWaitingAtMs])
    : [ended]
  const answer = parseAttemptRecord(returnvalue)
  return {
    sink,
    paused: paused === 1,
    deliveredSince,
    counts: Object.fromEntries(jobStates.map((state, at) => [state, sizes[at] ?? 0])) as Record<
      JobState,
      number
    >,
    ...given({
      lastDeliveredAtMs: instantOf(finishedOn),
      lastAnswer: answer && (answerText(answer) || undefined),
      lastDeadAtMs: instantOf(deadOn),
      lastDeadReason: lastDeadReason || undefined,
      heldUntilMs: heldUntilMs || undefined,
      oldestWaitingAtMs,
      oldestTriedAtMs: tried.map(triedSince).reduce(earlier, undefined),
      lastRetry: lastRetry(tried),
    }),
    endedOfLate: doneOfLate + deadOfLate,
    refusedInARow,
  }
}

/** Of so many newest alerts that were given up on, so many must have been sent for all to count as refused. */
const [newestAlerts, sentMin] = [20, 3]

/** Those that were tried most often wait for the longest. */
const triedLookedAt = 3

/** The keys of `jobStates`, in BullMQ's words. */
const stateNames = jobStates.map((state) => (state === 'waiting' ? 'wait' : state))

/** Fields that a job lacks, and all of a job that is not there, are null. */
type Fields = readonly [string | null, string | null, (string | null)?] | readonly []

type SinkQueueAnswer = [
  ...[number, readonly number[], Fields, Fields, Fields, number, [number, number], number],
  ...[readonly Tried[], number],
]

/** Fields of a job, and the record of its last attempt. */
type Tried = readonly [Fields, string | null]

function earlier(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || (other !== undefined && other < one) ? other : one
}

function instantOf(stored: string | null | undefined): number | undefined {
  return Number(stored ?? 0) || undefined
}

/** An alert that an operator asked to send again waits since then. */
function waitingSince([timestamp, data]: Fields): number | undefined {
  if (timestamp === undefined || timestamp === null) return undefined
  return Math.max(Number(timestamp), requestedAt(data) ?? 0)
}

/** undefined of one that was not tried yet, or only before an operator asked for it, and waits for its digest. */
function triedSince([[timestamp, data, delayed]]: Tried): number | undefined {
  const isTried = isOfDelivery(delayed, { requestedAtMs: requestedAt(data) })
  return isTried ? waitingSince([timestamp ?? null, data ?? null]) : undefined
}

function lastRetry(tried: readonly Tried[]): SinkQueueView['lastRetry'] {
  const records = tried
    .map(([, record]) => parseAttemptRecord(record))
    .filter((each) => each?.result === 'retry')
  const last = records.toSorted((a, b) => (a?.atMs ?? 0) - (b?.atMs ?? 0)).at(-1)
  return last && { atMs: last.atMs, text: [last.reason, answerText(last)].filter(Boolean).join(': ') }
}

function requestedAt(data: string | null | undefined): number | undefined {
  const { requestedAtMs } = (readJson(data ?? '') ?? {}) as { requestedAtMs?: unknown }
  return typeof requestedAtMs === 'number' ? requestedAtMs : undefined
}

/**
 * KEYS meta, wait, active, delayed, completed, failed, start of a job's key, limiter · ARGV since when acknowledgements are counted, and
 * since when all that ended, why an alert is given up on unsent, how many recipients each has, and the count from which on the limiter is
 * a hold · Returns whether it is paused, how many there are in each state, fields of the last that was acknowledged, the last that was
 * given up on and the next to be sent, both counts, `refusedInARow`, fields and the last record of some of those to be tried later, and
 * when the hold ends, to the second: so it is the same whenever it is read. The id of a job ends with a tag of its recipient, where there
 * are some (`jobId`).
 */
const sinkQueueScript = `
local function fieldsOf(id, ...)
  if not id then return {} end
  return redis.call('HMGET', KEYS[7] .. id, ...)
end
local done = fieldsOf(redis.call('ZREVRANGE', KEYS[5], 0, 0)[1], 'finishedOn', 'returnvalue')
local dead = fieldsOf(redis.call('ZREVRANGE', KEYS[6], 0, 0)[1], 'finishedOn', 'failedReason')
local since = (tonumber(done[1] or 0) or 0) + 1
local refused, sent, seen = math.ceil(redis.call('ZCOUNT', KEYS[6], since, '+inf') / ARGV[4]), 0, {}
for _, id in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[6], '+inf', since, 'LIMIT', 0, ${newestAlerts} * ARGV[4])) do
  local alert = string.match(id, '^(.+%.%d+)%.${'%x'.repeat(12)}$') or id
  -- Each attempt left a record, and giving up another one. What became of one recipient's became of the others'.
  if not seen[alert] and (fieldsOf(id, 'failedReason')[1] ~= ARGV[3] or redis.call('LLEN', KEYS[7] .. id .. ':logs') > 1) then
    sent = sent + 1
    if sent == ${sentMin} then break end
  end
  seen[alert] = true
end
refused = sent < ${sentMin} and sent or math.max(sent, refused)
local tried = {}
for _, id in ipairs(redis.call('ZREVRANGE', KEYS[4], 0, ${triedLookedAt - 1})) do
  tried[#tried + 1] = { fieldsOf(id, 'timestamp', 'data', '${delayField}'), redis.call('LINDEX', KEYS[7] .. id .. ':logs', -1) }
end
local heldUntil = 0
local heldMs = redis.call('PTTL', KEYS[8])
if heldMs > 0 and tonumber(redis.call('GET', KEYS[8])) >= tonumber(ARGV[5]) then
  local now = redis.call('TIME')
  heldUntil = 1000 * math.floor((now[1] * 1000 + now[2] / 1000 + heldMs) / 1000 + 0.5)
end
return {
  redis.call('HEXISTS', KEYS[1], 'paused'),
  {
    redis.call('LLEN', KEYS[2]),
    redis.call('LLEN', KEYS[3]),
    redis.call('ZCARD', KEYS[4]),
    redis.call('ZCARD', KEYS[5]),
    redis.call('ZCARD', KEYS[6]),
  },
  done,
  dead,
  fieldsOf(redis.call('LINDEX', KEYS[2], -1), 'timestamp', 'data'),
  redis.call('ZCOUNT', KEYS[5], ARGV[1], '+inf'),
  { redis.call('ZCOUNT', KEYS[5], ARGV[2], '+inf'), redis.call('ZCOUNT', KEYS[6], ARGV[2], '+inf') },
  refused,
  tried,
  heldUntil,
}
`
