import type { BudgetDay } from '../../schedule/schedule.ts'

/** Where the days of the ledger begin and end, by clocks that differ from the API's. */

/** How far the API's clock may be from ours around the reset before a unit could be counted on the wrong day. */
export const resetGuardMs = 2_000
export const dayMs = 86_400_000

/** When the day that runs now began, of days that begin at this time of day. */
export function dayStart(resetsAtMs: number, nowMs: number): number {
  return resetsAtMs + Math.floor((nowMs - resetsAtMs) / dayMs) * dayMs
}

/** The day that a call at `nowMs` may count on instead of `day`, by the API's clock. */
export function otherDay(
  day: BudgetDay,
  nowMs: number,
  budgetDay: (nowMs: number) => BudgetDay,
): BudgetDay | undefined {
  if (nowMs < day.startMs + resetGuardMs) return budgetDay(day.startMs - 1)
  if (nowMs >= day.endMs - resetGuardMs) return budgetDay(day.endMs)
  return undefined
}

/** `full` is 1 when the day itself is spent, 2 when only the other day is: then units are free when the guard ends. */
export function afterSpent(day: BudgetDay, other: BudgetDay | undefined, full: number): number {
  if (full === 1 || !other) return day.endMs
  return other.endMs <= day.startMs ? day.startMs + resetGuardMs : other.endMs
}
