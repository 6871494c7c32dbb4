import { dateKey, instantOf, wallTime } from '../../lib/zone.ts'
import type { BudgetDay } from '../schedule.ts'

/** When the upstream's budget starts anew. */
export interface BudgetReset {
  /** `HH:MM` on the wall clock of `timeZone`. */
  readonly resetsAt: string
  /** An IANA name, such as `Asia/Tehran`. */
  readonly timeZone: string
}

const dayMs = 86_400_000
const last = new Map<string, BudgetDay>()

/**
 * The budget day that holds `nowMs`: from the first instant at which the wall clock shows `resetsAt` or later to the
 * next day's. So days have 23 to 25 hours where clocks change, never overlap and leave no hole.
 */
export function budgetDay(nowMs: number, reset: BudgetReset): BudgetDay {
  const cacheKey = `${reset.timeZone} ${reset.resetsAt}`
  const cached = last.get(cacheKey)
  if (cached && nowMs >= cached.startMs && nowMs < cached.endMs) return cached
  const day = findDay(nowMs, minutesOf(reset.resetsAt) * 60_000, reset.timeZone)
  last.set(cacheKey, day)
  return day
}

/** Minutes since midnight of `HH:MM`. */
export function minutesOf(time: string): number {
  const match = /^(\d{1,2}):(\d{2})$/.exec(time)
  const minutes = Number(match?.[1]) * 60 + Number(match?.[2])
  if (!match || minutes > 1_440) throw new RangeError(`not a time of day: ${time}`)
  return minutes
}

function findDay(nowMs: number, resetMs: number, timeZone: string): BudgetDay {
  const today = Math.floor((wallTime(nowMs, timeZone) - resetMs) / dayMs) * dayMs
  // A clock that was set back shows an hour of yesterday again, and a zone may skip a date: look at the neighbours too.
  for (const date of [today, today + dayMs, today - dayMs, today + 2 * dayMs, today - 2 * dayMs]) {
    const startMs = instantOf(date + resetMs, timeZone)
    const endMs = instantOf(date + dayMs + resetMs, timeZone)
    if (nowMs >= startMs && nowMs < endMs) return { key: dateKey(date), startMs, endMs }
  }
  throw new Error(`no budget day of ${timeZone} holds ${nowMs}`)
}
