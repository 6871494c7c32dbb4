import * as z from 'zod'
import type { RedisClient } from '../connection/redis.ts'
import { noticesKey, sourceKeys } from '../keys.ts'
import { addArguments, addLines, type UnsentNotice } from '../operators/unsent-notices.ts'

/** Which silent rules of a source people were notified of, over all replicas and restarts. */
export interface ReportedRules {
  load(source: string): Promise<ReportedNames>
  /** Stores `next` and adds the notices where still `before` is stored. Returns false where something else is. */
  swap(
    source: string,
    before: ReportedNames,
    next: Pick<ReportedNames, 'names'>,
    notices: readonly UnsentNotice[],
  ): Promise<boolean>
}

interface ReportedNames {
  /** Id → name. */
  readonly names: Readonly<Record<string, string>>
  /** As it is stored. */
  readonly text: string
}

export function createReportedRules(redis: RedisClient, prefix: string): ReportedRules {
  const keysOf = (source: string) => [noticesKey(prefix), sourceKeys(prefix, source).reportedRules]
  return {
    async load(source) {
      const text = (await redis.get(sourceKeys(prefix, source).reportedRules)) ?? ''
      const parsed = text === '' ? undefined : stored.safeParse(JSON.parse(text))
      return { names: parsed?.success ? parsed.data.names : {}, text }
    },
    async swap(source, { text }, { names }, notices) {
      const next = JSON.stringify({ v: 1, names } satisfies z.input<typeof stored>)
      return (await redis.eval(swapScript, 2, ...keysOf(source), ...addArguments(notices), text, next)) === 1
    },
  }
}

const stored = z.object({ v: z.literal(1), names: z.record(z.string(), z.string()) })

/** KEYS … reported · ARGV … what was there, what is to be there · Returns 1 where it is there now, also by a call before. */
const swapScript = `${addLines}
local before, next = unpack(ARGV, given + 1)
local now = redis.call('GET', KEYS[2]) or ''
if now == next then return 1 end
if now ~= before then return 0 end
redis.call('SET', KEYS[2], next)
add()
return 1
`
