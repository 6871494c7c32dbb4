import { wallTime } from '../lib/zone.ts'
import { type Announced, describeAnnounced } from './announced/evidence.ts'
import { evaluationDay, followedIn, followSpans, likelihoodAt, stepSeconds } from './announced/follow.ts'
import { budgetDay } from './budget.ts'
import { type DayForecast, nearSecondsMax, stepsPerHalfHour } from './forecast/outlook.ts'
import { learnedAlerts, profileZone } from './forecast/profile.ts'
import { type MarkPlan, planMarks } from './marks/pattern.ts'
import { findMarkPeriod, type MarkPeriod, type MarksLeft, whyMarksAreLeft } from './marks/phase.ts'
import { emptyMemory, type Memory, readMemory } from './memory.ts'
import { buysMarks, keptScale, spansOf } from './pace/decide.ts'
import { choosesInstants, mixedPace, wholeDay } from './pace/family.ts'
import { fewDay, fewStepMs, fewUnits, pacedInstants } from './pace/few.ts'
import { floorOf, tightFloor } from './pace/guard.ts'
import { clamp, hasUsualLongest, limitsFor, type PaceLimits, respond } from './pace/solve.ts'
import type { AnnouncedView, BudgetDay, ScheduleOptions } from './schedule.ts'
import { type Lags, rememberWaits, type Wait, waitOfShare, waitsUntil } from './simulate.ts'

/** The plan of the hours to come as the profile has it: without recent events, which nobody can know of yet. */
export interface Preview {
  readonly hours: readonly PreviewHour[]
  /** Weighed by the events that are expected. */
  readonly lagSeconds: number
  /** The same with percentiles, in seconds: an alert waits for any part of the gap that it falls into. */
  readonly lag: Lags
  readonly evenLagSeconds: number
  /** The best that any pace could reach against even polls, if the profile is right: (∫√λ)² / (T ∫λ). A few polls have no pace. */
  readonly bestRatio: number | undefined
  readonly alertsPerDay: number
  readonly learnedFrom: number
  readonly slowestSeconds: number
  readonly fastestSeconds: number
  /** What each policy counts for. */
  readonly weights: readonly number[]
  /** The marks that polls go on. */
  readonly marks: MarkPlan | undefined
  /** Those that are closer together than polls. */
  readonly markPeriod: MarkPeriod | undefined
  /** Why polls do not go on marks that are known. */
  readonly marksLeft: MarksLeft | undefined
  /** What the rules announce of their evaluations, and whether polls follow it. */
  readonly announced: AnnouncedView | null
}

interface PreviewHour {
  readonly startMs: number
  readonly polls: number
  readonly alerts: number
  readonly lagSeconds: number
}

interface Step {
  readonly atMs: number
  readonly seconds: number
  readonly alerts: number
  readonly polls: number
  readonly lagSeconds: number
  /** Where polls go on marks or are few, not all alerts of a step wait equally long. */
  readonly waits?: readonly Wait[]
}

/** The plan of so many hours from `nowMs` on, by hours of the clock. */
export function previewPlan(options: ScheduleOptions, saved: unknown, nowMs: number, hours: number): Preview {
  const memory = readMemory(saved) ?? emptyMemory()
  const { unitsPerDay } = options
  const { marksLeft, ...onMarks } = marksOf(memory, options)
  const endMs = nowMs + hours * hourMs
  const steps: Step[] = []
  const planned = { ...onMarks, ...rememberDays(memory, options) }
  for (let at = nowMs; at < endMs; ) {
    const day = budgetDay(at, options)
    for (const step of stepsOf(memory, options, day, planned))
      if (step.atMs + step.seconds * 1_000 > at && step.atMs < endMs) steps.push(step)
    at = day.endMs
  }
  const total = (of: (step: Step) => number) => steps.reduce((sum, step) => sum + of(step), 0)
  const alerts = total((step) => step.alerts)
  const seconds = total((step) => step.seconds)
  const roots = total((step) => Math.sqrt(step.alerts * step.seconds))
  const even = 86_400 / unitsPerDay
  const fastestSeconds = options.minIntervalMs / 1_000
  const lagSeconds = total((step) => step.alerts * step.lagSeconds) / alerts
  const rank = (share: number) => waitOfShare(share * alerts, steps)
  return {
    hours: byHour(steps, hourStartMs(nowMs, options), nowMs, endMs),
    lagSeconds,
    lag: { mean: lagSeconds, p50: rank(0.5), p95: rank(0.95), p99: rank(0.99) },
    evenLagSeconds: even / 2,
    // Within a step, announced evaluations may do better.
    bestRatio: planned.fewOf ? undefined : Math.min(roots ** 2 / (seconds * alerts), (2 * lagSeconds) / even),
    alertsPerDay: (alerts / seconds) * 86_400,
    learnedFrom: learnedAlerts(memory.profile),
    slowestSeconds: Math.max(
      even,
      fastestSeconds,
      Math.min(options.maxIntervalMs / 1_000, even / options.floor),
    ),
    fastestSeconds,
    weights: memory.family.weights,
    ...{ ...onMarks, marksLeft },
    announced: options.everyMs === undefined ? describeAnnounced(memory.announced) : null,
  }
}

type OnMarks = Pick<Preview, 'marks' | 'markPeriod'>

/** The marks that a schedule with this memory goes on, and why it leaves those that it knows. */
function marksOf(memory: Memory, options: ScheduleOptions): OnMarks & Pick<Preview, 'marksLeft'> {
  const none = { marks: undefined, markPeriod: undefined, marksLeft: undefined }
  const { unitsPerDay, everyMs } = options
  if (memory.lockedOn === null || everyMs !== undefined) return none
  const markPeriod = findMarkPeriod(memory.lockedOn, true)
  const limits = limitsFor(options, unitsPerDay)
  const marks = markPeriod ? undefined : planMarks(memory.lockedOn, limits, true)
  if (!marks && !markPeriod) return none
  const marksLeft = whyMarksAreLeft(memory, markPeriod !== undefined, unitsPerDay)
  return marksLeft === undefined ? { marks, markPeriod, marksLeft } : { ...none, marksLeft }
}

/** What days that are alike have in common. */
function rememberDays(memory: Memory, options: ScheduleOptions) {
  return { waitsOf: rememberWaits(memory.phase), fewOf: rememberFew(memory, options) }
}

/** A whole day from its start, as it would be planned before anything of it is known. */
function stepsOf(
  memory: Memory,
  options: ScheduleOptions,
  day: BudgetDay,
  { marks, markPeriod, waitsOf, fewOf }: OnMarks & ReturnType<typeof rememberDays>,
): Step[] {
  const { unitsPerDay } = options
  const { profile, family } = memory
  const { forecast, paces, limits } = wholeDay(profile, family, options, day, unitsPerDay, true)
  if (memory.announced.follows && options.everyMs === undefined)
    return previewFollowing(memory.announced, forecast, unitsPerDay, limits)
  const { outlook } = paces
  const halves = halfHoursOf(outlook.seconds, mixedPace(family, paces))
  const demands = halves.flatMap((half) => half.demands)
  const slowest = paces.evenPace * floorOf(memory.guard, options.floor)
  const guarded = clamp(slowest, limits.floor, limits.ceiling)
  let atMs = day.startMs
  let unitsLeft = unitsPerDay
  const few = fewOf?.(forecast, guarded)
  let half = planHalf(0, atMs)
  return Array.from(demands, (demand, span) => {
    const seconds = outlook.seconds[span] ?? 0
    const from = { atMs, seconds, alerts: (outlook.profile.rates[span] ?? 0) * seconds }
    atMs += seconds * 1_000
    if (options.everyMs !== undefined)
      return { ...from, ...atFixedPace(from, options.everyMs, day, unitsPerDay) }
    if (few) {
      const polls = few.filter((at) => at >= from.atMs && at < atMs).length
      return { ...from, polls, ...inMean(waitsUntil(few, day, from.atMs, atMs)) }
    }
    if (span > 0 && span % stepsPerHalfHour === 0) half = planHalf(span, from.atMs)
    const { bounds, onMarks, response, scale } = half
    const wish = scale * demand
    const pace = clamp(response ? respond(response, wish) : wish, bounds.floor, bounds.ceiling)
    unitsLeft -= pace * seconds
    const polls = pace * seconds
    // Once the units are spent, alerts wait for the next day, but not for longer than in the longest gap.
    const lagSeconds = 0.5 / Math.max(pace, limits.floor) - savedOnPeriod(markPeriod, pace)
    if (!onMarks) return { ...from, polls, lagSeconds }
    // The guard allows no longer gaps than this once many alerts between marks have waited for long.
    const longestSeconds = 1 / Math.max(bounds.floor, tightFloor * paces.evenPace)
    const waits = waitsOf(onMarks, { wish: wish * 60, pace, longestSeconds })
    return { ...from, polls, ...inMean(waits) }
  })

  /** The steps of half an hour; as at each decision, those to come are taken whole. */
  function planHalf(span: number, fromMs: number) {
    // The guard keeps units for what nobody expects.
    const moment = { guard: { ...memory.guard, slower: 0 }, budget: { unitsPerDay, unitsLeft, day } }
    const ahead = { paces: { ...paces, outlook: { ...outlook, fromMs } }, ...moment }
    // Marks may take more polls than the guard's gaps alone: they become fewer once the units that are left do not buy these.
    const secondsLeft = (day.endMs - fromMs) / 1_000
    const bounds = { floor: Math.min(guarded, Math.max(0, unitsLeft) / secondsLeft), ceiling: limits.ceiling }
    const onMarks = buysMarks(unitsLeft, limits, secondsLeft) ? marks : undefined
    const response = onMarks?.responseTo(bounds.floor)
    const next = span + stepsPerHalfHour
    const later = halves.slice(next / stepsPerHalfHour)
    const seconds = [...outlook.seconds.slice(span, next), ...later.map((each) => each.seconds)]
    const wanted = [...demands.slice(span, next), ...later.map((each) => each.mean)]
    const scale = keptScale(ahead, spansOf(seconds, wanted, bounds, response), unitsLeft)
    return { bounds, onMarks, response, scale }
  }
}

/**
 * A half hour is looked at by steps once it is near. Before that it is taken whole, and so is what of it the poll before leads up to,
 * where polls are few.
 */
function halfHoursOf(seconds: readonly number[], paces: readonly number[]) {
  return Array.from({ length: Math.ceil(seconds.length / stepsPerHalfHour) }, (_, half) => {
    const [first, next] = [half * stepsPerHalfHour, (half + 1) * stepsPerHalfHour]
    const [steps, ofSteps] = [seconds.slice(first, next), paces.slice(first, next)]
    const length = steps.reduce((sum, each) => sum + each, 0)
    const mean = ofSteps.reduce((sum, pace, step) => sum + pace * (steps[step] ?? 0), 0) / length
    let begins = 0
    const demands = ofSteps.map((pace, step) => {
      const isNear = begins >= 1 / mean - nearSecondsMax
      begins += steps[step] ?? 0
      return isNear ? pace : mean
    })
    return { seconds: length, mean, demands }
  })
}

/** The polls and lag of each hour of a whole day when polls follow the announcements, for the preview. */
function previewFollowing(
  announced: Announced,
  forecast: DayForecast,
  units: number,
  limits: PaceLimits,
): Step[] {
  const day = evaluationDay(announced, forecast)
  const { startMs, endMs } = forecast.day
  const rateAt = (atMs: number) => forecast.meanRate * likelihoodAt(forecast, atMs)
  const view = { day, fromMs: startMs, endMs, rateAt, limits }
  const spans = followSpans(view)
  const scale = spans.scaleOf(spans.seconds.length, units)
  return spans.seconds.map((seconds, span) => {
    const atMs = startMs + span * stepSeconds * 1_000
    return { atMs, seconds, polls: spans.pollsOf(span, scale), ...followedIn(view, scale, atMs) }
  })
}

function inMean(waits: readonly Wait[]): Pick<Step, 'waits' | 'lagSeconds'> {
  return { waits, lagSeconds: waits.reduce((sum, { share, seconds }) => sum + share * seconds, 0) }
}

/** When the polls of a day come that has only a few; undefined where it has more, or a pace that the config names. */
function rememberFew(memory: Memory, options: ScheduleOptions) {
  const { unitsPerDay, everyMs } = options
  if (unitsPerDay > fewUnits || everyMs !== undefined || !hasUsualLongest(options)) return undefined
  const known = new Map<string, readonly number[]>()
  return (forecast: DayForecast, floor: number): readonly number[] => {
    const { day, rates } = forecast
    const alike = rates.join()
    const offsets = known.get(alike) ?? instantsOf(forecast, floor).map((at) => at - day.startMs)
    known.set(alike, offsets)
    return offsets.map((each) => day.startMs + each)
  }
  function instantsOf(forecast: DayForecast, floor: number): readonly number[] {
    const few = fewDay(forecast, unitsPerDay, Math.floor(1_000 / floor / fewStepMs) * fewStepMs)
    const paced = pacedInstants(memory, few, options)
    return choosesInstants(memory.few, few, paced) ? few.chosen : paced
  }
}

/** A fixed pace goes on until the units are spent; then alerts wait for the reset. */
function atFixedPace(
  { atMs, seconds }: Pick<Step, 'atMs' | 'seconds'>,
  everyMs: number,
  day: BudgetDay,
  unitsPerDay: number,
): Pick<Step, 'polls' | 'lagSeconds'> {
  const spentMs = day.startMs + unitsPerDay * everyMs
  if (atMs < spentMs)
    return { polls: Math.min(seconds * 1_000, spentMs - atMs) / everyMs, lagSeconds: everyMs / 2_000 }
  return { polls: 0, lagSeconds: (day.endMs - atMs) / 1_000 - seconds / 2 }
}

/** Of a wait, in seconds: where polls go just after a mark, an alert does not wait for the middle of the period. */
function savedOnPeriod(period: MarkPeriod | undefined, pace: number): number {
  if (period === undefined) return 0
  const { periodMs, waitSeconds } = period
  return Math.max(0, Math.min(periodMs / 1_000, 1 / pace) / 2 - waitSeconds)
}

/** By hours of the clock, of which the first and the last may be parts. A step that reaches into the next hour counts in both by its time. */
function byHour(steps: readonly Step[], firstMs: number, nowMs: number, endMs: number): PreviewHour[] {
  // Steps are in order, as hours are: those that ended before an hour are not looked at again.
  let first = 0
  return Array.from({ length: Math.ceil((endMs - firstMs) / hourMs) }, (_, hour) => {
    const startMs = firstMs + hour * hourMs
    const [leastMs, mostMs] = [Math.max(startMs, nowMs), Math.min(startMs + hourMs, endMs)]
    let [polls, alerts, lags] = [0, 0, 0]
    for (let at = first; ; at++) {
      const step = steps[at]
      if (!step || step.atMs >= mostMs) break
      const stepMs = step.seconds * 1_000
      const [fromMs, untilMs] = [Math.max(step.atMs, leastMs), Math.min(step.atMs + stepMs, mostMs)]
      if (step.atMs + stepMs <= leastMs) first = at + 1
      if (untilMs <= fromMs) continue
      const share = (untilMs - fromMs) / stepMs
      polls += share * step.polls
      alerts += share * step.alerts
      lags += share * step.alerts * step.lagSeconds
    }
    return { startMs, alerts, polls, lagSeconds: lags / Math.max(1e-9, alerts) }
  })
}

/** When the hour began, on the clock of the zone: a plan that is drawn from there has that hour whole. */
export function hourStartMs(nowMs: number, options: ScheduleOptions): number {
  return nowMs - (wallTime(nowMs, profileZone(options)) % hourMs)
}

const hourMs = 3_600_000
