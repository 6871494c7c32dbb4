import { wallTime } from '../../lib/zone.ts'
import type { BudgetDay, ScheduleOptions } from '../schedule.ts'
import { binMs, binOf, forecastDay, type Profile, profileZone, rowOf } from './profile.ts'

/**
 * What the last hours add to the profile. The unit is the event: alerts that fire within three seconds of each other are
 * one event, for no poll could have come in between, and a batch of thirty says no more of the next minute than one
 * alert does. A rate is a sum: a share of the base rate (the profile, or the day's mean) and shares of three fading
 * averages of the events that came. The shares follow how many of the events each part predicted (the expectation step of
 * the EM algorithm for a self-exciting process; Hawkes 1971).
 */
export interface Recent {
  /** When the last poll was taken in; 0 before the first. */
  atMs: number
  /** Events a second at `atMs`, one average a memory. */
  readonly averages: number[]
  /** Events that each part predicted, fading: the base, then the averages; once with the profile as the base, once with the mean. */
  readonly credit: { readonly profile: number[]; readonly mean: number[] }
  /** Events of today, seen and expected by the profile. */
  readonly today: { seen: number; expected: number }
  /** The event that alerts were counted for last: when it began, and how many of its alerts counted. */
  readonly event: { startMs: number; counted: number }
}

/** Seconds until an average has faded to a third. */
export const memorySeconds = [60, 420, 3_600] as const
const eventMs = 3_000
/** Where so many events are usual within three seconds, each of twice as many counts: a feed of 5,000 a day has no batches. */
const usualFactor = 2
const youngCredit = [33, 5, 2, 3]
const creditKept = 0.8
/** The most events that credit is kept of: a burst of thousands must not decide for weeks what each part is credited with. */
const creditMax = 450
/**
 * Events that a day's level starts from: a day on which nothing has come yet is still expected to be one like others. With 3 a
 * two-hour window at a random hour had 0.73 of even, with 30 0.54, with 1e9 0.39; but a giant day from midnight to midnight 0.85,
 * 0.94 and 1.06 (500 units, six weeks, seeds 101 and 102).
 */
const dayCaution = 30

export function emptyRecent(): Recent {
  return {
    atMs: 0,
    averages: memorySeconds.map(() => 0),
    credit: { profile: [...youngCredit], mean: [...youngCredit] },
    today: { seen: 0, expected: 0 },
    event: { startMs: 0, counted: 0 },
  }
}

/** A new day starts level, and credit of late is weighed against what is usual. */
export function startDay({ credit, today }: Recent): void {
  for (const each of [credit.profile, credit.mean])
    for (const [part, young] of youngCredit.entries())
      each[part] = creditKept * (each[part] ?? 0) + (1 - creditKept) * young
  today.seen = 0
  today.expected = 0
}

/** The alerts, oldest first, that count as events; `rateAt` is the rate that was expected of each. */
export function eventsOf(
  event: Recent['event'],
  firedAtMs: readonly number[],
  rateAt: (atMs: number) => number,
): number[] {
  return firedAtMs.filter((at) => {
    if (at < event.startMs || at >= event.startMs + eventMs) {
      event.startMs = at
      event.counted = 1
      return true
    }
    if (event.counted >= (usualFactor * rateAt(at) * eventMs) / 1_000) return false
    event.counted++
    return true
  })
}

/** Takes in the events that a poll found, and that the profile had expected so many. */
export function noteEvents(recent: Recent, atMs: number, events: readonly number[], expected: number): void {
  const seconds = Math.max(0, atMs - recent.atMs) / 1_000
  for (const [k, memory] of memorySeconds.entries()) {
    let average = (recent.averages[k] ?? 0) * Math.exp(-seconds / memory)
    for (const at of events) average += Math.exp(-Math.max(0, atMs - at) / 1_000 / memory) / memory
    recent.averages[k] = average
  }
  recent.today.seen += events.length
  recent.today.expected += expected
  recent.atMs = atMs
}

/** Credits the parts of both rates with their shares of an event, by what they knew at the last poll. */
export function creditParts(recent: Recent, profileRate: number, meanRate: number, seconds: number): void {
  const level = dayLevel(recent)
  const averages = recent.averages.map((value, k) => value * Math.exp(-seconds / (memorySeconds[k] ?? 1)))
  creditOne(recent.credit.profile, [profileRate * level, ...averages])
  creditOne(recent.credit.mean, [meanRate * level, ...averages])
}

/** Seen against expected, cautious while little was expected. */
export function dayLevel({ today }: Recent): number {
  return (dayCaution + today.seen) / (dayCaution + today.expected)
}

/** The share of each part, summing to 1. */
function sharesOf(credit: readonly number[]): number[] {
  const total = credit.reduce((sum, each) => sum + each, 0)
  return credit.map((each) => each / total)
}

function creditOne(credit: number[], rates: readonly number[]): void {
  const predicted = rates.map((rate, part) => rate * (credit[part] ?? 0))
  const total = predicted.reduce((sum, each) => sum + each, 0)
  if (total <= 0) return
  const creditSum = credit.reduce((sum, each) => sum + each, 0) + 1
  const kept = Math.min(1, creditMax / creditSum)
  for (let part = 0; part < credit.length; part++)
    credit[part] = kept * ((credit[part] ?? 0) + (predicted[part] ?? 0) / total)
}

/** What the profile expects of one budget day, in steps of five minutes from its start. */
export interface DayForecast {
  readonly day: BudgetDay
  /** Events a second. */
  readonly rates: Float64Array
  /** The same to the power of `exponent`: the demand for polls. */
  readonly demands: Float64Array
  /** Means of both over half hours, the last of which may be shorter. */
  readonly halfHours: { readonly rates: Float64Array; readonly demands: Float64Array }
  /** The mean rate of the day: the forecast of who knows nothing of the time of day. */
  readonly meanRate: number
  /** Events of each of the last days, in the same steps. */
  readonly lately: readonly Float64Array[]
}

const stepMs = binMs
export const stepsPerHalfHour = 6

export function forecastBudgetDay(profile: Profile, day: BudgetDay, options: ScheduleOptions): DayForecast {
  const zone = profileZone(options)
  const forecasts = new Map<number, Float64Array>()
  const rates = new Float64Array(Math.ceil((day.endMs - day.startMs) / stepMs))
  const lately = profile.lately.map(() => new Float64Array(rates.length))
  for (let step = 0; step < rates.length; step++) {
    const wall = wallTime(day.startMs + step * stepMs, zone)
    const row = rowOf(wall, options)
    const forecast = forecasts.get(row) ?? forecastDay(profile, row, options)
    forecasts.set(row, forecast)
    rates[step] = forecast[binOf(wall)] ?? 0
    for (const [ago, events] of lately.entries())
      events[step] = (profile.lately[ago]?.counts[binOf(wall)] ?? 0) / 1_000
  }
  const meanRate = rates.reduce((sum, rate) => sum + rate, 0) / rates.length
  const demands = rates.map((rate) => rate ** options.exponent)
  const halfHours = { rates: halfHourMeans(rates), demands: halfHourMeans(demands) }
  return { day, rates, demands, halfHours, meanRate, lately }
}

function halfHourMeans(steps: Float64Array): Float64Array {
  return Float64Array.from({ length: Math.ceil(steps.length / stepsPerHalfHour) }, (_, half) => {
    const part = steps.subarray(half * stepsPerHalfHour, (half + 1) * stepsPerHalfHour)
    return part.reduce((sum, value) => sum + value, 0) / part.length
  })
}

/** The forecast at an instant; that of the first or the last step for instants outside the day. */
export function rateAt({ day, rates }: DayForecast, atMs: number): number {
  const step = Math.floor((atMs - day.startMs) / stepMs)
  return rates[Math.min(rates.length - 1, Math.max(0, step))] ?? 0
}

/** Events that the profile expects between two instants. */
export function expectedBetween(forecast: DayForecast, fromMs: number, toMs: number): number {
  const { startMs } = forecast.day
  let sum = 0
  for (let at = fromMs; at < toMs; ) {
    const end = Math.min(toMs, startMs + (Math.floor((at - startMs) / stepMs) + 1) * stepMs)
    sum += (rateAt(forecast, at) * (end - at)) / 1_000
    at = end
  }
  return sum
}

/**
 * The rest of a budget day, cut into spans: short ones for the next ten minutes, in which recent events fade, steps of
 * the forecast until the next half hour, and half hours from there on. Each span has the events that are expected and
 * the demand for polls that follows from them. A fine one has nothing but steps.
 */
export interface Outlook {
  readonly fromMs: number
  readonly seconds: readonly number[]
  /** From `fromMs` to the middle of each span. */
  readonly middleSeconds: readonly number[]
  /** By the profile alone, at today's level. */
  readonly profile: Expected
  /** By the profile and the recent events. */
  readonly profileRecent: Expected
  /** By the mean rate of the day and the recent events. */
  readonly meanRecent: Expected
}

interface Expected {
  /** Events a second. */
  readonly rates: number[]
  /** For polls, without unit. */
  readonly demands: number[]
}

/** Recent events are looked at closely for ten minutes: the shortest memory of them is one minute. */
const nearSeconds = [1, 2, 4, 8, 15, 30, 30, 60, 90, 120, 240]
/** How far ahead of a half hour its steps are told apart. */
export const nearSecondsMax = nearSeconds.reduce((sum, each) => sum + each)
/** Memories that are so many times older are gone. */
const fadedTimes = 12

export function outlookAt(
  forecast: DayForecast,
  recent: Recent,
  exponent: number,
  fromMs: number,
  isFine = false,
): Outlook {
  const { rates: base, demands: baseDemands, seconds, middleSeconds } = cutDay(forecast, fromMs, isFine)
  const level = dayLevel(recent)
  const levelDemand = level ** exponent
  const empty = (): Expected => ({ rates: [], demands: [] })
  const [profile, profileRecent, meanRecent] = [empty(), empty(), empty()]
  const profileShares = sharesOf(recent.credit.profile)
  const meanShares = sharesOf(recent.credit.mean)
  const meanRate = forecast.meanRate * level
  const meanDemand = meanRate ** exponent
  const since = Math.max(0, fromMs - recent.atMs) / 1_000
  for (let span = 0; span < seconds.length; span++) {
    const baseRate = (base[span] ?? 0) * level
    const baseDemand = (baseDemands[span] ?? 0) * levelDemand
    let followed = baseRate
    let adrift = meanRate
    const age = since + (middleSeconds[span] ?? 0)
    for (let k = 0; k < memorySeconds.length; k++) {
      const ages = age / (memorySeconds[k] ?? 1)
      if (ages > fadedTimes) continue
      const left = Math.exp(-ages)
      const average = recent.averages[k] ?? 0
      followed += (profileShares[k + 1] ?? 0) * left * (average - baseRate)
      adrift += (meanShares[k + 1] ?? 0) * left * (average - meanRate)
    }
    profile.rates.push(baseRate)
    profile.demands.push(baseDemand)
    profileRecent.rates.push(followed)
    profileRecent.demands.push(scaled(baseDemand, followed / baseRate, exponent))
    meanRecent.rates.push(adrift)
    meanRecent.demands.push(scaled(meanDemand, adrift / meanRate, exponent))
  }
  return { fromMs, seconds, middleSeconds, profile, profileRecent, meanRecent }
}

/** The span that holds an instant; the first or the last one for instants outside. */
export function spanAt({ fromMs, seconds }: Outlook, atMs: number): number {
  let left = (atMs - fromMs) / 1_000
  let span = 0
  while (span < seconds.length - 1 && left >= (seconds[span] ?? 0)) left -= seconds[span++] ?? 0
  return span
}

/** A power takes long to compute, and far ahead recent events change few rates. */
function scaled(demand: number, factor: number, exponent: number): number {
  return Math.abs(factor - 1) < 1e-3 ? demand : demand * factor ** exponent
}

interface Cut {
  readonly seconds: number[]
  readonly middleSeconds: number[]
  readonly rates: number[]
  readonly demands: number[]
}

function cutDay({ day, rates, demands, halfHours }: DayForecast, fromMs: number, isFine: boolean): Cut {
  const cut: Cut = { seconds: [], middleSeconds: [], rates: [], demands: [] }
  let at = fromMs
  const add = (untilMs: number, rate: number, demand: number) => {
    const endMs = Math.min(untilMs, day.endMs)
    cut.seconds.push((endMs - at) / 1_000)
    cut.middleSeconds.push((at + endMs - 2 * fromMs) / 2_000)
    cut.rates.push(rate)
    cut.demands.push(demand)
    at = endMs
  }
  for (const seconds of isFine ? [] : nearSeconds) {
    if (at >= day.endMs) break
    const step = Math.min(rates.length - 1, Math.floor((at + seconds * 500 - day.startMs) / stepMs))
    add(at + seconds * 1_000, rates[step] ?? 0, demands[step] ?? 0)
  }
  while (at < day.endMs) {
    const step = Math.floor((at - day.startMs) / stepMs)
    const half = Math.floor(step / stepsPerHalfHour)
    const isWhole = !isFine && at === day.startMs + half * stepsPerHalfHour * stepMs
    if (isWhole) add(at + stepsPerHalfHour * stepMs, halfHours.rates[half] ?? 0, halfHours.demands[half] ?? 0)
    else add(day.startMs + (step + 1) * stepMs, rates[step] ?? 0, demands[step] ?? 0)
  }
  return cut
}
