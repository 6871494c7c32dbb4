import { given } from '../../lib/given.ts'
import type { RedisClient } from '../connection/redis.ts'
import { delayOriginsKeptMs, delayOriginsKey } from '../keys.ts'

/**
 * Which config and clock delayed the alerts of a sink, over all processes: a process with another config or clock reads
 * it here, and may have no reason to let them wait.
 */
export interface DelayOriginStore {
  read(sink: string): Promise<DelayOrigins>
  /** Stores that a process looked at the delayed alerts, and what its clock showed. */
  looked(sink: string, clockMs: number): Promise<void>
  /** Stores that alerts are sent to this receiver from now on, and tried again by this schedule. */
  serve(sink: string, receiver: string, retry: string): Promise<void>
  /** Stores that this receiver asked for the current hold. */
  hold(sink: string, receiver: string): Promise<void>
  /** Counts one more alert that waits for a mark of this plan. */
  wait(sink: string, plan: string): Promise<void>
  /** Removes the count of this plan, unless another alert was counted since it was read. */
  forgetPlan(sink: string, plan: string, count: number): Promise<void>
  /** Ends the hold of the key `limiter`, unless another receiver than this one has asked for it meanwhile. */
  endHold(sink: string, receiver: string, limiter: string): Promise<void>
}

export interface DelayOrigins {
  /** Absent where no process of this version has worked at the sink yet. */
  readonly receiver?: string
  /** By which schedule alerts were tried again. */
  readonly retry?: string
  readonly held?: string
  /** What the clock of the process showed that looked last. */
  readonly clockMs?: number
  /** How many alerts ever waited by each plan. */
  readonly plans: ReadonlyMap<string, number>
}

/** From this count on BullMQ's limiter is a hold; no limit of a config reaches it. */
export const holdCountMin = Number.MAX_SAFE_INTEGER

export function createDelayOriginStore(redis: RedisClient, prefix: string): DelayOriginStore {
  const set = async (sink: string, fields: Readonly<Record<string, string>>) => {
    await redis.eval(
      setScript,
      1,
      delayOriginsKey(prefix, sink),
      delayOriginsKeptMs,
      ...Object.entries(fields).flat(),
    )
  }
  return {
    async read(sink) {
      const { receiver, retry, held, clock, ...rest } = await redis.hgetall(delayOriginsKey(prefix, sink))
      const plans = Object.entries(rest)
        .filter(([field]) => field.startsWith(planField))
        .map(([field, count]) => [field.slice(planField.length), Number(count)] as const)
      return {
        ...given({ receiver, retry, held }),
        ...(clock === undefined ? {} : { clockMs: Number(clock) }),
        plans: new Map(plans),
      }
    },
    looked: (sink, clockMs) => set(sink, { clock: String(Math.round(clockMs)) }),
    serve: (sink, receiver, retry) => set(sink, { receiver, retry }),
    hold: (sink, receiver) => set(sink, { held: receiver }),
    async wait(sink, plan) {
      const field = `${planField}${plan}`
      await redis.eval(waitScript, 1, delayOriginsKey(prefix, sink), delayOriginsKeptMs, field)
    },
    async forgetPlan(sink, plan, count) {
      await redis.eval(forgetScript, 1, delayOriginsKey(prefix, sink), `${planField}${plan}`, count)
    },
    async endHold(sink, receiver, limiter) {
      await redis.eval(endHoldScript, 2, delayOriginsKey(prefix, sink), limiter, receiver, holdCountMin)
    },
  }
}

const planField = 'plan:'

/** KEYS origins · ARGV expiry (ms), fields and values */
const setScript = `
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
`

/** KEYS origins · ARGV expiry (ms), field */
const waitScript = `
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
`

/** KEYS origins · ARGV field, how many */
const forgetScript = `
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
`

/** KEYS origins, limiter · ARGV receiver, the count from which on it is a hold */
const endHoldScript = `
if redis.call('HGET', KEYS[1], 'held') ~= ARGV[1] then return end
redis.call('HDEL', KEYS[1], 'held')
if tonumber(redis.call('GET', KEYS[2]) or 0) >= tonumber(ARGV[2]) then redis.call('DEL', KEYS[2]) end
`
