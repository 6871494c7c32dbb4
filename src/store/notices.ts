import { randomUUID } from 'node:crypto'
import { noticedKey, noticeKey } from './keys.ts'
import type { RedisClient } from './redis.ts'
import { createReportedRules, type ReportedRules } from './reported-rules.ts'

/**
 * Which troubles people were notified of, over all replicas and restarts: one replica notifies of each, once. A call whose
 * answer was lost has the same answer when it is repeated, by the caller or by the driver.
 */
export interface NoticeStore {
  /** True for the one caller that is to notify of this trouble: it is new, or the last notice is `againMs` old. */
  begin(trouble: string, nowMs: number, againMs: number): Promise<boolean>
  /** When people were first notified of it; undefined when they were not. */
  since(trouble: string): Promise<number | undefined>
  /** True for the one caller that is to notify that it is over; false when there was no notice of it. */
  end(trouble: string): Promise<boolean>
  /** Returns up to where people were notified of something that only grows, such as a time or a count; stores `to` instead. */
  move(what: string, to: number): Promise<number | undefined>
  /** Returns that without changing it. */
  at(what: string): Promise<number | undefined>
  readonly rules: ReportedRules
}

export function createNoticeStore(redis: RedisClient, prefix: string): NoticeStore {
  /** The names of calls that had no answer yet; by these Redis knows them again. */
  const unanswered = new Map<string, string>()
  const wins = async (what: 'begin' | 'end', trouble: string, ...given: number[]) => {
    const name = `${what} ${trouble}`
    const call = unanswered.get(name) ?? randomUUID()
    unanswered.set(name, call)
    const script = what === 'begin' ? beginScript : endScript
    const answer = await redis.eval(script, 1, noticeKey(prefix, trouble), call, ...given)
    unanswered.delete(name)
    return answer === 1
  }
  return {
    begin: (trouble, nowMs, againMs) => wins('begin', trouble, nowMs, againMs, keptMs),
    async since(trouble) {
      const sinceMs = Number.parseInt((await redis.get(noticeKey(prefix, trouble))) ?? '', 10)
      return Number.isNaN(sinceMs) ? undefined : sinceMs
    },
    end: (trouble) => wins('end', trouble, endKeptMs),
    async move(what, to) {
      const before = await redis.set(noticedKey(prefix, what), String(to), 'GET')
      return before === null ? undefined : Number(before)
    },
    async at(what) {
      const known = await redis.get(noticedKey(prefix, what))
      return known === null ? undefined : Number(known)
    },
    rules: createReportedRules(redis, prefix),
  }
}

/** For a trouble that is not checked any more, because its sink or source left the config. */
const keptMs = 30 * 24 * 3_600_000

/** Longer than the driver repeats a call. */
const endKeptMs = 600_000

/** KEYS notice · ARGV call, now, pause before the next notice (ms), expiry (ms) · Returns 1 where the caller is to notify. */
const beginScript = `
local since, noticed, by = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) ?(%d*) ?(.*)$')
if since then
  if by == ARGV[1] then return 1 end
  if noticed == '' then noticed = since end
  if ARGV[2] - noticed < tonumber(ARGV[3]) then return 0 end
end
redis.call('SET', KEYS[1], (since or ARGV[2]) .. ' ' .. ARGV[2] .. ' ' .. ARGV[1], 'PX', ARGV[4])
return 1
`

/** KEYS notice · ARGV call, how long the end is known (ms) · Returns 1 where the caller is to notify. */
const endScript = `
local known = redis.call('GET', KEYS[1])
local by = string.match(known or '', '^ended (.*)$')
if by then return by == ARGV[1] and 1 or 0 end
if not known then return 0 end
redis.call('SET', KEYS[1], 'ended ' .. ARGV[1], 'PX', ARGV[2])
return 1
`
