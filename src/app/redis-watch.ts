import type { Clock } from '../lib/clock.ts'
import type { RedisClient } from '../store/connection/redis.ts'
import { checkRedis, type RedisFinding } from '../store/connection/redis-check.ts'
import type { Logger } from '../telemetry/log.ts'

/**
 * Checks the settings of Redis regularly while the bridge runs. A setting that would have stopped the start (somebody
 * allowed Redis to evict keys) makes the bridge "not ready" until it is mended. Every finding is logged once. The bridge
 * goes on: stopping would lose no fewer alerts.
 */
export interface RedisWatch {
  /** One sentence for people, or undefined when there is no trouble. */
  trouble(): string | undefined
  /** Resolves when the signal aborts; never rejects. */
  run(signal: AbortSignal): Promise<void>
}

/** How often Redis is checked, in milliseconds. */
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
    // The check at the start has logged these warnings already.
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
        // When Redis is away, its connection logs it and readiness reports it.
        await look().catch(() => {})
        await clock.sleep(everyMs, signal).catch(() => {})
      }
    },
  }
}
