import { wallTime } from '../lib/zone.ts'
import { mendAhead } from './ahead.ts'
import { type DayPlan, expectedBetween, rateAt } from './day-plan.ts'
import { fadeDemand, noteDemand } from './demand.ts'
import { dayLevel, noteArrivals, ownShares, startDay } from './intensity.ts'
import type { Memory } from './memory.ts'
import type { ScheduleOptions } from './options.ts'
import { expectedRate, outlookAt } from './outlook.ts'
import { countFiring } from './phase.ts'
import { binMs, binOf, profileZone, rowOf } from './prior.ts'
import { addLate, foldDay, forecastDay } from './profile.ts'
import { noteAttempt } from './retry.ts'
import type { PollReport } from './schedule.ts'

/** How the memory takes in polls, bought history and the passing of days. */

const dayMs = 86_400_000
/** History older than this says nothing about today. */
const historyDaysMax = 120
/** Longer without a poll is an outage. */
const outageMs = 3_600_000
/** What a day adds to the average of further pages. */
const pageShare = 0.2

export function learnPoll(
  memory: Memory,
  options: ScheduleOptions,
  plan: DayPlan | undefined,
  poll: PollReport,
): boolean {
  const lastAtMs = memory.attempts.lastAtMs
  noteAttempt(memory.attempts, poll)
  if (!poll.ok) return false
  memory.behind = poll.behind
  memory.extraPages.today += Math.max(0, poll.pages - 1)
  const fromMs = memory.intensity.atMs || poll.atMs
  if (plan && lastAtMs !== null) compareDemand(memory, options, plan, fromMs, poll.atMs)
  const baseAt = (at: number) => (plan ? rateAt(plan, at) : 0)
  const fired = poll.firedAtMs.toSorted((a, b) => a - b)
  const shares = ownShares(memory.intensity, fired, baseAt)
  let profileChanged = false
  for (const [index, at] of fired.entries()) {
    if (countAlert(memory, options, at, shares[index] ?? 1)) profileChanged = true
    // Rows of a catch-up say nothing about how late a row can be read.
    countFiring(memory.phase, at, poll.pages > 1 ? at : fromMs)
  }
  // After an outage, what it hid says nothing about how lively the feed is now.
  const sinceMs = Math.max(fromMs, poll.atMs - outageMs)
  const current = sinceMs > fromMs ? fired.filter((at) => at >= sinceMs) : fired
  const expected = plan ? expectedBetween(plan, sinceMs, poll.atMs) : 0
  noteArrivals(memory.intensity, poll.atMs, current, baseAt, expected)
  return profileChanged
}

/** Moves on to the date of `nowMs`: folds what the dates before it brought. True when the profile changed. */
export function rollDate(memory: Memory, options: ScheduleOptions, nowMs: number): boolean {
  const wall = wallTime(nowMs, profileZone(options))
  const dateMs = Math.floor(wall / dayMs) * dayMs
  mendAhead(memory, { nowMs, wall, dateMs })
  if (!(memory.dateMs < dateMs)) {
    if (Number.isNaN(memory.dateMs)) {
      memory.dateMs = memory.sinceMs = dateMs
      memory.blindBins = binOf(wall)
    }
    return false
  }
  fillBlindBins(memory, options)
  for (let date = Math.max(memory.dateMs, dateMs - historyDaysMax * dayMs); date < dateMs; date += dayMs) {
    foldDay(memory.profile, rowOf(date, options), memory.counts)
    memory.counts.fill(0)
  }
  memory.dateMs = dateMs
  startDay(memory.intensity)
  fadeDemand(memory.demand)
  const { extraPages } = memory
  extraPages.average += pageShare * (extraPages.today - extraPages.average)
  extraPages.today = 0
  return true
}

/** What the first day hid before the first poll is taken to have been as the profile has it, not empty. */
function fillBlindBins(memory: Memory, options: ScheduleOptions): void {
  if (memory.blindBins === 0) return
  const forecast = forecastDay(memory.profile, rowOf(memory.dateMs, options), options)
  const perRate = (binMs / 1_000) * dayLevel(memory.intensity) * 1_000
  for (let bin = 0; bin < memory.blindBins; bin++)
    memory.counts[bin] = Math.round((forecast[bin] ?? 0) * perRate)
  memory.blindBins = 0
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
    // Whoever knows the past of the first day has not missed its first hours.
    memory.blindBins = 0
    countAlert(memory, options, at, 1)
    countFiring(memory.phase, at, at)
  }
}

/** Adds `share` of an alert to its date: the current one, or one that the profile holds already (then true). */
function countAlert(memory: Memory, options: ScheduleOptions, firedAtMs: number, share: number): boolean {
  const wall = wallTime(firedAtMs, profileZone(options))
  const daysAgo = (memory.dateMs - Math.floor(wall / dayMs) * dayMs) / dayMs
  const bin = binOf(wall)
  if (daysAgo > historyDaysMax) return false
  if (daysAgo > 0) {
    addLate(memory.profile, rowOf(wall, options), bin, share, daysAgo)
    return true
  }
  memory.counts[bin] = (memory.counts[bin] ?? 0) + Math.round(1_000 * share)
  return false
}

/** Compares what the polls since the last one were worth with what the day's plan had set aside for them. */
function compareDemand(
  memory: Memory,
  options: ScheduleOptions,
  plan: DayPlan,
  fromMs: number,
  toMs: number,
): void {
  const seconds = Math.min(600, (toMs - fromMs) / 1_000)
  if (seconds <= 0) return
  const base = rateAt(plan, fromMs + seconds * 500)
  const outlook = outlookAt(memory.intensity, fromMs)
  const real = expectedRate(outlook, base, seconds / 2) ** options.exponent
  noteDemand(memory.demand, seconds, real, (base * outlook.level) ** options.exponent)
}
