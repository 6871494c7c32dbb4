import type { RedisClient } from '../connection/redis.ts'
import { sourceKeys } from '../keys.ts'
import { type Spender, unitsKeyOf } from '../ledger/account.ts'
import { countsByHalfHour, halfHourMs } from '../ledger/half-hours.ts'

/** What was spent and seen of a source in the hours of a day, the first hour first. */
interface SpentHours {
  /** Those of its account, for whatever purpose. */
  readonly units: readonly number[]
  /** Alerts by the hour in which they were first seen, without those that were history when polling began. */
  readonly alerts: readonly number[]
}

const hourMs = 2 * halfHourMs

/**
 * `keys`: of the days of the config that the day is part of. `startsMs`: when each hour begins; both are counted by half hours of the
 * clock, and what is of a half hour before the day is not of it. Of the half hour in which the day begins, all of it is.
 */
export async function readHours(
  redis: RedisClient,
  spender: Spender,
  day: { readonly keys: readonly string[]; readonly startMs: number; readonly endMs: number },
  startsMs: readonly number[],
): Promise<SpentHours> {
  const { seenByHalfHour } = sourceKeys(spender.prefix, spender.source)
  const [units, alerts] = await Promise.all([
    Promise.all(day.keys.map(async (key) => redis.hgetall(await unitsKeyOf(redis, spender, key)))),
    redis.hgetall(seenByHalfHour),
  ])
  const byHour = (counts: Parameters<typeof countsByHalfHour>[0]) => {
    const halves = [...countsByHalfHour(counts)].filter(
      ([half]) => half >= Math.floor(day.startMs / halfHourMs) && half * halfHourMs < day.endMs,
    )
    return startsMs.map((fromMs) => sumOfHour(halves, fromMs))
  }
  return { units: byHour(units), alerts: byHour([alerts]) }
}

function sumOfHour(halves: readonly (readonly [half: number, count: number])[], fromMs: number): number {
  return halves
    .filter(([half]) => half * halfHourMs >= fromMs && half * halfHourMs < fromMs + hourMs)
    .reduce((sum, [, count]) => sum + count, 0)
}
