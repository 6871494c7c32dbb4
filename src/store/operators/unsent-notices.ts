import * as z from 'zod'

/**
 * Notices that are not in the queues of their receivers yet, as Redis has them (`noticesKey`). A script that stores what people
 * were notified of adds the notice in the same step.
 */
export type UnsentNotice = z.infer<typeof unsentNoticeSchema>

const unsentNoticeSchema = z.object({
  v: z.literal(1),
  /** Of its alert: a thousand times the time (ms) when it was made, and a number below a thousand. */
  id: z.int(),
  /** The sink that it is about. */
  sink: z.string().optional(),
  /** Of its alert. */
  row: z.record(z.string(), z.unknown()),
})

/** When a notice with this id was made, by the clock of its process. */
export function madeAtMs(id: number): number {
  return Math.floor(id / 1_000)
}

/** As Redis has it; earlier versions stored none of the times. */
const storedNoticeSchema = unsentNoticeSchema.extend({
  /** By the clock of Redis, since those of replicas differ. */
  addedMs: z.int().optional(),
})

interface StoredNotice {
  readonly id: number
  readonly addedMs: number
  /** undefined where another version has stored what this one cannot read. */
  readonly notice: UnsentNotice | undefined
}

/** `id` and `text`: a field of the hash and its value. */
export function storedNotice([id, text]: readonly [string, string]): StoredNotice {
  const notice = storedNoticeSchema.safeParse(JSON.parse(text)).data
  return { id: Number(id), addedMs: notice?.addedMs ?? madeAtMs(Number(id)), notice }
}

/** A notice whose queue takes nothing is dropped. Shorter than the record of a notice that was sent is kept, so none is sent twice. */
export const unsentKeptMs = 12 * 3_600_000
export const unsentMax = 100

/** The first arguments of every script that begins with `addLines`. */
export function addArguments(notices: readonly UnsentNotice[]): (string | number)[] {
  return [unsentKeptMs, notices.length, ...notices.flatMap((each) => [each.id, JSON.stringify(each)])]
}

/** In a script: the clock of Redis, ms. */
export const redisMs = `(function()
  local time = redis.call('TIME')
  return string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
end)()`

/** In a script: stores a notice that is not stored yet. `key`, `id` and `json` are expressions. */
export function storeNotice(key: string, id: string, json: string): string {
  return `redis.call('HSETNX', ${key}, ${id}, '{"addedMs":' .. ${redisMs} .. ',' .. string.sub(${json}, 2))`
}

/** KEYS[1]: unsent notices · ARGV expiry (ms), number of notices, id and JSON of each; the script's own follow `ARGV[given]` */
export const addLines = `
local given = 2 + 2 * ARGV[2]
local function add()
  for n = 3, given, 2 do ${storeNotice('KEYS[1]', 'ARGV[n]', 'ARGV[n + 1]')} end
  if given > 2 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
end
`
