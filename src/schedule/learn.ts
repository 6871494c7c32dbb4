import { type DayPlan, expectedBetween, rateAt } from './day-plan.ts'
import { noteArrivals, ownShares, startDay } from './intensity.ts'
import type { Memory } from './memory.ts'
import type { ScheduleOptions } from './options.ts'
import { expectedRate, outlookAt } from './outlook.ts'
import { countFiring } from './phase.ts'
import { binOf, profileZone, rowOf } from './prior.ts'
import { addLate, foldDay } from './profile.ts'
import { noteAttempt } from './retry.ts'
import type { PollReport } from './schedule.ts'
import { wallTime } from './zone.ts'

/** How the memory takes in polls, bought history and the passing of days. */

const dayMs = 86_400_000
/** History older than this says nothing about today. */
const historyDaysMax = 120
/** What yesterday's demand keeps of its weight. */
const demandKept = 0.9
/** What a day adds to the average of further pages. */
const pageShare = 0.2

export function learnPoll(
  memory: Memory,
  options: ScheduleOptions,
  plan: DayPlan | undefined,
  poll: PollReport,
): void {
  const lastAtMs = memory.attempts.lastAtMs
  noteAttempt(memory.attempts, poll)
  if (!poll.ok) return
  memory.behind = poll.behind
  memory.extraPages.today += Math.max(0, poll.pages - 1)
  const fromMs = memory.intensity.atMs || poll.atMs
  if (plan && lastAtMs !== null) noteDemand(memory, options, plan, fromMs, poll.atMs)
  const baseAt = (at: number) => (plan ? rateAt(plan, at) : 0)
  const fired = poll.firedAtMs.toSorted((a, b) => a - b)
  const shares = ownShares(memory.intensity, fired, baseAt)
  for (const [index, at] of fired.entries()) {
    countAlert(memory, options, at, shares[index] ?? 1)
    // Rows of a catch-up say nothing about how late a row can be read.
    countFiring(memory.phase, at, poll.pages > 1 ? at : fromMs)
  }
  const expected = plan ? expectedBetween(plan, fromMs, poll.atMs) : 0
  noteArrivals(memory.intensity, poll.atMs, fired, baseAt, expected)
}

/** Moves on to the date of `nowMs`: folds what the dates before it brought. True when the profile changed. */
export function rollDate(memory: Memory, options: ScheduleOptions, nowMs: number): boolean {
  const wall = wallTime(nowMs, profileZone(options))
  const dateMs = Math.floor(wall / dayMs) * dayMs
  if (!(memory.dateMs < dateMs)) {
    if (Number.isNaN(memory.dateMs)) memory.dateMs = memory.sinceMs = dateMs
    return false
  }
  for (let date = Math.max(memory.dateMs, dateMs - historyDaysMax * dayMs); date < dateMs; date += dayMs) {
    foldDay(memory.profile, rowOf(date, options), memory.counts)
    memory.counts.fill(0)
  }
  memory.dateMs = dateMs
  startDay(memory.intensity)
  const { demand, extraPages } = memory
  for (const key of ['real', 'planned', 'days'] as const) demand[key] *= demandKept
  extraPages.average += pageShare * (extraPages.today - extraPages.average)
  extraPages.today = 0
  return true
}

/** Teaches alerts that no poll was made for; their order does not matter. */
export function learnPast(memory: Memory, options: ScheduleOptions, firedAtMs: readonly number[]): void {
  const zone = profileZone(options)
  for (const at of firedAtMs.toSorted((a, b) => b - a)) {
    const date = Math.floor(wallTime(at, zone) / dayMs) * dayMs
    if (Number.isNaN(memory.dateMs)) memory.dateMs = memory.sinceMs = date
    // A date that the profile did not know of is one more day that it has seen, silent or not.
    for (; memory.sinceMs > Math.max(date, memory.dateMs - historyDaysMax * dayMs); memory.sinceMs -= dayMs) {
      const row = rowOf(memory.sinceMs - dayMs, options)
      memory.profile.days[row] = (memory.profile.days[row] ?? 0) + 1_000
    }
    countAlert(memory, options, at, 1)
    countFiring(memory.phase, at, at)
  }
}

/** Adds `share` of an alert to its date: the current one, or one that was folded before. */
function countAlert(memory: Memory, options: ScheduleOptions, firedAtMs: number, share: number): void {
  const wall = wallTime(firedAtMs, profileZone(options))
  const daysAgo = (memory.dateMs - Math.floor(wall / dayMs) * dayMs) / dayMs
  const bin = binOf(wall)
  if (!(daysAgo > 0)) memory.counts[bin] = (memory.counts[bin] ?? 0) + Math.round(1_000 * share)
  else if (daysAgo <= historyDaysMax) addLate(memory.profile, rowOf(wall, options), bin, share, daysAgo)
}

/** Compares what the polls since the last one were worth with what the day's plan had set aside for them. */
function noteDemand(
  memory: Memory,
  options: ScheduleOptions,
  plan: DayPlan,
  fromMs: number,
  toMs: number,
): void {
  const seconds = Math.min(600, (toMs - fromMs) / 1_000)
  const base = rateAt(plan, fromMs + seconds * 500)
  const outlook = outlookAt(memory.intensity, fromMs)
  const days = seconds / 86_400
  memory.demand.real += days * expectedRate(outlook, base, seconds / 2) ** options.exponent
  memory.demand.planned += days * (base * outlook.level) ** options.exponent
  memory.demand.days += days
}
