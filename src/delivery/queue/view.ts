import { within } from '../../lib/time-limit.ts'
import { waits } from '../../lib/waits.ts'
import type { RateLimit } from '../../sinks/common-config.ts'
import type { RedisClient } from '../../store/connection/redis.ts'
import { breakerKey } from '../../store/keys.ts'
import { type StoredBreaker, storedBreaker } from '../../store/sink/breakers.ts'
import { holdCountMin } from '../../store/sink/delay-origins.ts'
import { commandTimeoutMs } from '../command-timeout.ts'
import type { AlertQueue } from './queues.ts'

/** Small reads of a sink's queue that BullMQ has no single call for. Each returns within a limit or throws. */

/** What shows whether the jobs of a sink are taken. */
export interface QueueView {
  /** Jobs that a worker should have taken: they wait, are overdue, or were left by a process that is gone. */
  readonly waiting: number
  /** Jobs that some process has locked. */
  readonly locked: number
  /** The job that is to be taken next. */
  readonly next: string | undefined
  readonly paused: boolean
  /** By an open breaker, a Retry-After or a rate limit. */
  readonly limited: boolean
}

/** All that a lane asks Redis again and again. */
export interface LaneView extends QueueView {
  /** Jobs that some process has taken, whether it still runs or not; at most `activeLookedAt` are counted. */
  readonly active: number
  /** What processes have stored of the sink's breaker. */
  readonly breaker: StoredBreaker | undefined
}

/** Of one sink. */
export interface LaneViewRequest {
  readonly queue: AlertQueue
  readonly rateLimit: RateLimit
  /** Also shortens what is longer than this config allows; see `viewScript`. */
  readonly fitsLimiter: boolean
}

interface LaneViewOptions {
  /** A connection that fails fast. */
  readonly redis: RedisClient
  readonly prefix: string
}

/** In the order of the requests. What cannot be read of one sink, as where a key has another type, fails for that one alone. */
export function readLaneViews(
  options: LaneViewOptions,
  requests: readonly LaneViewRequest[],
): Promise<LaneView>[] {
  return Array.from({ length: Math.ceil(requests.length / lanesAtOnce) }, (_, nth) =>
    readSome(options, requests.slice(nth * lanesAtOnce, (nth + 1) * lanesAtOnce)),
  ).flat()
}

function readSome(
  { redis, prefix }: LaneViewOptions,
  requests: readonly LaneViewRequest[],
): Promise<LaneView>[] {
  const keys = requests.flatMap(({ queue }) => [
    ...['meta', 'wait', 'delayed', 'active', 'limiter', ''].map((name) => queue.toKey(name)),
    breakerKey(prefix, queue.name),
  ])
  const limits = requests.flatMap(({ rateLimit: { max, per }, fitsLimiter }) =>
    fitsLimiter
      ? [max, Math.ceil(per), waits.receiverHold.maxMs]
      : [max, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  )
  const given = [(Date.now() - overdueMs) * 0x1000, activeLookedAt, holdCountMin, ...limits]
  const reading = redis.eval(viewScript, keys.length, ...keys, ...given) as Promise<ViewAnswer[]>
  const answers = within(commandTimeoutMs, 'looking at the queue', reading)
  return requests.map(async (_, nth) => viewOf((await answers)[nth]))
}

function viewOf(answer: ViewAnswer | undefined): LaneView {
  if (answer === undefined || answer.length === 1) throw new Error(String(answer))
  const [paused, waiting, next, overdue, active, locked, limitedMs, breaker, breakerMs] = answer
  return {
    waiting: waiting + overdue + active - locked,
    locked,
    next: next === '' ? undefined : next,
    paused: paused === 1,
    limited: limitedMs > 0,
    active,
    breaker: storedBreaker(breaker === '' ? null : breaker, breakerMs),
  }
}

type ViewAnswer = [error: string] | [number, number, string, number, number, number, number, string, number]

/** Nothing else is served by Redis meanwhile. */
const lanesAtOnce = 50

/**
 * One command in the place of ten for each sink: all lanes ask every few seconds, all the time.
 *
 * A window of the rate limit that began under another config, and may last up to a day, is shortened to the length of this
 * config's. A hold, which BullMQ stores in the same key as a count that no limit reaches, is shortened to the longest
 * pause that a receiver may ask for, for the case that the clock of Redis was set back.
 *
 * KEYS for each sink: meta, wait, delayed, active, limiter, start of a job's key, breaker · ARGV highest score that is overdue, active
 * jobs that are looked at, the count from which on it is a hold; for each sink: jobs in a window of the rate limit, the window (ms), the
 * longest hold (ms) · Returns what Redis has of each sink, or the text of an error
 */
const viewScript = `
local function look(meta, wait, delayed, active, limiter, job, breaker, most, windowMs, holdMs)
  local ids = redis.call('LRANGE', active, 0, ARGV[2] - 1)
  local locked = 0
  for _, id in ipairs(ids) do locked = locked + redis.call('EXISTS', job .. id .. ':lock') end
  local count = tonumber(redis.call('GET', limiter) or 0)
  local limitedMs = redis.call('PTTL', limiter)
  local longestMs = tonumber(count < tonumber(ARGV[3]) and windowMs or holdMs)
  if limitedMs > longestMs then redis.call('PEXPIRE', limiter, longestMs) end
  if count < tonumber(most) then limitedMs = 0 end
  return {
    redis.call('HEXISTS', meta, 'paused'),
    redis.call('LLEN', wait),
    redis.call('LINDEX', wait, -1) or '',
    redis.call('ZCOUNT', delayed, 0, ARGV[1]),
    #ids,
    locked,
    limitedMs,
    redis.call('GET', breaker) or '',
    redis.call('PTTL', breaker),
  }
end
local views = {}
for nth = 1, #KEYS / 7 do
  local given = { unpack(KEYS, 7 * nth - 6, 7 * nth) }
  for at = 1, 3 do given[7 + at] = ARGV[3 * nth + at] end
  local ok, view = pcall(look, unpack(given))
  views[nth] = ok and view or { type(view) == 'table' and view.err or view }
end
return views
`

/** When a delayed job is due; undefined for any other. */
export async function readDueMs(queue: AlertQueue, jobId: string): Promise<number | undefined> {
  const read = async () => (await queue.getBackend().client).zscore(queue.toKey('delayed'), jobId)
  const score = await within(commandTimeoutMs, 'reading when a job is due', read())
  return score === null ? undefined : dueOfScore(score)
}

export async function promoteDelayed(queue: AlertQueue): Promise<void> {
  await within(promoteTimeoutMs, 'promoting delayed jobs', queue.promoteJobs({ count: 1_000 }))
}

/** Due for so long by the clock that BullMQ uses; clocks of replicas differ a little. */
const overdueMs = 30_000
const activeLookedAt = 100
const promoteTimeoutMs = 30_000

/** BullMQ keeps the time in the upper bits of the score and an order within the millisecond in the lower twelve. */
function dueOfScore(score: string | number | undefined): number {
  return Math.floor(Number(score) / 0x1000)
}
