import * as z from 'zod'
import { sourceKeys } from './keys.ts'
import type { RedisClient } from './redis.ts'

/** Which silent rules of a source people were notified of, over all replicas and restarts. */
export interface ReportedRules {
  load(source: string): Promise<ReportedNames>
  /**
   * Stores `next` where still `before` is stored. Returns true also when this call has stored it before: a call whose answer was
   * lost can be repeated.
   */
  swap(
    source: string,
    before: ReportedNames,
    next: Pick<ReportedNames, 'names'> & { readonly call: string },
  ): Promise<boolean>
}

export interface ReportedNames {
  /** Id → name. */
  readonly names: Readonly<Record<string, string>>
  /** As it is stored. */
  readonly text: string
}

export function createReportedRules(redis: RedisClient, prefix: string): ReportedRules {
  const keyOf = (source: string) => sourceKeys(prefix, source).reportedRules
  return {
    async load(source) {
      const text = (await redis.get(keyOf(source))) ?? ''
      const parsed = text === '' ? undefined : stored.safeParse(JSON.parse(text))
      return { names: parsed?.success ? parsed.data.names : {}, text }
    },
    async swap(source, { text }, { names, call }) {
      const next = JSON.stringify({ v: 1, call, names } satisfies z.input<typeof stored>)
      return (await redis.eval(swapScript, 1, keyOf(source), text, next)) === 1
    },
  }
}

const stored = z.object({ v: z.literal(1), call: z.string(), names: z.record(z.string(), z.string()) })

/** KEYS reported · ARGV what was there, what is to be there · Returns 1 where it is there now. */
const swapScript = `
local now = redis.call('GET', KEYS[1]) or ''
if now == ARGV[2] then return 1 end
if now ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
`
