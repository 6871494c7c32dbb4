import { noticedKey, noticeKey } from './keys.ts'
import type { RedisClient } from './redis.ts'

/** Which troubles people were notified of, over all replicas and restarts: one replica notifies of each, once. */
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
}

export function createNoticeStore(redis: RedisClient, prefix: string): NoticeStore {
  return {
    async begin(trouble, nowMs, againMs) {
      const key = noticeKey(prefix, trouble)
      return (await redis.eval(beginScript, 1, key, nowMs, againMs, keptMs)) === 1
    },
    async since(trouble) {
      const known = await redis.get(noticeKey(prefix, trouble))
      return known === null ? undefined : Number.parseInt(known, 10)
    },
    async end(trouble) {
      return (await redis.del(noticeKey(prefix, trouble))) === 1
    },
    async move(what, to) {
      const before = await redis.set(noticedKey(prefix, what), String(to), 'GET')
      return before === null ? undefined : Number(before)
    },
    async at(what) {
      const known = await redis.get(noticedKey(prefix, what))
      return known === null ? undefined : Number(known)
    },
  }
}

/** For a trouble that is not checked any more, because its sink or source left the config. */
const keptMs = 30 * 24 * 3_600_000

/** KEYS notice · ARGV now, pause before the next notice (ms), expiry (ms) · Returns 1 where the caller is to notify. */
const beginScript = `
local since, told = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) ?(%d*)$')
if since then
  if told == '' then told = since end
  if ARGV[1] - told < tonumber(ARGV[2]) then return 0 end
end
redis.call('SET', KEYS[1], (since or ARGV[1]) .. ' ' .. ARGV[1], 'PX', ARGV[3])
return 1
`
