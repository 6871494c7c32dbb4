import * as z from 'zod'

/**
 * Notices that are not in the queues of their receivers yet, as Redis has them (`noticesKey`). A script that stores what people
 * were notified of adds the notice in the same step.
 */
export type UnsentNotice = z.infer<typeof unsentNoticeSchema>

export const unsentNoticeSchema = z.object({
  v: z.literal(1),
  /** Of its alert: a thousand times the time (ms) when it was made, and a number below a thousand. */
  id: z.int(),
  /** The sink that it is about. */
  sink: z.string().optional(),
  /** Of its alert. */
  row: z.record(z.string(), z.unknown()),
})

/** When a notice with this id was made. */
export function madeAtMs(id: number): number {
  return Math.floor(id / 1_000)
}

/** A notice whose queue takes nothing is dropped. Shorter than the record of a notice that was sent is kept, so none is sent twice. */
export const unsentKeptMs = 12 * 3_600_000
export const unsentMax = 100

/** The first arguments of every script that begins with `addLines`. */
export function addArguments(notices: readonly UnsentNotice[]): (string | number)[] {
  return [unsentKeptMs, notices.length, ...notices.flatMap((each) => [each.id, JSON.stringify(each)])]
}

/** KEYS[1]: unsent notices · ARGV expiry (ms), number of notices, id and JSON of each; the script's own follow `ARGV[given]` */
export const addLines = `
local given = 2 + 2 * ARGV[2]
local function add()
  for n = 3, given, 2 do redis.call('HSET', KEYS[1], ARGV[n], ARGV[n + 1]) end
  if given > 2 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
end
`
