import { type DayForecast, spanAt } from '../forecast/outlook.ts'
import { waitOnPeriod } from '../marks/phase.ts'
import { type DecisionState, keptScale, paceLeft, type Spans, spendable } from '../pace/decide.ts'
import { cautiousFloor, heapFloor, waitOnMarks } from '../pace/guard.ts'
import {
  cheapest,
  clamp,
  endFactor,
  type Hour,
  type PaceLimits,
  pointsOf,
  scaleFor,
  spentIn,
} from '../pace/solve.ts'
import type { Decision } from '../schedule.ts'
import { type Announced, delaySeconds, evaluationsBetween } from './evidence.ts'

/** Plans polls by the announced evaluations: a poll is due where further waiting would cost more than the poll. */

/** The plan that follows announcements, whether polls follow it or not. */
export interface Following {
  /** What an alert at an instant would wait, in mean waits of even polls, by the plan without announcements and by this one. */
  waits(atMs: number): { readonly without: number; readonly following: number }
  /** Units that it would have spent by an instant since the last poll. */
  spentUntil(atMs: number): number
}

interface View {
  readonly day: EvaluationDay
  readonly fromMs: number
  readonly endMs: number
  readonly limits: PaceLimits
  /** Events a second that are expected at an instant, announced or not. */
  readonly rateAt: (atMs: number) => number
}

/** Below this share of unexplained alerts, long waits of before shorten no gap: p99 0.12 to 0.13 of even on twelve seeds, else to 0.29. */
const unexplainedMax = 0.01
/** The next poll, where polls follow the announcements now; and the waits by which both plans are compared. */
export function followAnnounced(
  { follows }: Announced,
  day: EvaluationDay,
  moment: DecisionState,
): { readonly following: Following; readonly decision: Decision | undefined } {
  const { paces, family, budget, marks, markPeriod, lateMs, lastAtMs, minIntervalMs } = moment
  const { outlook, evenPace } = paces
  const [{ fromMs }, { endMs }] = [outlook, budget.day]
  // As for each policy: what it would have spent before is not there to be spent again.
  const unitsLeft = Math.max(0.01, family.followingLeft ?? budget.unitsLeft)
  const affordable = ((unitsLeft + 0.5) * 1_000) / Math.max(1_000, endMs - fromMs)
  const cautious = Math.min(moment.floor, Math.max(heapFloor(moment.guard), cautiousFloor) * evenPace)
  const floor = Math.min(day.otherShare > unexplainedMax ? moment.floor : cautious, affordable)
  const view: View = {
    ...{ day, fromMs, endMs },
    limits: { floor, ceiling: moment.limits.ceiling },
    rateAt: (atMs) => outlook.profileRecent.rates[spanAt(outlook, atMs)] ?? 0,
  }
  const units = spendable({ ...moment, budget: { ...budget, unitsLeft } })
  const scale = keptScale(moment, followSpans(view), units)
  const waits = (atMs: number) => {
    const pace = paceLeft(moment, follows, atMs)
    const readableMs = atMs - lateMs
    const without = marks ? waitOnMarks(marks, pace, readableMs) : waitOnPeriod(markPeriod, pace, readableMs)
    return { without: without * 2 * evenPace, following: followWait(view, scale, atMs) * 2 * evenPace }
  }
  const spentUntil = (atMs: number) => {
    const spans = followSpans({ ...view, endMs: Math.min(atMs, endMs) })
    return spans.seconds.reduce((sum, _, span) => sum + spans.pollsOf(span, scale), 0)
  }
  const isFollowed = follows && moment.hotUntilMs <= fromMs
  const earliestMs = lastAtMs + minIntervalMs
  const latestMs = lastAtMs + Math.max(minIntervalMs, 1_000 / floor)
  return {
    following: { waits, spentUntil },
    decision: isFollowed ? nextFollowing(view, scale, earliestMs, latestMs) : undefined,
  }
}

/** The rest of a day by hours, or its part until `endMs`. */
export function followSpans(view: View): Spans {
  const { fromMs, endMs, limits } = view
  const hours: Hour[] = []
  const seconds: number[] = []
  let roots = 0
  for (let at = fromMs; at < endMs; ) {
    const hour = hourAt(view, at)
    if (!hour) break
    const untilMs = Math.min(endMs, hour.endMs)
    hours.push(hour)
    seconds.push((untilMs - at) / 1_000)
    roots += (hour.meanRoot * (untilMs - at)) / 1_000
    at = untilMs
  }
  const spentAt = (scale: number, from: number, until: number) => {
    let [polls, slope] = [0, 0]
    for (const [at, hour] of hours.slice(from, until).entries()) {
      const spent = spentIn(hour, scale, limits)
      const part = (seconds[from + at] ?? 0) / hour.seconds
      polls += part * spent.polls
      slope += part * spent.slope
    }
    return { polls, slope }
  }
  return {
    seconds,
    pollsOf: (span, scale) => spentAt(scale, span, span + 1).polls,
    scaleOf: (count, units, guess = units / roots) =>
      scaleFor(units, (scale) => spentAt(scale, 0, count), guess),
  }
}

function hourAt({ day, rateAt }: View, atMs: number) {
  const stepMs = stepSeconds * 1_000
  const place = Math.max(0, Math.floor((atMs - day.firstStepMs) / stepMs))
  const step = day.steps[place]
  if (!step) return undefined
  const other = day.otherShare * rateAt(atMs)
  const [endMs, otherRoot] = [day.firstStepMs + (place + 1) * stepMs, Math.sqrt(other)]
  // About what the root would be if the hour had been planned with as many other alerts as are expected now.
  const busyRoot = Math.sqrt(Math.max(other, step.busyRoot ** 2 + other - step.other))
  return { ...step, busyRoot, endMs, otherRoot, meanRoot: Math.sqrt(step.rate + other) }
}

/** What an hour brings, and the mean wait, for the preview. */
export function followedIn(view: View, scale: number, atMs: number) {
  const hour = hourAt(view, atMs)
  if (!hour) return { alerts: 0, lagSeconds: 0 }
  const { seconds, busySeconds } = hour
  const { busyPace, busyFactor, quietPace } = spentIn(hour, scale, view.limits)
  const alerts = hour.meanRoot ** 2 * seconds
  const quiet = hour.otherRoot ** 2 * (seconds - busySeconds)
  const lags = (0.5 * (alerts - quiet)) / (busyPace * busyFactor) + (0.5 * quiet) / quietPace
  return { alerts, lagSeconds: lags / Math.max(1e-12, alerts) }
}

function followPace({ day, limits, rateAt }: View, scale: number, atMs: number): number {
  const rate = broughtAt(day, atMs) + day.otherShare * rateAt(atMs)
  return clamp(scale * Math.sqrt(rate), limits.floor, limits.ceiling)
}

/**
 * Half a gap; within a gap after an evaluation's last poll what is left of it, and within a gap before the next one's first poll until that,
 * whichever of the two is nearer. Where evaluations are passed over, the mean of both.
 */
function followWait(view: View, scale: number, atMs: number): number {
  const { day } = view
  const hour = hourAt(view, atMs)
  const pace = followPace(view, scale, atMs)
  const gap = 1 / pace
  if (!hour) return gap / 2
  const { busyFactor, busyPace, passes } = spentIn(hour, scale, view.limits)
  if (broughtAt(day, atMs) >= day.busyRate) return gap / busyFactor / 2
  const isBusyAt = (at: number) =>
    broughtAt(day, at) >= day.busyRate && busyFactor * followPace(view, scale, at) > endFactor * pace
  let [ago, ahead] = [1, 1]
  while (ago < gap && !isBusyAt(atMs - ago * 1_000)) ago++
  while (ahead < gap && !isBusyAt(atMs + ahead * 1_000)) ahead++
  const left = gap - ago
  if (passes) return ago < gap ? (Math.min(ahead, left) + left) / 2 : gap / 2
  const untilNext = ahead + 1 / (busyFactor * busyPace)
  if (ago >= gap && untilNext >= gap) return gap / 2
  return ago < untilNext ? Math.min(untilNext, left) : untilNext
}

/**
 * The next poll: of all series of polls in the coming minutes, the first poll of the one with the lowest cost, which is the
 * waiting of alerts plus the price of the polls. At a pace of `scale √rate` a poll costs as much as `1 / (2 scale²)` seconds of
 * one alert's waiting.
 */
function nextFollowing(view: View, scale: number, earliestMs: number, latestMs: number): Decision {
  const { day, fromMs, rateAt, limits } = view
  // The last poll was made long ago, as on the day before, whose units were spent.
  if (latestMs <= fromMs) return { atMs: latestMs, reason: 'floor' }
  const gap = (latestMs - fromMs) / 1_000
  // Evaluations are announced in whole seconds, so only whole seconds are looked at.
  const first = Math.floor((fromMs - day.startMs) / 1_000)
  const passed = (fromMs - day.startMs) / 1_000 - first
  const rates = day.rates.subarray(first - (day.ratesFromMs - day.startMs) / 1_000)
  const other = day.otherShare * rateAt(fromMs)
  const points = pointsOf({ rates, other, passed }, (limits.floor / scale) ** 2, gap)
  const next = cheapest(points, 0.5 / scale ** 2, (earliestMs - fromMs) / 1_000, gap)
  const atMs = clamp(fromMs + next * 1_000, earliestMs, latestMs)
  return { atMs, reason: atMs < latestMs ? 'announced' : 'floor' }
}

/** How many alerts are expected in each second of a day, by the announced evaluations and what earlier alerts showed. */
export interface EvaluationDay {
  readonly startMs: number
  /** Expected alerts a second, by announced evaluations: in each second from `ratesFromMs` on, an hour before `firstStepMs`, since rows come late. */
  readonly rates: Float64Array
  readonly ratesFromMs: number
  readonly otherShare: number
  /** From so many alerts a second on, an evaluation brings them. */
  readonly busyRate: number
  /** The hours from `firstStepMs` on: those before it are over, and would cost half of the time that a day takes. */
  readonly steps: readonly Step[]
  readonly firstStepMs: number
}

/** One hour, and how many alerts a second evaluations bring in its mean, and how many come otherwise. */
type Step = Omit<Hour, 'otherRoot' | 'meanRoot'> & { readonly rate: number; readonly other: number }

export const stepSeconds = 3_600
const beyondSeconds = 3_600
/** Seconds with less than this part of the day's mean rate are quiet. */
const busyPart = 0.05
/** Evaluations are one where the later ones come within the seconds in which such a part of an evaluation's alerts comes. */
const togetherPart = 0.9
const halfHourSeconds = 1_800
const likelihoodMin = 0.05
const likelihoodMax = 20

/** How likely alerts are at an instant, against the mean of the day. */
export function likelihoodAt({ day, halfHours, meanRate }: DayForecast, atMs: number): number {
  const half = clamp(
    Math.floor((atMs - day.startMs) / (halfHourSeconds * 1_000)),
    0,
    halfHours.rates.length - 1,
  )
  return clamp((halfHours.rates[half] ?? 0) / Math.max(1e-12, meanRate), likelihoodMin, likelihoodMax)
}

/** `fromMs`: what was before this instant of the day is not planned any more. */
export function evaluationDay(
  { rules, inUse }: Announced,
  forecast: DayForecast,
  fromMs = forecast.day.startMs,
): EvaluationDay {
  const { startMs, endMs } = forecast.day
  const seconds = Math.ceil((endMs - startMs) / 1_000)
  const brought = new Float32Array(seconds + beyondSeconds)
  const likelihoods = Array.from({ length: Math.ceil(brought.length / halfHourSeconds) }, (_, half) =>
    likelihoodAt(forecast, startMs + half * halfHourSeconds * 1_000),
  )
  for (const rule of rules) {
    const untilMs = startMs + brought.length * 1_000 - 1
    const evaluations = evaluationsBetween(rule, startMs - 1, untilMs)
    for (let each = 0; each < evaluations.count; each++) {
      const second = Math.floor((evaluations.startMs + each * evaluations.stepMs - startMs) / 1_000)
      const likelihood = likelihoods[Math.floor(second / halfHourSeconds)] ?? 0
      brought[second] = (brought[second] ?? 0) + rule.rate * likelihood
    }
  }
  const { otherShare } = inUse
  const first = Math.floor((fromMs - startMs) / 1_000 / stepSeconds) * stepSeconds
  const ratesFrom = Math.max(0, first - stepSeconds)
  const rates = broughtFrom(brought, Float64Array.from(inUse.density), ratesFrom)
  const busyRate = busyPart * forecast.meanRate
  let [togetherSeconds, within] = [0, 0]
  while (togetherSeconds < delaySeconds && within < togetherPart)
    within += inUse.density[togetherSeconds++] ?? 0
  const steps: Step[] = []
  for (let from = first; from < seconds; from += stepSeconds) {
    const until = Math.min(seconds, from + stepSeconds)
    const other = otherShare * (forecast.meanRate * likelihoodAt(forecast, startMs + from * 1_000))
    let [busySeconds, roots, alerts] = [0, 0, 0]
    let [sum, squares, together, togetherUntil] = [0, 0, 0, 0]
    for (let second = from; second < until; second++) {
      const evaluated = brought[second] ?? 0
      if (evaluated > 0) {
        if (second >= togetherUntil) [together, togetherUntil] = [0, second + togetherSeconds]
        // The squares of sums.
        squares += (2 * together + evaluated) * evaluated
        together += evaluated
        sum += evaluated
      }
      const rate = rates[second - ratesFrom] ?? 0
      alerts += rate
      if (rate < busyRate) continue
      busySeconds++
      roots += Math.sqrt(rate + other)
    }
    steps.push({
      ...{ seconds: until - from, other, busySeconds },
      ...{ busyRoot: roots / Math.max(1, busySeconds), rate: alerts / (until - from) },
      evaluations: squares > 0 ? sum ** 2 / squares : 0,
    })
  }
  const [ratesFromMs, firstStepMs] = [startMs + ratesFrom * 1_000, startMs + first * 1_000]
  return { startMs, rates, ratesFromMs, otherShare, busyRate, steps, firstStepMs }
}

/** Expected alerts a second at an instant, from announced evaluations. */
function broughtAt({ ratesFromMs, rates }: EvaluationDay, atMs: number): number {
  return rates[Math.floor((atMs - ratesFromMs) / 1_000)] ?? 0
}

/** Expected alerts a second in each second from `from` on, until nothing that is announced brings any. */
function broughtFrom(brought: Float32Array, density: Float64Array, from: number): Float64Array {
  const rates = new Float64Array(brought.length - from + delaySeconds)
  for (let second = Math.max(0, from - delaySeconds); second < brought.length; second++) {
    const alerts = brought[second] ?? 0
    if (alerts === 0) continue
    for (let at = Math.max(0, second - from); at < second - from + delaySeconds; at++)
      rates[at] = (rates[at] ?? 0) + alerts * (density[at - second + from] ?? 0)
  }
  return rates
}
