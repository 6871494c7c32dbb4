import type { RedisClient } from '../connection/redis.ts'
import { readServerRun, serverRun } from '../connection/server-run.ts'
import { noticedKey, noticeKey, noticesKey } from '../keys.ts'
import { createReportedRules, type ReportedRules } from '../source/reported-rules.ts'
import {
  addArguments,
  addLines,
  redisMs,
  storedNotice,
  type UnsentNotice,
  unsentKeptMs,
  unsentMax,
} from './unsent-notices.ts'

/**
 * Which troubles people were notified of, over all replicas and restarts, and the notices that are not in the queues of their
 * receivers yet. Both change in the same step, so a process that is killed after it leaves the notice to the others, and a call
 * whose answer was lost can be repeated, by the caller or by the driver: it adds no second notice.
 */
export interface NoticeStore {
  /** Adds the notice if the trouble is new, or its last notice is `againMs` old by Redis' clock: those of replicas may differ. */
  begin(
    trouble: string,
    begun: {
      readonly againMs: number
      readonly notice: UnsentNotice
      /** As `move` does, if the notice is added. */
      readonly moved?: { readonly what: string; readonly to: number }
    },
  ): Promise<void>
  /** When people were first notified of it, by Redis' clock; undefined when they were not. */
  since(trouble: string): Promise<number | undefined>
  /** As `since`, of each of these that people were notified of; one command for all. */
  begun(troubles: readonly string[]): Promise<ReadonlyMap<string, number>>
  /** These troubles are over. Adds the notice if people were notified of one of them. */
  end(troubles: readonly string[], notice: UnsentNotice | undefined): Promise<void>
  /** Stores up to where people were notified of something that only grows, such as a time or a count. */
  move(what: string, to: number): Promise<void>
  at(what: string): Promise<number | undefined>
  /** What was added and not removed, the oldest first. */
  unsent(): Promise<readonly UnsentNotice[]>
  /** Which server has the notices now. */
  server(): Promise<string>
  /** True for the one caller that removed it; undefined, and nothing removed, where that is another server by now. */
  remove(id: number, server: string): Promise<boolean | undefined>
  readonly rules: ReportedRules
}

export function createNoticeStore(redis: RedisClient, prefix: string): NoticeStore {
  const unsentKey = noticesKey(prefix)
  const begun: NoticeStore['begun'] = async (troubles) => {
    if (troubles.length === 0) return new Map()
    const stored = await redis.mget(troubles.map((trouble) => noticeKey(prefix, trouble)))
    const since = troubles.map((trouble, at) => [trouble, Number.parseInt(stored[at] ?? '', 10)] as const)
    return new Map(since.filter(([, sinceMs]) => !Number.isNaN(sinceMs)))
  }
  return {
    async begin(trouble, { againMs, notice, moved }) {
      const keys = [unsentKey, noticeKey(prefix, trouble), noticedKey(prefix, moved?.what ?? '')]
      const given = [againMs, keptMs, clockSlackMs, moved?.to ?? '']
      await redis.eval(beginScript, keys.length, ...keys, ...addArguments([notice]), ...given)
    },
    since: async (trouble) => (await begun([trouble])).get(trouble),
    begun,
    async end(troubles, notice) {
      const keys = [unsentKey, ...troubles.map((trouble) => noticeKey(prefix, trouble))]
      const added = addArguments(notice === undefined ? [] : [notice])
      await redis.eval(endScript, keys.length, ...keys, ...added)
    },
    async move(what, to) {
      await redis.set(noticedKey(prefix, what), String(to))
    },
    async at(what) {
      const known = await redis.get(noticedKey(prefix, what))
      return known === null ? undefined : Number(known)
    },
    async unsent() {
      const stored = Object.entries(await redis.hgetall(unsentKey)).map(storedNotice)
      if (stored.length === 0) return []
      const oldestMs = Number(await redis.eval(`return ${redisMs}`, 1, unsentKey)) - unsentKeptMs
      stored.sort((a, b) => b.addedMs - a.addedMs || b.id - a.id)
      const isDropped = ({ addedMs }: { readonly addedMs: number }, nth: number) =>
        nth >= unsentMax || addedMs < oldestMs
      const dropped = stored.filter(isDropped)
      if (dropped.length > 0) await redis.hdel(unsentKey, ...dropped.map(({ id }) => String(id)))
      return stored
        .filter((each) => !dropped.includes(each))
        .flatMap(({ notice = [] }) => notice)
        .reverse()
    },
    server: () => readServerRun(redis, unsentKey),
    async remove(id, server) {
      const removed = await redis.eval(removeScript, 1, unsentKey, server, id)
      return removed === -1 ? undefined : removed === 1
    },
    rules: createReportedRules(redis, prefix),
  }
}

/** KEYS unsent notices · ARGV the server that has the jobs, id · Returns how many were removed; -1 where this is another server. */
const removeScript = `
if (${serverRun}) ~= ARGV[1] then return -1 end
return redis.call('HDEL', KEYS[1], ARGV[2])
`

/** For a trouble that is not checked any more, because its sink or source left the config. */
const keptMs = 30 * 24 * 3_600_000

/** A last notice that is further ahead was made by a clock that was wrong. */
const clockSlackMs = 3_600_000

/** KEYS … notice, noticed · ARGV … pause before the next notice, expiry, slack of clocks (ms), where `noticed` is to be or '' */
const beginScript = `${addLines}
local since, last = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) ?(%d*)')
local again, kept, slack, noticed = unpack(ARGV, given + 1)
local now = ${redisMs}
if since then
  local agoMs = now - (last == '' and since or last)
  if agoMs > -slack and agoMs < tonumber(again) then return end
end
redis.call('SET', KEYS[2], (since or now) .. ' ' .. now, 'PX', kept)
if noticed ~= '' then redis.call('SET', KEYS[3], noticed) end
add()
`

/** KEYS … notice of each trouble */
const endScript = `${addLines}
local known = false
for n = 2, #KEYS do
  known = known or string.match(redis.call('GET', KEYS[n]) or '', '^%d') ~= nil
  redis.call('DEL', KEYS[n])
end
if known then add() end
`
