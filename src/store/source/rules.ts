import * as z from 'zod'
import type { RedisClient } from '../connection/redis.ts'
import { sourceKeys } from '../keys.ts'

/** The rules of an account as they were last read, for all replicas and over restarts: reading them costs units. */
export interface RuleStore {
  load(): Promise<StoredRules | undefined>
  save(rules: StoredRules): Promise<void>
}

interface StoredRules {
  /** When all of them were last read, in milliseconds since the epoch. */
  readonly readAtMs: number
  /** The rows of the API, with the fields that routes match on. */
  readonly rows: readonly Readonly<Record<string, unknown>>[]
}

const keptMs = 24 * 60 * 60 * 1_000

export function createRuleStore(options: { redis: RedisClient; prefix: string; source: string }): RuleStore {
  const { redis } = options
  const { rules } = sourceKeys(options.prefix, options.source)
  return {
    async load() {
      const text = await redis.get(rules)
      const parsed = text === null ? undefined : stored.safeParse(JSON.parse(text))
      return parsed?.success ? { readAtMs: parsed.data.readAtMs, rows: parsed.data.rows } : undefined
    },
    async save({ readAtMs, rows }) {
      const text = JSON.stringify({ v: 1, readAtMs, rows: [...rows] } satisfies z.input<typeof stored>)
      await redis.set(rules, text, 'PX', keptMs)
    },
  }
}

const stored = z.object({
  v: z.literal(1),
  readAtMs: z.number(),
  rows: z.array(z.record(z.string(), z.unknown())),
})
