import { noticedDeadKey, noticeKey } from './keys.ts'
import type { RedisClient } from './redis.ts'

/** Which troubles people know of, over all replicas: each is told by one of them, once. */
export interface NoticeStore {
  /** True for the one caller that is to tell of this trouble. */
  begin(trouble: string, nowMs: number, forMs: number): Promise<boolean>
  /** True for the one caller that is to tell that it is over; false when nobody was told of it. */
  end(trouble: string): Promise<boolean>
  /** Up to when the dead letters of a sink were told of; moves that to `untilMs`. */
  moveDead(sink: string, untilMs: number): Promise<number | undefined>
}

export function createNoticeStore(redis: RedisClient, prefix: string): NoticeStore {
  return {
    async begin(trouble, nowMs, forMs) {
      return (await redis.set(noticeKey(prefix, trouble), String(nowMs), 'PX', forMs, 'NX')) === 'OK'
    },
    async end(trouble) {
      return (await redis.del(noticeKey(prefix, trouble))) === 1
    },
    async moveDead(sink, untilMs) {
      const before = await redis.set(noticedDeadKey(prefix, sink), String(untilMs), 'GET')
      return before === null ? undefined : Number(before)
    },
  }
}
