import type { RedisClient } from '../connection/redis.ts'
import { sinkQuartersKey } from '../operator-keys.ts'

/**
 * How long the queue of a sink was and how long its sends took, by quarters of an hour of the last day and over all processes: what
 * the page draws. For people alone, nothing is decided by it.
 */
export interface SinkQuarters {
  add(sink: string, sample: SinkSample, nowMs: number): Promise<void>
  /** The oldest first; the last one is the quarter that runs. undefined: nobody looked. */
  read(sink: string, nowMs: number): Promise<readonly (SinkQuarter | undefined)[]>
}

/** What one process saw since its last sample. */
interface SinkSample {
  /** Alerts that are not sent yet. */
  readonly queued: number
  readonly sends: number
  readonly sendMs: number
}

export interface SinkQuarter {
  /** The longest that was seen. */
  readonly queued: number
  /** The mean; undefined where none was sent. */
  readonly sendMs: number | undefined
}

export function createSinkQuarters(redis: RedisClient, prefix: string): SinkQuarters {
  return {
    async add(sink, { queued, sends, sendMs }, nowMs) {
      const slot = Math.floor(nowMs / quarterMs)
      const given = [slot % quarters, slot, queued, sends, Math.round(sendMs), quarters * quarterMs]
      await redis.eval(addScript, 1, sinkQuartersKey(prefix, sink), ...given)
    },
    async read(sink, nowMs) {
      const fields = await redis.hgetall(sinkQuartersKey(prefix, sink))
      const last = Math.floor(nowMs / quarterMs)
      return Array.from({ length: quarters }, (_, at) => {
        const slot = last - quarters + 1 + at
        const [of, queued, sends = 0, sendMs = 0] = (fields[slot % quarters] ?? '').split(' ').map(Number)
        if (of !== slot || queued === undefined) return undefined
        return { queued, sendMs: sends > 0 ? sendMs / sends : undefined }
      })
    },
  }
}

const quarterMs = 15 * 60_000
/** A day of them. */
const quarters = 96

/** KEYS the hash · ARGV field, number of the quarter, queued, sends, milliseconds of sends, lifetime · A field is used anew each day. */
const addScript = `
local old = redis.call('HGET', KEYS[1], ARGV[1]) or ''
local slot, queued, sends, sendMs = old:match('^(%d+) (%d+) (%d+) (%d+)$')
if slot ~= ARGV[2] then queued, sends, sendMs = 0, 0, 0 end
local longest = math.max(queued, ARGV[3])
local all = { ARGV[2], longest, sends + ARGV[4], sendMs + ARGV[5] }
redis.call('HSET', KEYS[1], ARGV[1], string.format('%s %d %d %d', unpack(all)))
redis.call('PEXPIRE', KEYS[1], ARGV[6])
`
