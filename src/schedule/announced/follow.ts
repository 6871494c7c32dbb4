import { type DayForecast, spanAt } from '../forecast/outlook.ts'
import { waitOnMarks } from '../marks/pattern.ts'
import { waitOnPeriod } from '../marks/phase.ts'
import { type DecisionState, keptScale, type Spans, spendable } from '../pace/decide.ts'
import { mixedPace } from '../pace/family.ts'
import { cautiousFloor, heapFloor } from '../pace/guard.ts'
import { cheapest, clamp, type PaceLimits, type Points } from '../pace/solve.ts'
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
  readonly units: number
  readonly limits: PaceLimits
  /** Events a second that are expected at an instant, announced or not. */
  readonly rateAt: (atMs: number) => number
}

/** Below this share of unexplained alerts, long waits of before shorten no gap: p99 0.12 to 0.13 of even on twelve seeds, else to 0.29. */
const unexplainedMax = 0.01
/**
 * Where the pace falls by more than this factor, an evaluation's alerts are over. Alerts 58 to 62 s after an evaluation have 0.55 of even, and 0.99
 * where this is not looked for (2,000 units, five days); from 1.2 to 8 the polls are the same.
 */
const endFactor = 2

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
    units: spendable({ ...moment, budget: { ...budget, unitsLeft } }),
    limits: { floor, ceiling: moment.limits.ceiling },
    rateAt: (atMs) => outlook.profileRecent.rates[spanAt(outlook, atMs)] ?? 0,
  }
  const scale = keptScale(moment, followSpans(view), view.units, view.limits)
  const waits = (atMs: number) => {
    const pace = mixedPace(family, paces)[spanAt(outlook, atMs)] ?? 0
    const readableMs = atMs - lateMs
    const without = marks ? waitOnMarks(marks, pace, readableMs) : waitOnPeriod(markPeriod, pace, readableMs)
    return { without: without * 2 * evenPace, following: followWait(view, scale, atMs) * 2 * evenPace }
  }
  const isFollowed = follows && moment.hotUntilMs <= fromMs
  const bounds = {
    earliestMs: lastAtMs + minIntervalMs,
    latestMs: lastAtMs + Math.max(minIntervalMs, 1_000 / floor),
  }
  return {
    following: { waits, spentUntil: (atMs) => spentUntil(view, scale, atMs) },
    decision: isFollowed ? nextFollowing(view, scale, bounds) : undefined,
  }
}

/** The rest of the day by hours; a demand is the root of the expected alerts a second. */
export function followSpans({
  day,
  fromMs,
  endMs,
  rateAt,
}: Pick<View, 'day' | 'fromMs' | 'endMs' | 'rateAt'>): Spans {
  const seconds: number[] = []
  const demands: number[] = []
  const stepEnds: boolean[] = []
  const stepMs = stepSeconds * 1_000
  for (let at = Math.floor((fromMs - day.firstStepMs) / stepMs); at < day.steps.length; at++) {
    const step = day.steps[at]
    if (!step) continue
    const stepFromMs = Math.max(fromMs, day.firstStepMs + at * stepMs)
    const stepEndMs = Math.min(endMs, day.firstStepMs + (at + 1) * stepMs)
    const left = (stepEndMs - stepFromMs) / (stepEndMs - (day.firstStepMs + at * stepMs))
    for (const level of step.levels) {
      seconds.push(left * level.seconds)
      demands.push(level.root)
      stepEnds.push(false)
    }
    seconds.push(left * step.quietSeconds)
    demands.push(Math.sqrt(day.otherShare * rateAt(stepFromMs)))
    stepEnds.push(true)
  }
  return { seconds, demands, stepEnds }
}

function followPace({ day, limits, rateAt }: View, scale: number, atMs: number): number {
  const rate = broughtAt(day, atMs) + day.otherShare * rateAt(atMs)
  return clamp(scale * Math.sqrt(rate), limits.floor, limits.ceiling)
}

/** Half a gap; after an evaluation's last poll what is left of a gap, or, since the next one's poll may come before or be left out, the mean of both. */
function followWait(view: View, scale: number, atMs: number): number {
  const pace = followPace(view, scale, atMs)
  const gap = 1 / pace
  const isBusyAt = (seconds: number) => followPace(view, scale, atMs + seconds * 1_000) > endFactor * pace
  let [ago, ahead] = [1, 1]
  while (ago < gap && !isBusyAt(-ago)) ago++
  if (ago >= gap) return gap / 2
  const left = gap - ago
  while (ahead < left && !isBusyAt(ahead)) ahead++
  return (Math.min(ahead, left) + left) / 2
}

function spentUntil(view: View, scale: number, untilMs: number): number {
  const { fromMs, endMs } = view
  const seconds = Math.max(0, Math.min(untilMs, endMs) - fromMs) / 1_000
  let spent = 0
  for (let at = 0; at < seconds; at++)
    spent += followPace(view, scale, fromMs + at * 1_000) * Math.min(1, seconds - at)
  return spent
}

/** In quiet times one instant in so many seconds is looked at. */
const quietSeconds = 15
/** Comparing all pairs of instants takes time with the square of their number. */
const busyPointsMax = 160

interface Bounds {
  readonly earliestMs: number
  readonly latestMs: number
}

/**
 * The next poll: of all series of polls in the coming minutes, the first poll of the one with the lowest cost, which is the
 * waiting of alerts plus the price of the polls. At a pace of `scale √rate` a poll costs as much as `1 / (2 scale²)` seconds of
 * one alert's waiting.
 */
function nextFollowing(view: View, scale: number, { earliestMs, latestMs }: Bounds): Decision {
  const { day, fromMs, rateAt, limits } = view
  // The last poll was made long ago, as on the day before, whose units were spent.
  if (latestMs <= fromMs) return { atMs: latestMs, reason: 'floor' }
  const gap = (latestMs - fromMs) / 1_000
  // Evaluations are announced in whole seconds, so only whole seconds are looked at.
  const first = Math.floor((fromMs - day.startMs) / 1_000)
  const passed = (fromMs - day.startMs) / 1_000 - first
  const rates = day.rates.subarray(first - (day.ratesFromMs - day.startMs) / 1_000)
  const seconds = Math.ceil(2 * gap)
  const other = day.otherShare * rateAt(fromMs)
  const busy = (limits.floor / scale) ** 2
  const points: Points = { times: [0], masses: [0] }
  let busySeconds = 0
  for (let second = 0; second < seconds; second++) if ((rates[second] ?? 0) + other > busy) busySeconds++
  const busyStep = Math.ceil(busySeconds / busyPointsMax)
  let [mass, skipped] = [0, 0]
  for (let second = 0; second < seconds; second++) {
    const alerts = (rates[second] ?? 0) + other
    mass += alerts
    skipped++
    const end = second + 1 - passed
    const isLatest = end >= gap && end - 1 < gap
    // At the last second before quiet ones, a poll finds all alerts of an evaluation.
    const isEnd = alerts > busy && (rates[second + 1] ?? 0) + other <= busy
    const isPoint = skipped >= (alerts > busy ? busyStep : quietSeconds) || isEnd
    if (!isPoint && !isLatest && second < seconds - 1) continue
    skipped = 0
    points.times.push(isLatest ? gap : end)
    points.masses.push(mass)
  }
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
  /** The hours from `firstStepMs` on: those before it are over, and would cost half of the time that a day takes. */
  readonly steps: readonly Step[]
  readonly firstStepMs: number
}

/** One hour. Its seconds with expected alerts are grouped by how many are expected; all others are quiet. */
interface Step {
  readonly levels: readonly Level[]
  readonly quietSeconds: number
}

interface Level {
  seconds: number
  /** The mean square root of the rate in these seconds: how many polls they need. */
  root: number
  /** Expected alerts in these seconds. */
  alerts: number
}

export const stepSeconds = 3_600
/** The rate of a level as a multiple of the one below. */
const levelFactor = 4
const levelCount = 8
const beyondSeconds = 3_600
/** Seconds with less than this part of the day's mean rate are quiet. */
const busyPart = 0.05
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
  const busy = busyPart * forecast.meanRate
  const steps: Step[] = []
  for (let from = first; from < seconds; from += stepSeconds) {
    const until = Math.min(seconds, from + stepSeconds)
    const levels = Array.from({ length: levelCount }, (): Level => ({ seconds: 0, root: 0, alerts: 0 }))
    let quietSeconds = until - from
    const other = otherShare * (forecast.meanRate * likelihoodAt(forecast, startMs + from * 1_000))
    for (let second = from; second < until; second++) {
      const rate = rates[second - ratesFrom] ?? 0
      if (rate < busy) continue
      let place = 0
      // A logarithm of each of a day's seconds would be most of what this takes.
      for (let next = busy * levelFactor; rate >= next && place < levelCount - 1; next *= levelFactor) place++
      const level = levels[place]
      if (!level) continue
      quietSeconds--
      level.seconds++
      level.root += Math.sqrt(rate + other)
      level.alerts += rate + other
    }
    for (const level of levels) level.root /= Math.max(1, level.seconds)
    steps.push({ levels: levels.filter((level) => level.seconds > 0), quietSeconds })
  }
  const [ratesFromMs, firstStepMs] = [startMs + ratesFrom * 1_000, startMs + first * 1_000]
  return { startMs, rates, ratesFromMs, otherShare, steps, firstStepMs }
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
