import * as z from 'zod'
import { pausesKey } from './operator-keys.ts'
import type { RedisClient } from './redis.ts'

/** Why sinks are paused and until when, over all replicas. The pause itself is in the queue. */
export interface PauseStore {
  set(sink: string, pause: Pause): Promise<void>
  list(): Promise<ReadonlyMap<string, Pause>>
  /** Forgets it; with `pause` only if it is still that one. False where another one is in its place. */
  end(sink: string, pause?: Pause): Promise<boolean>
}

export type Pause = z.infer<typeof pauseSchema>

const pauseSchema = z.object({
  /** null: until somebody resumes it. */
  untilMs: z.number().nullable(),
  comment: z.string(),
})

export function createPauseStore(redis: RedisClient, prefix: string): PauseStore {
  const key = pausesKey(prefix)
  return {
    async set(sink, pause) {
      await redis.hset(key, sink, JSON.stringify(pause))
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
    async end(sink, pause) {
      if (pause !== undefined) return (await redis.eval(endScript, 1, key, sink, JSON.stringify(pause))) === 1
      await redis.hdel(key, sink)
      return true
    },
  }
}

/** KEYS pauses · ARGV sink, the pause that is over · Returns 0 where an operator has paused the sink anew. */
const endScript = `
local pause = redis.call('HGET', KEYS[1], ARGV[1])
if pause and pause ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
return 1
`
