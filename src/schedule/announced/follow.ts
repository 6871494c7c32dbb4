import type { DayForecast } from '../forecast/day-forecast.ts'
import { waitOnMarks } from '../marks/mark-plan.ts'
import { type Moment, spendable } from '../pace/decide.ts'
import { mixedPace } from '../pace/family.ts'
import { spanAt } from '../pace/outlook.ts'
import { clamp, type Limits, solveScale } from '../pace/solve.ts'
import type { Decision } from '../schedule.ts'
import { type Announced, delaySeconds } from './evidence.ts'
import { eachBetween } from './rules.ts'

/**
 * Polls where announced evaluations are likely to bring alerts. The alerts expected in each second of the day follow from
 * the evaluations, the delay and what comes without any; polls go where waiting any longer would cost more than one.
 */
export interface EvaluationDay {
  readonly startMs: number
  /** Alerts that the evaluations of each second of the day, and of an hour beyond it, bring. */
  readonly brought: Float32Array
  readonly density: readonly number[]
  readonly otherShare: number
  readonly steps: readonly Step[]
}

/** A quarter of an hour: seconds in which evaluations bring alerts, and the others. */
interface Step {
  readonly busySeconds: number
  /** The mean root of the rate of the busy seconds: demand for polls. */
  readonly busyRoot: number
  /** Alerts that come in these. */
  readonly busyAlerts: number
}

const stepSeconds = 900
const beyondSeconds = 3_600
/** Seconds with less than this part of the mean rate of the day are not busy. */
const busyPart = 0.05
const likelihoodMin = 0.05
const likelihoodMax = 20

/** How likely alerts are at an instant, against the mean of the day. */
export function likelihoodAt({ day, halfHours, meanRate }: DayForecast, atMs: number): number {
  const half = clamp(Math.floor((atMs - day.startMs) / 1_800_000), 0, halfHours.rates.length - 1)
  return clamp((halfHours.rates[half] ?? 0) / Math.max(1e-12, meanRate), likelihoodMin, likelihoodMax)
}

export function evaluationDay({ rules, inUse }: Announced, forecast: DayForecast): EvaluationDay {
  const { startMs, endMs } = forecast.day
  const seconds = Math.ceil((endMs - startMs) / 1_000)
  const brought = new Float32Array(seconds + beyondSeconds)
  const likelihoods = new Map<number, number>()
  for (const rule of rules) {
    eachBetween(rule, startMs - 1, startMs + brought.length * 1_000 - 1, (atMs) => {
      const half = Math.floor((atMs - startMs) / 1_800_000)
      const likelihood = likelihoods.get(half) ?? likelihoodAt(forecast, atMs)
      likelihoods.set(half, likelihood)
      const second = Math.floor((atMs - startMs) / 1_000)
      brought[second] = (brought[second] ?? 0) + rule.rate * likelihood
    })
  }
  const { density, otherShare } = inUse
  const rates = new Float32Array(brought.length + delaySeconds)
  for (let second = 0; second < brought.length; second++) {
    const alerts = brought[second] ?? 0
    if (alerts === 0) continue
    for (let delay = 0; delay < delaySeconds; delay++)
      rates[second + delay] = (rates[second + delay] ?? 0) + alerts * (density[delay] ?? 0)
  }
  const busy = busyPart * forecast.meanRate
  const steps: Step[] = []
  for (let from = 0; from < seconds; from += stepSeconds) {
    let busySeconds = 0
    let [root, alerts] = [0, 0]
    const other = otherShare * (forecast.meanRate * likelihoodAt(forecast, startMs + from * 1_000))
    for (let second = from; second < from + stepSeconds; second++) {
      const rate = rates[second] ?? 0
      if (rate < busy) continue
      busySeconds++
      root += Math.sqrt(rate + other)
      alerts += rate + other
    }
    steps.push({ busySeconds, busyRoot: root / Math.max(1, busySeconds), busyAlerts: alerts })
  }
  return { startMs, brought, density, otherShare, steps }
}

/** Alerts a second that announced evaluations bring at an instant. */
function broughtAt({ startMs, brought, density }: EvaluationDay, atMs: number): number {
  const second = Math.floor((atMs - startMs) / 1_000)
  let rate = 0
  for (let delay = 0; delay < delaySeconds; delay++) {
    const alerts = brought[second - delay] ?? 0
    if (alerts > 0) rate += alerts * (density[delay] ?? 0)
  }
  return rate
}

/** What an event would have waited, in even waits, by the plan without announcements and by the one along them. */
export type Waits = (atMs: number) => { readonly without: number; readonly following: number }

interface View {
  readonly day: EvaluationDay
  readonly fromMs: number
  readonly endMs: number
  readonly units: number
  readonly limits: Limits
  /** Events a second that are expected at an instant, announced or not. */
  readonly rateAt: (atMs: number) => number
}

/** The next poll where announcements are followed now, and how both ways to plan are to be judged. */
export function followAnnounced(
  { follows }: Announced,
  day: EvaluationDay,
  moment: Moment,
): { readonly waits: Waits; readonly decision: Decision | undefined } {
  const { paces, family, budget, marks, lateMs, lastAtMs, minIntervalMs } = moment
  const { outlook, evenPace } = paces
  const { fromMs } = outlook
  const { endMs } = budget.day
  const affordable = ((budget.unitsLeft + 0.5) * 1_000) / Math.max(1_000, endMs - fromMs)
  const floor = Math.min(moment.floor, affordable)
  const view: View = {
    ...{ day, fromMs, endMs },
    units: spendable(moment),
    limits: { floor, ceiling: moment.limits.ceiling },
    rateAt: (atMs) => outlook.profileRecent.rates[spanAt(outlook, atMs)] ?? 0,
  }
  const scale = followScale(view)
  const waits: Waits = (atMs) => {
    const pace = mixedPace(family, paces)[spanAt(outlook, atMs)] ?? 0
    const without = marks ? waitOnMarks(marks, pace, atMs - lateMs) : 0.5 / Math.max(1e-9, pace)
    return { without: without * 2 * evenPace, following: evenPace / followPace(view, scale, atMs) }
  }
  const isFollowed = follows && !moment.behind && moment.hotUntilMs <= fromMs
  const bounds = {
    earliestMs: lastAtMs + minIntervalMs,
    latestMs: lastAtMs + Math.max(minIntervalMs, 1_000 / floor),
  }
  return { waits, decision: isFollowed ? nextFollowing(view, scale, bounds) : undefined }
}

/** Polls a second for each root of an alert a second, such that the day's units are spent. */
function followScale({ day, fromMs, endMs, units, limits, rateAt }: View): number {
  const seconds: number[] = []
  const roots: number[] = []
  const stepMs = stepSeconds * 1_000
  for (let step = Math.floor((fromMs - day.startMs) / stepMs); step < day.steps.length; step++) {
    const { busySeconds = 0, busyRoot = 0 } = day.steps[step] ?? {}
    const stepFromMs = Math.max(fromMs, day.startMs + step * stepMs)
    const left = (Math.min(endMs, day.startMs + (step + 1) * stepMs) - stepFromMs) / stepMs
    seconds.push(left * busySeconds, left * (stepSeconds - busySeconds))
    roots.push(busyRoot, Math.sqrt(day.otherShare * rateAt(stepFromMs)))
  }
  return solveScale(seconds, roots, units, limits)
}

/** What the plan along the announcements makes of each quarter of an hour of a day of which nothing is known yet. */
export function previewFollowing(
  announced: Announced,
  forecast: DayForecast,
  units: number,
  limits: Limits,
): { atMs: number; seconds: number; alerts: number; polls: number; lagSeconds: number }[] {
  const day = evaluationDay(announced, forecast)
  const { startMs, endMs } = forecast.day
  const rateAt = (atMs: number) => forecast.meanRate * likelihoodAt(forecast, atMs)
  const scale = followScale({ day, fromMs: startMs, endMs, units, limits, rateAt })
  return day.steps.map(({ busySeconds, busyRoot, busyAlerts }, step) => {
    const atMs = startMs + step * stepSeconds * 1_000
    const seconds = Math.min(stepSeconds, (endMs - atMs) / 1_000)
    const quietSeconds = Math.max(0, seconds - busySeconds)
    const otherRate = day.otherShare * rateAt(atMs)
    const pace = (root: number) => clamp(scale * root, limits.floor, limits.ceiling)
    const [busyPace, quietPace] = [pace(busyRoot), pace(Math.sqrt(otherRate))]
    const alerts = busyAlerts + otherRate * quietSeconds
    const waited = (0.5 * busyAlerts) / busyPace + (0.5 * otherRate * quietSeconds) / quietPace
    const polls = busyPace * busySeconds + quietPace * quietSeconds
    return { atMs, seconds, alerts, polls, lagSeconds: waited / Math.max(1e-12, alerts) }
  })
}

function followPace({ day, limits, rateAt }: View, scale: number, atMs: number): number {
  const rate = broughtAt(day, atMs) + day.otherShare * rateAt(atMs)
  return clamp(scale * Math.sqrt(rate), limits.floor, limits.ceiling)
}

/** Where nothing is announced, instants so far apart are looked at, in seconds. */
const quietSeconds = 15
/** Comparing all pairs of instants takes time with the square of their number. */
const busyPointsMax = 160

interface Bounds {
  readonly earliestMs: number
  readonly latestMs: number
}

/**
 * The next poll: the first of those instants of the coming minutes that cost the least together, the waiting of alerts and
 * the price of polls added. At a pace of `scale √rate` a poll costs as much as `1 / (2 scale²)` seconds of one alert's waiting.
 */
function nextFollowing(view: View, scale: number, { earliestMs, latestMs }: Bounds): Decision {
  const { day, fromMs, rateAt, limits } = view
  const gap = (latestMs - fromMs) / 1_000
  // Evaluations are announced in whole seconds, and so are the instants that are looked at.
  const first = Math.floor((fromMs - day.startMs) / 1_000)
  const passed = (fromMs - day.startMs) / 1_000 - first
  const rates = broughtFrom(day, first, Math.ceil(2 * gap))
  const other = day.otherShare * rateAt(fromMs)
  const busy = (limits.floor / scale) ** 2
  const points: Points = { times: [0], masses: [0], moments: [0] }
  const busySeconds = rates.reduce((count, rate) => count + (rate + other > busy ? 1 : 0), 0)
  const busyStep = Math.ceil(busySeconds / busyPointsMax)
  let [mass, moment, skipped] = [0, 0, 0]
  for (let second = 0; second < rates.length; second++) {
    const alerts = (rates[second] ?? 0) + other
    mass += alerts
    moment += alerts * (second + 0.5 - passed)
    skipped++
    const end = second + 1 - passed
    const isLatest = end >= gap && end - 1 < gap
    // A second before quiet ones is one at which a poll finds all that an evaluation brought.
    const isEnd = alerts > busy && (rates[second + 1] ?? 0) + other <= busy
    const isPoint = skipped >= (alerts > busy ? busyStep : quietSeconds) || isEnd
    if (!isPoint && !isLatest && second < rates.length - 1) continue
    skipped = 0
    points.times.push(isLatest ? gap : end)
    points.masses.push(mass)
    points.moments.push(moment)
  }
  const next = cheapest(points, 0.5 / scale ** 2, (earliestMs - fromMs) / 1_000, gap)
  const atMs = clamp(fromMs + next * 1_000, earliestMs, latestMs)
  return { atMs, reason: atMs < latestMs ? 'announced' : 'floor' }
}

/** Alerts that evaluations bring in each of so many seconds of the day. */
function broughtFrom({ brought, density }: EvaluationDay, from: number, seconds: number): Float64Array {
  const rates = new Float64Array(seconds)
  for (let second = -delaySeconds; second < seconds; second++) {
    const alerts = brought[from + second] ?? 0
    if (alerts === 0) continue
    for (let delay = Math.max(0, -second); delay < delaySeconds && second + delay < seconds; delay++)
      rates[second + delay] = (rates[second + delay] ?? 0) + alerts * (density[delay] ?? 0)
  }
  return rates
}

/** Instants at which a poll may come, in seconds from now, with the alerts until then and the sum of their instants. */
interface Points {
  readonly times: number[]
  readonly masses: number[]
  readonly moments: number[]
}

/** By dynamic programming from the end; the last point is a poll in any case. */
function cheapest(
  { times, masses, moments }: Points,
  price: number,
  shortest: number,
  longest: number,
): number {
  const last = times.length - 1
  const costs = new Float64Array(times.length)
  let first = last
  for (let from = last - 1; from >= 0; from--) {
    let best = Number.POSITIVE_INFINITY
    const at = times[from] ?? 0
    const [mass, moment] = [masses[from] ?? 0, moments[from] ?? 0]
    for (let to = from + 1; to <= last; to++) {
      const end = times[to] ?? 0
      if (end - at < shortest) continue
      if (end - at > longest && best < Number.POSITIVE_INFINITY) break
      const waiting = end * ((masses[to] ?? 0) - mass) - ((moments[to] ?? 0) - moment)
      if (waiting + price >= best) break
      const cost = waiting + price + (costs[to] ?? 0)
      if (cost >= best) continue
      best = cost
      if (from === 0) first = to
    }
    costs[from] = best
  }
  return times[first] ?? 0
}
