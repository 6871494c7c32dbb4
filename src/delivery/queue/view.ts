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

interface LaneViewOptions {
  /** A connection that fails fast. */
  readonly redis: RedisClient
  readonly prefix: string
  readonly queue: AlertQueue
  readonly rateLimit: RateLimit
  /** Also shortens what is longer than this config allows; see `viewScript`. */
  readonly fitsLimiter: boolean
}

export async function readLaneView(options: LaneViewOptions): Promise<LaneView> {
  const { redis, prefix, queue, rateLimit, fitsLimiter } = options
  const keys = ['meta', 'wait', 'delayed', 'active', 'limiter', ''].map((name) => queue.toKey(name))
  const dueScore = (Date.now() - overdueMs) * 0x1000
  const windowMs = fitsLimiter ? Math.ceil(rateLimit.per) : Number.MAX_SAFE_INTEGER
  const holdMs = fitsLimiter ? waits.receiverHold.maxMs : Number.MAX_SAFE_INTEGER
  const given = [dueScore, activeLookedAt, rateLimit.max, windowMs, holdCountMin, holdMs]
  const reading = redis.eval(viewScript, 7, ...keys, breakerKey(prefix, queue.name), ...given)
  const answer = await within(commandTimeoutMs, 'looking at the queue', reading)
  const [paused, waiting, next, overdue, active, locked, limitedMs, breaker, breakerMs] = answer as ViewAnswer
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

type ViewAnswer = [number, number, string, number, number, number, number, string, number]

/**
 * One command in the place of ten: each lane asks every few seconds, all the time.
 *
 * A window of the rate limit that began under another config, and may last up to a day, is shortened to the length of this
 * config's. A hold, which BullMQ stores in the same key as a count that no limit reaches, is shortened to the longest
 * pause that a receiver may ask for, for the case that the clock of Redis was set back.
 *
 * KEYS meta, wait, delayed, active, limiter, start of a job's key, breaker · ARGV highest score that is overdue, active jobs that are
 * looked at, jobs in a window of the rate limit, the window (ms), the count from which on it is a hold, the longest hold (ms)
 */
const viewScript = `
local active = redis.call('LRANGE', KEYS[4], 0, ARGV[2] - 1)
local locked = 0
for _, id in ipairs(active) do locked = locked + redis.call('EXISTS', KEYS[6] .. id .. ':lock') end
local count = tonumber(redis.call('GET', KEYS[5]) or 0)
local limitedMs = redis.call('PTTL', KEYS[5])
local longestMs = tonumber(count < tonumber(ARGV[5]) and ARGV[4] or ARGV[6])
if limitedMs > longestMs then redis.call('PEXPIRE', KEYS[5], longestMs) end
if count < tonumber(ARGV[3]) then limitedMs = 0 end
return {
  redis.call('HEXISTS', KEYS[1], 'paused'),
  redis.call('LLEN', KEYS[2]),
  redis.call('LINDEX', KEYS[2], -1) or '',
  redis.call('ZCOUNT', KEYS[3], 0, ARGV[1]),
  #active,
  locked,
  limitedMs,
  redis.call('GET', KEYS[7]) or '',
  redis.call('PTTL', KEYS[7]),
}
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
