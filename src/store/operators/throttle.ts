import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { RedisClient } from '../connection/redis.ts'
import { throttledKey, throttleKeptMs, throttleKey } from '../keys.ts'

/**
 * Lets one alert pass in each span of time, over all replicas. The decision on an alert is stored for `throttleKeptMs`,
 * and as long as the window that began with it, so that a page that is read again after a crash changes nothing and counts
 * nothing twice.
 */
export interface Throttles {
  /** The answers in the order of the claims, which are decided in that order. */
  claim(claims: readonly Claim[]): Promise<readonly ClaimAnswer[]>
}

export interface Claim {
  /** Alerts with the same one share a window: the route, and the values by which it groups alerts. */
  readonly window: readonly string[]
  /** Identifies the alert over all sources. */
  readonly alert: string
  readonly perMs: number
}

type ClaimAnswer =
  /** `heldBack`: how many were held since the last one passed. */
  | { readonly passes: true; readonly heldBack: number }
  /** By Redis' clock. */
  | { readonly passes: false; readonly untilMs: number }

export function createThrottles({ redis, prefix }: { redis: RedisClient; prefix: string }): Throttles {
  return {
    async claim(claims) {
      const answers: ClaimAnswer[] = []
      for (const { window, alert, perMs } of claims) {
        const name = createHash('sha256').update(JSON.stringify(window)).digest('hex').slice(0, 32)
        const keys = [throttleKey(prefix, name), throttledKey(prefix, name, alert)]
        const answer = await redis.eval(claimScript, 2, ...keys, perMs, throttleKeptMs)
        const [decision, number] = answerSchema.parse(answer)
        answers.push(
          decision === 'pass' ? { passes: true, heldBack: number } : { passes: false, untilMs: number },
        )
      }
      return answers
    },
  }
}

const answerSchema = z.tuple([z.enum(['pass', 'hold']), z.number()])

/**
 * KEYS window, decision · ARGV length of the window (ms), how long the window is kept beyond it, and a decision to hold
 * from now (ms) · Returns {pass, how many were held} or {hold, until when (ms)}
 */
const claimScript = `
local decided = redis.call('GET', KEYS[2])
if decided then return {string.sub(decided, 1, 4), tonumber(string.sub(decided, 6))} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local decision, kept = 'hold', ARGV[2]
local longest = now + ARGV[1]
local number = tonumber(redis.call('HGET', KEYS[1], 'untilMs') or '0')
-- Written before Redis' clock was set back: a window is never longer than its length.
if number > longest then
  number = longest
  redis.call('HSET', KEYS[1], 'untilMs', number)
end
if number > now then
  redis.call('HINCRBY', KEYS[1], 'pending', 1)
else
  -- Longer than the window: else the alert that passed would be held by its own window.
  decision, kept = 'pass', ARGV[1] + ARGV[2]
  number = tonumber(redis.call('HGET', KEYS[1], 'pending') or '0')
  redis.call('HSET', KEYS[1], 'untilMs', now + ARGV[1], 'pending', 0)
end
redis.call('PEXPIRE', KEYS[1], ARGV[1] + ARGV[2])
redis.call('SET', KEYS[2], decision .. ':' .. number, 'PX', kept)
return {decision, number}
`
