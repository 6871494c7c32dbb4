import * as z from 'zod'
import type { RedisClient } from '../connection/redis.ts'
import { auditKey } from '../operator-keys.ts'

/** What operators did, over all replicas: the last `auditMax` actions that were carried out, the newest first. */
export interface AuditStore {
  /** An order that is carried out in portions is one entry: their counts are added. */
  add(entry: AuditEntry): Promise<void>
  list(limit: number): Promise<readonly AuditEntry[]>
}

type AuditEntry = z.infer<typeof entrySchema>

/** About 300 bytes each. */
export const auditMax = 1_000

const entrySchema = z.object({
  at: z.string(),
  action: z.string(),
  subject: z.string(),
  /** Of alerts, `SOURCE.ID`. */
  ids: z.array(z.string()).readonly(),
  /** Of alerts that were handled. */
  count: z.number().nullable(),
  comment: z.string(),
  /** Whose token it was. */
  by: z.string(),
  /** The address that the request came from. */
  from: z.string(),
  /** The time that an order in portions goes by. */
  order: z.string().nullable(),
})

export function createAuditStore({ redis, prefix }: { redis: RedisClient; prefix: string }): AuditStore {
  const key = auditKey(prefix)
  return {
    async add(entry) {
      await redis.eval(addScript, 1, key, JSON.stringify(entry), entry.order ?? '', entry.action, auditMax)
    },
    async list(limit) {
      const texts = await redis.lrange(key, 0, limit - 1)
      return texts.flatMap((text) => {
        const parsed = entrySchema.safeParse(JSON.parse(text))
        // A later version wrote it.
        return parsed.success ? [parsed.data] : []
      })
    },
  }
}

/**
 * KEYS list · ARGV entry, time of the order or '', action, number kept · Returns nothing. Orders may begin in the same millisecond: those
 * of one order are for the same, and by the same ids where these are kept.
 */
const addScript = `
local head = redis.call('LINDEX', KEYS[1], 0)
if head and ARGV[2] ~= '' then
  local known, entry = cjson.decode(head), cjson.decode(ARGV[1])
  local isSame = known.order == ARGV[2] and known.action == ARGV[3] and known.subject == entry.subject
    and (#known.ids == 0 or #entry.ids == 0 or cjson.encode(known.ids) == cjson.encode(entry.ids))
  if isSame and type(entry.count) == 'number' then
    local count = (type(known.count) == 'number' and known.count or 0) + entry.count
    local text = string.gsub(ARGV[1], '"count":%d+', '"count":' .. string.format('%d', count), 1)
    redis.call('LSET', KEYS[1], 0, text)
    return
  end
end
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, ARGV[4] - 1)
`
