import * as z from 'zod'
import { alertKey, parseRow } from '../../alert/alert.ts'
import { firedAlertOf } from '../../alert/job.ts'
import { parseJson } from '../../alert/json/json-number.ts'
import type { RedisClient } from '../connection/redis.ts'
import { createFiredAlerts, type FiredAlert } from '../fired-alerts.ts'
import { sourceKeys } from '../keys.ts'

/**
 * Alerts that were withheld (muted, silenced, throttled, unrouted), and why: with this record they are not lost. One entry
 * an alert; an alert that is decided again replaces its entry. Bounded by age and number, like records of deliveries.
 */
export interface WithheldStore {
  /** Resolves once all of them are stored. */
  keep(records: readonly WithheldRecord[]): Promise<void>
  of(id: number): Promise<WithheldRecord | undefined>
  /** The same of several, in their order. */
  ofAll(ids: readonly number[]): Promise<readonly (WithheldRecord | undefined)[]>
  /** Those that were withheld since, the last first, in parts; one may come twice. */
  since(fromMs: number): AsyncGenerator<readonly WithheldRecord[]>
  /** Adds to the fired alerts those that are missing there: of an earlier version, or of another name of the source. */
  addToFired(): Promise<void>
}

export type WithheldRecord = z.infer<typeof recordSchema>
export type WithheldEntry = WithheldRecord['held'][number]

interface WithheldStoreOptions {
  readonly redis: RedisClient
  readonly prefix: string
  readonly source: string
  readonly retention: { readonly ageMs: number; readonly count: number }
}

/**
 * Entries that one call removes at most for their age, and as many for their number: more than it adds, and few enough not
 * to delay Redis.
 */
const forgetMax = 500
/** Records that are read together: a row may be as large as a page of the feed. */
const batchMax = 25

export function createWithheldStore({
  redis,
  prefix,
  source,
  retention,
}: WithheldStoreOptions): WithheldStore {
  const { held, heldTimes } = sourceKeys(prefix, source)
  const fired = createFiredAlerts({ redis, prefix })
  const ofAll = async (ids: readonly number[]) => {
    const texts = ids.length === 0 ? [] : await redis.hmget(held, ...ids.map(String))
    return texts.map(recordOf)
  }
  return {
    ofAll,
    async keep(records) {
      if (records.length === 0) return
      const entries = records.flatMap((record) => [String(idOf(record)), JSON.stringify(record)])
      await redis.eval(
        keepScript,
        2,
        held,
        heldTimes,
        retention.ageMs,
        retention.count,
        forgetMax,
        ...entries,
      )
      await fired.add(records.flatMap((record) => firedAlertsOf(source, record)))
    },
    async of(id) {
      return recordOf(await redis.hget(held, String(id)))
    },
    async *since(fromMs) {
      for (let from = 0; ; from += batchMax) {
        const ids = await redis.zrevrangebyscore(heldTimes, '+inf', fromMs, 'LIMIT', from, batchMax)
        if (ids.length === 0) return
        yield (await ofAll(ids.map(Number))).filter((record) => record !== undefined)
      }
    },
    async addToFired() {
      // The oldest first: where those are there, all are.
      for (let from = 0; ; from += batchMax) {
        const ids = (await redis.zrange(heldTimes, String(from), String(from + batchMax - 1))).map(Number)
        const times = await fired.timesOf(ids.map((id) => alertKey({ source, id })))
        if (!times.includes(null)) return
        const records = (await ofAll(ids)).filter((record) => record !== undefined)
        await fired.add(records.flatMap((record) => firedAlertsOf(source, record)))
      }
    },
  }
}

/** undefined also where a later version wrote it, which this one cannot read. */
function recordOf(text: string | null): WithheldRecord | undefined {
  if (text === null) return undefined
  const parsed = recordSchema.safeParse(parseJson(text))
  return parsed.success ? parsed.data : undefined
}

const entrySchema = z.object({
  /** How people call the route; null where no route wanted the alert. */
  route: z.string().nullable(),
  sinks: z.array(z.string()),
  reason: z.enum(['silenced', 'muted', 'throttled', 'unrouted']),
  untilMs: z.number().optional(),
  silenceId: z.string().optional(),
  comment: z.string().optional(),
})

const recordSchema = z.object({
  v: z.literal(1),
  seenAtMs: z.number(),
  /** The row of the feed, from which the alert can still be sent. */
  row: z.record(z.string(), z.unknown()),
  held: z.array(entrySchema).min(1),
})

function firedAlertsOf(source: string, { row, seenAtMs }: WithheldRecord): FiredAlert[] {
  const parsed = parseRow(source, row)
  if (!parsed.ok) return []
  const { alert } = parsed
  return [firedAlertOf({ alert, seenAtMs })]
}

function idOf({ row }: WithheldRecord): unknown {
  return row['id']
}

/**
 * KEYS held, times · ARGV age (ms), number kept, number removed at most, then id and JSON of each
 * Returns nothing. Ages are counted by Redis' clock.
 */
const keepScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for index = 4, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[index], ARGV[index + 1])
  redis.call('ZADD', KEYS[2], now, ARGV[index])
end
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[1], 'LIMIT', 0, ARGV[3])
local over = redis.call('ZCARD', KEYS[2]) - #old - ARGV[2]
if over > 0 then
  local more = redis.call('ZRANGE', KEYS[2], #old, #old + math.min(over, ARGV[3]) - 1)
  for _, id in ipairs(more) do table.insert(old, id) end
end
for _, id in ipairs(old) do
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
end
`
