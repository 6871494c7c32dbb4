import { isFarAhead } from '../lib/waits.ts'
import { wallTime } from '../lib/zone.ts'
import {
  type Announced,
  type Arrival,
  judgeAnnounced,
  likelyArrival,
  noteAlert,
  notePassed,
} from './announced/evidence.ts'
import { type Following, likelihoodAt } from './announced/follow.ts'
import { budgetDay } from './budget.ts'
import {
  creditParts,
  type DayForecast,
  dayLevel,
  eventsOf,
  expectedBetween,
  noteEvents,
  rateAt,
  spanAt,
  startDay,
} from './forecast/outlook.ts'
import {
  addLate,
  addPastDay,
  binMs,
  binOf,
  foldDay,
  forecastDay,
  profileZone,
  rowOf,
} from './forecast/profile.ts'
import { countFiring, judgeMarks } from './marks/phase.ts'
import { type Memory, noteAttempt } from './memory.ts'
import { endDay, fadeFewScore, type Paces, score, scoreFew, spendUntil, wholeDay } from './pace/family.ts'
import { type FewDay, pacedInstants } from './pace/few.ts'
import { noteWaits } from './pace/guard.ts'
import type { BudgetDay, PollReport, ScheduleOptions } from './schedule.ts'

/** How the memory takes in polls, bought history and the passing of days. */

const dayMs = 86_400_000
/** History older than this says nothing about today. */
const historyDaysMax = 120
/** Longer without a poll is an outage. */
const outageMs = 3_600_000
/** A poll that comes later than this many of the longest gaps of a plan was kept from coming. */
const planGapsMax = 1.5
/** Days of a history that the policies are scored on. */
const scoredDays = 14
/** What a day adds to the average of further pages. */
const pageShare = 0.2

/** What was expected of the time since the last poll. */
export interface Expectation {
  readonly forecast: DayForecast
  readonly paces: Paces
  /** Chosen instants, where the day has a handful of polls. */
  readonly few: FewDay | undefined
  /** Where evaluations are announced: what an alert then would have waited without and with them, in even waits. */
  readonly following?: Following
  /** Where marks are known: what polls on them save an alert, in even waits. */
  readonly savedByMarks?: (atMs: number, pollMs: number) => number
}

/** Takes in a poll; true when the profile changed, so that forecasts are to be made anew. */
export function learnPoll(
  memory: Memory,
  options: ScheduleOptions,
  expectation: Expectation | undefined,
  poll: PollReport,
): boolean {
  const wasBehind = memory.attempts.pagesLeft !== 'none'
  noteAttempt(memory.attempts, poll)
  if (!poll.ok) return false
  memory.extraPages.today += Math.max(0, poll.pages - 1)
  const { recent } = memory
  const fromMs = recent.atMs || poll.atMs
  // The longest gap that a plan makes.
  const planMs = expectation ? 1_000 / (Math.max(0.01, options.floor) * expectation.paces.evenPace) : 0
  // The alerts that fired during an outage do not show how often alerts fire now, nor how good the plan is.
  const sinceMs = Math.max(fromMs, poll.atMs - Math.max(outageMs, planMs))
  const fired = poll.firedAtMs.toSorted((a, b) => a - b)
  // A shorter outage, too, is not the plan's doing: the guard would keep it at the even pace for weeks.
  const isPlanned =
    expectation !== undefined &&
    sinceMs === fromMs &&
    !wasBehind &&
    poll.atMs - fromMs <= planGapsMax * planMs
  const readable = isPlanned ? readableAt(memory.announced, poll, fromMs) : fired
  const events = eventsOf(recent.event, readable, (at) => expectedRate(expectation, at))
  const current = events.filter((at) => at >= sinceMs || sinceMs === fromMs)
  if (expectation && sinceMs === fromMs) {
    const { paces, few, following, savedByMarks } = expectation
    if (few && current.length > 0) scoreFew(memory.few, few, pacedInstants(memory, few, options), current)
    for (const at of current) judge(memory, expectation, at)
    // Where polls follow, the next decision takes what is left of the units in place of any count.
    const spent = following && (memory.announced.follows ? 0 : following.spentUntil(poll.atMs))
    spendUntil(memory.family, paces, poll.atMs, spent)
    const waited = { fromMs, atMs: poll.atMs, firedAtMs: fired, readableMs: readable }
    if (isPlanned) noteWaits(memory.guard, expectation.forecast.day, memory.family.unitsPerDay, waited)
    const saved = readable.map((at) => savedByMarks?.(at, poll.atMs) ?? 0)
    if (isPlanned) judgeMarks(memory.phase, saved)
  }
  let profileChanged = false
  for (const at of events) if (countEvent(memory, options, at)) profileChanged = true
  // Rows of a catch-up say nothing about how late a row can be read.
  for (const [index, at] of fired.entries()) {
    const isSameSecond = Math.floor((fired[index - 1] ?? 0) / 1_000) === Math.floor(at / 1_000)
    countFiring(memory.phase, at, poll.pages > 1 ? at : fromMs, isSameSecond)
  }
  if (expectation) learnAnnounced(memory, expectation, poll, fromMs)
  const expected = expectation ? expectedBetween(expectation.forecast, sinceMs, poll.atMs) : 0
  noteEvents(recent, poll.atMs, current, expected)
  return profileChanged
}

/**
 * When each row could be read, ascending. One whose alert had fired before a poll that did not show it, or fires ahead of the clock,
 * came into the feed at any time between the two polls: where no announced evaluation says when, such events are spread over the
 * gap. Polls are for rows, not for firings.
 */
function readableAt(announced: Announced, poll: PollReport, fromMs: number): number[] {
  const { firedAtMs, atMs, ruleIds = [], pages } = poll
  // Before the first poll, all rows are history.
  if (fromMs >= atMs) return firedAtMs.toSorted((a, b) => a - b)
  const odd: number[] = []
  const readable: number[] = []
  for (const [index, at] of firedAtMs.entries()) {
    const arrival = arrivalOf(announced, at, fromMs, atMs)
    const likely =
      pages > 1 || arrival.fromMs === arrival.untilMs
        ? undefined
        : likelyArrival(announced, ruleIds[index] ?? [], arrival)
    if (likely === undefined && isOdd(at, fromMs, atMs)) odd.push(at)
    else readable.push(likely ?? at)
  }
  odd.sort((a, b) => a - b)
  const events = eventsOf({ startMs: Number.NEGATIVE_INFINITY, counted: 0 }, odd, () => 0)
  let before = 0
  for (const at of odd) {
    while ((events[before] ?? Number.POSITIVE_INFINITY) <= at) before++
    readable.push(Math.round(fromMs + ((before - 0.5) / events.length) * (atMs - fromMs)))
  }
  return readable.sort((a, b) => a - b)
}

function isOdd(at: number, fromMs: number, atMs: number): boolean {
  return at < fromMs || at > atMs
}

/**
 * With more late rows than this, the clock of every row says only when it could not be read yet: dated 20 s early at 2,000 units, forty
 * announced rules cost 0.17 to 0.18 of even, with 0.25 0.21 to 0.26; half of the rows up to two hours early 0.17, with 0.5 0.14.
 */
const lateShareMax = 0.1
/** A row's part of the share of late rows: about the last fifty count. */
const lateStep = 0.02

/** A row can be read between two polls, whatever its clock shows. */
function arrivalOf({ lateShare }: Announced, at: number, fromMs: number, atMs: number): Arrival {
  if (at > atMs) return { fromMs, untilMs: atMs }
  if (at < fromMs || lateShare > lateShareMax) return { fromMs: Math.max(at, fromMs), untilMs: atMs }
  return { fromMs: at, untilMs: at }
}

/** What alerts say of the announced evaluations. */
function learnAnnounced(
  { announced }: Memory,
  { forecast }: Expectation,
  { atMs, firedAtMs, ruleIds = [], pages }: PollReport,
  fromMs: number,
): void {
  if (announced.rules.length === 0) return
  notePassed(announced, fromMs, atMs, likelihoodAt(forecast, atMs))
  if (pages > 1) return
  for (const [index, at] of firedAtMs.entries()) {
    announced.lateShare += lateStep * (Number(isOdd(at, fromMs, atMs)) - announced.lateShare)
    const arrival = arrivalOf(announced, at, fromMs, atMs)
    // What may have come at any time of an outage says nothing of evaluations, and would take long to count.
    if (arrival.untilMs - arrival.fromMs <= outageMs) noteAlert(announced, ruleIds[index] ?? [], arrival)
  }
}

/** Parts of the rate and policies are judged by what they knew at the last poll: no poll could have come in between. */
function judge({ recent, family, announced }: Memory, expectation: Expectation, at: number): void {
  const { forecast, paces } = expectation
  creditParts(recent, rateAt(forecast, at), forecast.meanRate, Math.max(0, at - recent.atMs) / 1_000)
  if (expectation.following) judgeAnnounced(announced, expectation.following.waits(at))
  score(family, paces, at)
}

function expectedRate(expectation: Expectation | undefined, at: number): number {
  if (!expectation) return 0
  const { outlook } = expectation.paces
  return outlook.profileRecent.rates[spanAt(outlook, at)] ?? 0
}

/** Moves on to the date of `nowMs`: folds what the dates before it brought. True when the profile changed. */
export function rollDate(memory: Memory, options: ScheduleOptions, nowMs: number): boolean {
  const wall = wallTime(nowMs, profileZone(options))
  const dateMs = Math.floor(wall / dayMs) * dayMs
  mendAhead(memory, nowMs, wall, dateMs)
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
  startDay(memory.recent)
  endDay(memory.family)
  fadeFewScore(memory.few)
  const { extraPages } = memory
  extraPages.average += pageShare * (extraPages.today - extraPages.average)
  extraPages.today = 0
  return true
}

/**
 * Sets right what a clock that was far ahead left in the memory: a date that lies ahead would never end, and nothing
 * would be learned until then. What was learned of days stays; what was counted of that date goes.
 */
function mendAhead(memory: Memory, nowMs: number, wall: number, dateMs: number): void {
  if (isFarAhead(memory.dateMs, dateMs)) {
    memory.dateMs = dateMs
    memory.blindBins = binOf(wall)
    memory.counts.fill(0)
  }
  if (memory.sinceMs > memory.dateMs) memory.sinceMs = memory.dateMs
  if (isFarAhead(memory.recent.atMs, nowMs)) memory.recent.atMs = nowMs
  if (isFarAhead(memory.attempts.lastAtMs ?? 0, nowMs)) memory.attempts.lastAtMs = null
}

/** Fills the hours of the first day before the first poll, of which nothing is known, with what the profile expects. */
function fillBlindBins(memory: Memory, options: ScheduleOptions): void {
  if (memory.blindBins === 0) return
  const forecast = forecastDay(memory.profile, rowOf(memory.dateMs, options), options)
  const perRate = (binMs / 1_000) * dayLevel(memory.recent) * 1_000
  for (let bin = 0; bin < memory.blindBins; bin++)
    memory.counts[bin] = Math.round((forecast[bin] ?? 0) * perRate)
  memory.blindBins = 0
}

/** Teaches alerts that no poll was made for; their order does not matter. */
export function learnPast(memory: Memory, options: ScheduleOptions, firedAtMs: readonly number[]): void {
  const zone = profileZone(options)
  const sorted = firedAtMs.toSorted((a, b) => a - b)
  const events = eventsOf({ startMs: 0, counted: 0 }, sorted, () => 0).reverse()
  for (const at of events) {
    const date = Math.floor(wallTime(at, zone) / dayMs) * dayMs
    if (Number.isNaN(memory.dateMs)) memory.dateMs = memory.sinceMs = date
    // A date that the profile did not know of is one more day that it has seen, silent or not.
    for (; memory.sinceMs > Math.max(date, memory.dateMs - historyDaysMax * dayMs); memory.sinceMs -= dayMs) {
      const past = memory.sinceMs - dayMs
      addPastDay(memory.profile, rowOf(past, options), (memory.dateMs - past) / dayMs)
    }
    // With these alerts, nothing of the first day is unknown.
    memory.blindBins = 0
    countEvent(memory, options, at)
  }
  for (const at of sorted) countFiring(memory.phase, at, at)
  scorePast(memory, options, events.reverse())
}

/** Scores the policies on the last days of a history, which no recent event of its time is known of. */
function scorePast(memory: Memory, options: ScheduleOptions, events: readonly number[]): void {
  const { family, profile } = memory
  let day: BudgetDay | undefined
  let paces: Paces | undefined
  for (const at of events.filter((each) => each > (events.at(-1) ?? 0) - scoredDays * dayMs)) {
    if (!day || !paces || at >= day.endMs) {
      day = budgetDay(at, options)
      paces = wholeDay(profile, family, options, day, options.unitsPerDay).paces
      endDay(family)
    }
    score(family, paces, at)
  }
}

/** Adds an event to its date: the current one, or one that the profile holds already (then true). */
function countEvent(memory: Memory, options: ScheduleOptions, firedAtMs: number): boolean {
  const wall = wallTime(firedAtMs, profileZone(options))
  const daysAgo = (memory.dateMs - Math.floor(wall / dayMs) * dayMs) / dayMs
  const bin = binOf(wall)
  if (daysAgo > historyDaysMax) return false
  if (daysAgo > 0) {
    addLate(memory.profile, rowOf(wall, options), bin, 1, daysAgo)
    return true
  }
  memory.counts[bin] = (memory.counts[bin] ?? 0) + 1_000
  return false
}
