import { type Spender, unitsKeyOf } from './account.ts'
import { halfHourMs, unitsByHalfHour } from './half-hours.ts'
import { sourceKeys } from './keys.ts'
import type { RedisClient } from './redis.ts'

/** What was spent and seen of a source in the hours of a day, the first hour first. */
interface SpentHours {
  /** Those of its account, for whatever purpose. */
  readonly units: readonly number[]
  /** Alerts by the hour in which they were first seen, without those that were history when polling began. */
  readonly alerts: readonly number[]
}

const hourMs = 2 * halfHourMs

/** `startsMs`: when each hour begins; units are counted by half hours of the clock. */
export async function readHours(
  redis: RedisClient,
  spender: Spender,
  dayKey: string,
  startsMs: readonly number[],
): Promise<SpentHours> {
  const { seen, meta } = sourceKeys(spender.prefix, spender.source)
  const [counts, [createdMs, passedOver], alerts] = await Promise.all([
    unitsKeyOf(redis, spender, dayKey).then((key) => redis.hgetall(key)),
    redis.hmget(meta, 'createdMs', 'passedOver'),
    Promise.all(startsMs.map((fromMs) => redis.zcount(seen, fromMs, `(${fromMs + hourMs}`))),
  ])
  const began = Number(createdMs)
  const hasHistory = (fromMs: number) => began >= fromMs && began < fromMs + hourMs
  const halves = [...unitsByHalfHour([counts])]
  return {
    units: startsMs.map((fromMs) =>
      halves
        .filter(([half]) => half * halfHourMs >= fromMs && half * halfHourMs < fromMs + hourMs)
        .reduce((sum, [, count]) => sum + count, 0),
    ),
    alerts: alerts.map((count, at) =>
      Math.max(0, count - (hasHistory(startsMs[at] ?? 0) ? Number(passedOver ?? 0) : 0)),
    ),
  }
}
