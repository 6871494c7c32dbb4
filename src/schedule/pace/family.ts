import {
  type DayForecast,
  emptyRecent,
  forecastBudgetDay,
  type Outlook,
  outlookAt,
  spanAt,
} from '../forecast/outlook.ts'
import { binMs, type Profile } from '../forecast/profile.ts'
import type { BudgetDay, BudgetView, ScheduleOptions } from '../schedule.ts'
import { clamp, limitsFor, type PaceLimits, solveScale } from './solve.ts'

/**
 * The policies that the plan is mixed of. Each is a whole way to spend a budget day: a pace (polls a second) for every
 * instant that is left of it, which adds up to the units that this policy would have left had it decided alone since the
 * day began. The plan's pace is their weighted mean, so it costs as much as they do. What that means for lag: schedule/README.md.
 */
export const policyNames = ['even', 'profile', 'profile_recent', 'mean_recent'] as const
export type PolicyName = (typeof policyNames)[number]

/** What is remembered of the policies. */
export interface Family {
  /** What each policy's pace counts for; they sum to 1. */
  weights: number[]
  /** The budget day that the rest is of; null before the first. */
  dayStartMs: number | null
  unitsPerDay: number
  /** Polls a second of the even policy. */
  evenPace: number
  /** Units that each policy would have left. */
  unitsLeft: number[]
  /** Units that polls along announced evaluations would have left; null where nothing is announced. */
  followingLeft: number | null
  /** Events of a day: on average, and today's. */
  perDay: number
  today: number
}

/** The paces of all policies over an outlook, and of the even one. */
export interface Paces {
  readonly outlook: Outlook
  readonly evenPace: number
  /** paces[policy - 1][span]: those of the policies but the even one. */
  readonly learned: readonly (readonly number[])[]
}

const priorWeights = [0.4, 0.2, 0.25, 0.15]
const rateMax = 0.1
/** Events of one day move a weight by so much at most: a night full of stray alerts does not undo what a month of days has taught. */
const ratePerDay = 10
const sharedPart = 0.003
/** What a day adds to the average number of events. */
const perDayShare = 0.2
const rangeMax = 5

export function emptyFamily(): Family {
  return {
    weights: [...priorWeights],
    dayStartMs: null,
    unitsPerDay: 0,
    evenPace: 0,
    unitsLeft: priorWeights.map(() => 0),
    followingLeft: null,
    perDay: 0,
    today: 0,
  }
}

/** Gives every policy the units that are left when a budget day begins, or when the budget turns out to be another. */
export function beginDay(family: Family, { day, unitsPerDay, unitsLeft }: BudgetView, fromMs: number): void {
  if (family.dayStartMs === day.startMs && family.unitsPerDay === unitsPerDay) return
  family.dayStartMs = day.startMs
  family.unitsPerDay = unitsPerDay
  family.evenPace = (unitsLeft * 1_000) / Math.max(1, day.endMs - fromMs)
  family.unitsLeft = priorWeights.map(() => unitsLeft)
  family.followingLeft = unitsLeft
}

export function pacesOf(family: Family, outlook: Outlook, limits: PaceLimits): Paces {
  const { evenPace } = family
  const secondsLeft = outlook.seconds.reduce((sum, each) => sum + each, 0)
  const expected = [outlook.profile, outlook.profileRecent, outlook.meanRecent]
  const learned = expected.map(({ demands }, index) => {
    const units = Math.max(0.01, family.unitsLeft[index + 1] ?? 0)
    const floor = Math.min(limits.floor, units / Math.max(1e-3, secondsLeft))
    const scale = solveScale(outlook.seconds, demands, units, { floor, ceiling: limits.ceiling })
    return demands.map((demand) => clamp(scale * demand, floor, limits.ceiling))
  })
  return { outlook, evenPace, learned }
}

/** The weighted mean of the paces in each span. */
export function mixedPace({ weights }: Family, { evenPace, learned }: Paces): number[] {
  const mixed = (learned[0] ?? []).map(() => (weights[0] ?? 0) * evenPace)
  for (let policy = 1; policy < weights.length; policy++) {
    const [weight, paces] = [weights[policy] ?? 0, learned[policy - 1]]
    for (let span = 0; span < mixed.length; span++)
      mixed[span] = (mixed[span] ?? 0) + weight * (paces?.[span] ?? 0)
  }
  return mixed
}

/** Lets every policy spend until then by its own pace; `following` is what polls along announced evaluations spend. */
export function spendUntil(
  family: Family,
  { outlook, learned, evenPace }: Paces,
  untilMs: number,
  following: number | undefined,
): void {
  family.followingLeft = following === undefined ? null : (family.followingLeft ?? 0) - following
  let left = Math.max(0, untilMs - outlook.fromMs) / 1_000
  for (let span = 0; span < outlook.seconds.length && left > 0; span++) {
    const seconds = Math.min(left, outlook.seconds[span] ?? 0)
    left -= seconds
    family.unitsLeft[0] = (family.unitsLeft[0] ?? 0) - seconds * evenPace
    for (const [index, paces] of learned.entries()) {
      const policy = index + 1
      family.unitsLeft[policy] = (family.unitsLeft[policy] ?? 0) - seconds * (paces[span] ?? 0)
    }
  }
}

/** Adds a day that is over to the average number of events. */
export function endDay(family: Family): void {
  family.perDay += perDayShare * (family.today - family.perDay)
  family.today = 0
}

/**
 * Scores the policies on an event, by the lag that each would have given it on average, against the even policy's:
 * `w <- w (1 + rate x)` with `x = 1 - lag / even lag`, and the even policy's weight stays (D-Prod: Even-Dar, Kearns,
 * Mansour & Wortman 2008; Sani, Neu & Lazaric 2014). A small part of all weight is shared anew each time, so that a
 * policy that was bad for long can come back (fixed share: Herbster & Warmuth 1998).
 */
export function score(family: Family, { outlook, evenPace, learned }: Paces, atMs: number): void {
  const span = spanAt(outlook, atMs)
  family.today++
  const rate = Math.min(rateMax, ratePerDay / Math.max(family.perDay, family.today))
  const shared = sharedPart * rate
  const grown = family.weights.map((weight, policy) => {
    if (policy === 0) return weight
    const lag = clamp(evenPace / Math.max(1e-12, learned[policy - 1]?.[span] ?? 0), 0, rangeMax)
    return weight * (1 + rate * (1 - lag))
  })
  const total = grown.reduce((sum, weight) => sum + weight, 0)
  family.weights = grown.map(
    (weight, policy) => (1 - shared) * (weight / total) + shared * (priorWeights[policy] ?? 0),
  )
}

/** The forecast of a whole day, and the paces of all policies over it, as they would be planned before anything of it is known. */
export function wholeDay(
  profile: Profile,
  family: Family,
  options: ScheduleOptions,
  day: BudgetDay,
  unitsPerDay: number,
  isFine = false,
): { readonly forecast: DayForecast; readonly paces: Paces; readonly limits: PaceLimits } {
  const forecast = forecastBudgetDay(profile, day, options)
  const alone = { ...emptyRecent(), credit: { profile: [1], mean: [1] } }
  const outlook = outlookAt(forecast, alone, options.exponent, day.startMs, isFine)
  const daySeconds = (day.endMs - day.startMs) / 1_000
  const evenPace = unitsPerDay / daySeconds
  const { floor, ceiling } = limitsFor(options, unitsPerDay, daySeconds)
  // The config may ask for gaps that the units do not pay for.
  const limits = { floor: Math.min(floor, evenPace), ceiling }
  const begun = {
    ...family,
    evenPace,
    unitsLeft: family.weights.map(() => unitsPerDay),
  }
  return { forecast, paces: pacesOf(begun, outlook, limits), limits }
}

/**
 * A wrong forecast misplaces every chosen instant: they are used only while alerts would have waited a tenth less with them than
 * with even ones, and would not have waited a tenth less by the pace: in a session of ten minutes no two chosen instants fall into one
 * step, which is 0.73 of even at 48 units, and 0.09 by the pace.
 */
const worthwhile = 0.9
/** The part of this score that is left after a day. */
const scoreKept = 0.9
/** What alerts would have waited for so many polls at chosen instants, at even ones, and by the pace, in even gaps; fading from day to day. */
export interface FewScore {
  /** In a day. */
  polls: number
  chosen: number
  even: number
  paced: number
  /** Polls are at chosen instants. */
  isChosen: boolean
}

export function emptyFewScore(): FewScore {
  return { polls: 0, chosen: 0, even: 0, paced: 0, isChosen: false }
}

interface ScoredDay {
  readonly forecast: Pick<DayForecast, 'day' | 'rates'>
  readonly chosen: readonly number[]
  readonly even: readonly number[]
}

/**
 * Counts events of a day, each as so many, for its chosen instants, for even ones and for those by the pace. What another number of polls
 * showed counts less, the more it differs: of milliseconds, the waits for five outweighed those for fifty for weeks (a session of an hour waited
 * 4.9 minutes, now 1.2 to 1.3 from the second week on).
 */
export function scoreFew(
  score: FewScore,
  few: ScoredDay,
  paced: readonly number[],
  events: readonly number[],
  weight = 1,
): void {
  const { startMs, endMs } = few.forecast.day
  const polls = few.even.length
  if (score.polls !== polls)
    scaleScore(score, (Math.min(score.polls, polls) / Math.max(score.polls, polls)) ** 2)
  score.polls = polls
  const perGap = (weight * polls) / (endMs - startMs)
  for (const at of events) {
    score.chosen += perGap * waitFor(few.chosen, endMs - startMs, at)
    score.even += perGap * waitFor(few.even, endMs - startMs, at)
    score.paced += perGap * waitFor(paced, endMs - startMs, at)
  }
}

function scaleScore(score: FewScore, by: number): void {
  score.chosen *= by
  score.even *= by
  score.paced *= by
}

/** Whether polls are at chosen instants, or would be by what is expected, where the days before did not have so many units. */
export function choosesInstants(score: FewScore, few: ScoredDay, paced: readonly number[]): boolean {
  if (score.polls === few.even.length) return score.isChosen
  const expected = emptyFewScore()
  const { day, rates } = few.forecast
  for (const [step, rate] of rates.entries())
    scoreFew(expected, few, paced, [day.startMs + (step + 0.5) * binMs], rate)
  return isWorthwhile(expected)
}

/** Earlier days count less from now on. */
export function fadeFewScore(score: FewScore): void {
  scaleScore(score, scoreKept)
  judgeFew(score)
}

/**
 * Takes or leaves chosen instants: once a day, and after polls that found nothing. Not between two polls of a session, as the one rule has fewer
 * units left for its last alerts than the other would have: a quarter of an hour, an hour after the reset, had a p99 of 2.2 to 2.3 of even at 36
 * units on three of four seeds that way, and has 0.25.
 */
export function judgeFew(score: FewScore): void {
  score.isChosen = isWorthwhile(score)
}

function isWorthwhile({ chosen, even, paced }: FewScore): boolean {
  return chosen < Math.min(worthwhile * even, paced / worthwhile)
}

/** Until the next of these instants, which come every day; an event of the evening before is one of that day's. */
function waitFor(instants: readonly number[], dayMs: number, atMs: number): number {
  for (let shift = -dayMs; shift <= dayMs; shift += dayMs) {
    const next = instants.find((each) => each + shift - atMs >= 0)
    if (next !== undefined) return next + shift - atMs
  }
  return 0
}
