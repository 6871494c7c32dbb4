import type { Clock } from '../../lib/clock.ts'
import type { BudgetDay } from '../../schedule/schedule.ts'
import type { RedisClient } from '../connection/redis.ts'
import { type DayUse, numbersOf } from './day-use.ts'
import { dayMs, dayStart } from './ledger-days.ts'

/** The API's own budget day, as its answers showed it. */
export interface ApiDay {
  readonly day: BudgetDay
  readonly used: number
  /** Those that were spent since this day is counted. */
  readonly byPurpose: DayUse['byPurpose']
  /** Counted from its start, and not from some instant within it. */
  readonly whole: boolean
}

/** Without a reset its units are not counted any more. */
export async function writeApiDay(
  redis: RedisClient,
  key: string,
  reset: { readonly atMs: number; readonly used: number } | null,
  clock: Clock,
): Promise<void> {
  await redis.del(key)
  if (reset === null) return
  const nowMs = clock.now()
  await redis.hset(key, {
    resetsAtMs: Math.round(reset.atMs),
    sinceMs: nowMs,
    startMs: dayStart(Math.round(reset.atMs), nowMs),
    used: reset.used,
  })
}

export async function readApiDay(redis: RedisClient, key: string, clock: Clock): Promise<ApiDay | undefined> {
  const { resetsAtMs, sinceMs, startMs, used, ...rest } = await redis.hgetall(key)
  if (![resetsAtMs, sinceMs, startMs, used].every((text) => Math.abs(Number(text)) <= instantMsMax))
    return undefined
  const start = dayStart(Number(resetsAtMs), clock.now())
  const day = { key: new Date(start).toISOString(), startMs: start, endMs: start + dayMs }
  const whole = Number(sinceMs) <= start
  if (Number(startMs) !== start) return { day, used: 0, byPurpose: {}, whole }
  const purposes = Object.entries(rest).map(([name, count]) => [name.replace('for:', ''), count] as const)
  return { day, used: Number(used), byPurpose: numbersOf(purposes), whole }
}

/** The largest instant that a Date can represent. */
const instantMsMax = 8.64e15
