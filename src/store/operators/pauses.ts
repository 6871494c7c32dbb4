import * as z from 'zod'
import type { RedisClient } from '../connection/redis.ts'
import { queuePrefix } from '../keys.ts'
import { pausesKey } from '../operator-keys.ts'

/**
 * Pauses of sinks, over all replicas and kept over restarts. That the queue gives out no job, and why and until when, change in
 * one step: no order that crosses another one, and no process that is killed, leaves a pause without its end.
 */
export interface PauseStore {
  /** False where it is paused already and only one that is not was to be paused. */
  pause(sink: string, pause: Pause, unlessPaused?: boolean): Promise<boolean>
  /** Ends it; with `pause` only if it is still that one. False where another one is in its place. */
  resume(sink: string, pause?: Pause): Promise<boolean>
  list(): Promise<ReadonlyMap<string, Pause>>
}

export type Pause = z.infer<typeof pauseSchema>

const pauseSchema = z.object({
  /** null: until somebody resumes it. */
  untilMs: z.number().nullable(),
  comment: z.string(),
  /** Only of one without an end, which nothing else tells from the next: former versions end a pause only as they would write it. */
  sinceMs: z.number().optional(),
})

/** Tells a pause from every other one of its sink. */
export function pauseId({ untilMs, sinceMs }: Pause): string {
  return String(untilMs ?? sinceMs)
}

export function createPauseStore(redis: RedisClient, prefix: string): PauseStore {
  const key = pausesKey(prefix)
  const keysOf = (sink: string) => [
    key,
    ...['meta', 'marker', 'wait', 'delayed'].map((name) => `${queuePrefix(prefix)}:${sink}:${name}`),
  ]
  return {
    async pause(sink, pause, unlessPaused = false) {
      const keys = keysOf(sink)
      const given = [sink, JSON.stringify(pause), unlessPaused ? '1' : '']
      return (await redis.eval(pauseScript, keys.length, ...keys, ...given)) === 1
    },
    async resume(sink, pause) {
      const keys = keysOf(sink)
      const given = pause === undefined ? '' : JSON.stringify(pause)
      return (await redis.eval(resumeScript, keys.length, ...keys, sink, given)) === 1
    },
    async list() {
      const entries = Object.entries(await redis.hgetall(key))
      return new Map(
        entries.flatMap(([sink, text]) => {
          const parsed = pauseSchema.safeParse(JSON.parse(text))
          return parsed.success ? [[sink, parsed.data] as const] : []
        }),
      )
    },
  }
}

/**
 * KEYS pauses, meta, marker, wait, delayed · ARGV sink, the pause, '1' for only a sink that is not paused · As BullMQ pauses a queue.
 * Returns 0 where it is paused and stays as it is.
 */
const pauseScript = `
if ARGV[3] == '1' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], 'paused', 1)
redis.call('DEL', KEYS[3])
return 1
`

/**
 * KEYS pauses, meta, marker, wait, delayed · ARGV sink, the pause that is over or '' for any · As BullMQ resumes a queue: its workers
 * wait for the marker. Returns 0 where an operator has paused the sink anew.
 */
const resumeScript = `
local pause = redis.call('HGET', KEYS[1], ARGV[1])
if ARGV[2] ~= '' and pause and pause ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], 'paused')
local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2]
if redis.call('LLEN', KEYS[4]) > 0 then
  redis.call('ZADD', KEYS[3], 0, '0')
elseif first then
  redis.call('ZADD', KEYS[3], first / 0x1000, '1')
end
return 1
`
