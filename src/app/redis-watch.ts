import type { Clock } from '../lib/clock.ts'
import type { RedisClient } from '../store/redis.ts'
import { checkRedis, type RedisFinding } from '../store/redis-check.ts'
import type { Logger } from '../telemetry/log.ts'

/**
 * Looks at Redis again and again while the bridge runs. What would have refused it at the start (somebody allowed it to
 * evict keys) turns readiness red until it is mended, and every finding is told once. The bridge goes on all the same:
 * stopping would lose no fewer alerts.
 */
export interface RedisWatch {
  /** One sentence for people, or undefined where all is well. */
  trouble(): string | undefined
  /** Resolves when the signal aborts; never rejects. */
  run(signal: AbortSignal): Promise<void>
}

/** How often Redis is looked at, in milliseconds. */
export const redisCheckEveryMs = 60_000

export function createRedisWatch(options: {
  readonly redis: RedisClient
  readonly prefix: string
  readonly clock: Clock
  readonly log: Logger
  readonly everyMs?: number
}): RedisWatch {
  const { redis, prefix, clock, log, everyMs = redisCheckEveryMs } = options
  let known: readonly RedisFinding[] | undefined
  const refusalsOf = (findings: readonly RedisFinding[] = []) =>
    findings.filter(({ level }) => level === 'refuse')

  const look = async () => {
    const findings = await checkRedis(redis, { prefix, probe: false })
    const before = known
    known = findings
    // What was there at the start was told at the start.
    if (before === undefined && refusalsOf(findings).length === 0) return
    for (const { code, message, level } of findings)
      if (!before?.some((each) => each.code === code && each.level === level))
        log[level === 'refuse' ? 'error' : 'warn']({ code }, message)
    if (refusalsOf(before).length > 0 && refusalsOf(findings).length === 0)
      log.info('Redis keeps alerts again')
  }

  return {
    trouble: () => refusalsOf(known)[0]?.message,
    async run(signal) {
      while (!signal.aborted) {
        // A Redis that is away is told of by its connection and by readiness.
        await look().catch(() => {})
        await clock.sleep(everyMs, signal).catch(() => {})
      }
    },
  }
}
