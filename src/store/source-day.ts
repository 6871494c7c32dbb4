import { type Spender, unitsKeyOf } from './account.ts'
import { countsByHalfHour, halfHourMs } from './half-hours.ts'
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

/** `startsMs`: when each hour begins; both are counted by half hours of the clock. */
export async function readHours(
  redis: RedisClient,
  spender: Spender,
  dayKey: string,
  startsMs: readonly number[],
): Promise<SpentHours> {
  const { seenByHalfHour } = sourceKeys(spender.prefix, spender.source)
  const [units, alerts] = await Promise.all([
    unitsKeyOf(redis, spender, dayKey).then((key) => redis.hgetall(key)),
    redis.hgetall(seenByHalfHour),
  ])
  return { units: byHour(units, startsMs), alerts: byHour(alerts, startsMs) }
}

function byHour(counts: Readonly<Record<string, string>>, startsMs: readonly number[]): number[] {
  const halves = [...countsByHalfHour([counts])]
  return startsMs.map((fromMs) =>
    halves
      .filter(([half]) => half * halfHourMs >= fromMs && half * halfHourMs < fromMs + hourMs)
      .reduce((sum, [, count]) => sum + count, 0),
  )
}
