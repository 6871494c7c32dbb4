import * as z from 'zod'
import { pausesKey } from './keys.ts'
import type { RedisClient } from './redis.ts'

/** Why sinks are paused and until when, over all replicas. The pause itself is in the queue. */
export interface PauseStore {
  set(sink: string, pause: Pause): Promise<void>
  list(): Promise<ReadonlyMap<string, Pause>>
  /** Forgets it; with `pause` only if it is still that one. */
  end(sink: string, pause?: Pause): Promise<void>
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
      if (pause === undefined) await redis.hdel(key, sink)
      else await redis.eval(endScript, 1, key, sink, JSON.stringify(pause))
    },
  }
}

/** KEYS pauses · ARGV sink, the pause that is over · Returns nothing. An operator may have paused the sink anew. */
const endScript = `
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
`
