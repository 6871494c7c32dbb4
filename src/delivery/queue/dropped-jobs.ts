import { deadLetterKeptMs } from './queues.ts'

/** Lua: remembers the job ARGV[1] as dropped in the set `key` (`droppedName`). ARGV[2] and ARGV[3] are `droppedLimits`. */
export function rememberDropped(key: string): string {
  return `
redis.call('ZADD', ${key}, redis.call('TIME')[1], ARGV[1])
redis.call('ZREMRANGEBYRANK', ${key}, 0, -ARGV[2] - 1)
redis.call('PEXPIRE', ${key}, ARGV[3])`
}

/** How many of one sink are remembered, and for how long after the last (ms). */
export const droppedLimits = [100_000, deadLetterKeptMs] as const
