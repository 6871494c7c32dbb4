import { type DayForecast, stepMs, stepsPerHalfHour } from '../forecast/day-forecast.ts'
import { dayLevel, memorySeconds, type Recent, sharesOf } from '../forecast/recent.ts'

/**
 * The rest of a budget day, cut into spans: short ones for the next ten minutes, in which recent events fade, steps of
 * the forecast until the next half hour, and half hours from there on. Each span has the events that are expected and
 * the demand for polls that follows from them.
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
  /** The demand that the mean rate alone would have. */
  readonly meanDemand: number
}

export interface Expected {
  /** Events a second. */
  readonly rates: number[]
  /** For polls, without unit. */
  readonly demands: number[]
}

/** Recent events are looked at closely for ten minutes: the shortest memory of them is one minute. */
const nearSeconds = [1, 2, 4, 8, 15, 30, 30, 60, 90, 120, 240]
/** Memories that are so many times older are gone. */
const fadedTimes = 12

export function outlookAt(forecast: DayForecast, recent: Recent, exponent: number, fromMs: number): Outlook {
  const { rates: base, demands: baseDemands, seconds, middleSeconds } = cutDay(forecast, fromMs)
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
  return { fromMs, seconds, middleSeconds, profile, profileRecent, meanRecent, meanDemand }
}

/** The span that holds an instant; the first or the last one for instants outside. */
export function spanAt({ fromMs, seconds }: Outlook, atMs: number): number {
  let left = (atMs - fromMs) / 1_000
  let span = 0
  while (span < seconds.length - 1 && left >= (seconds[span] ?? 0)) left -= seconds[span++] ?? 0
  return span
}

/** A power is dear, and far ahead most rates are what they were without recent events. */
function scaled(demand: number, factor: number, exponent: number): number {
  return Math.abs(factor - 1) < 1e-3 ? demand : demand * factor ** exponent
}

interface Cut {
  readonly seconds: number[]
  readonly middleSeconds: number[]
  readonly rates: number[]
  readonly demands: number[]
}

function cutDay({ day, rates, demands, halfHours }: DayForecast, fromMs: number): Cut {
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
  for (const seconds of nearSeconds) {
    if (at >= day.endMs) break
    const step = Math.min(rates.length - 1, Math.floor((at + seconds * 500 - day.startMs) / stepMs))
    add(at + seconds * 1_000, rates[step] ?? 0, demands[step] ?? 0)
  }
  while (at < day.endMs) {
    const step = Math.floor((at - day.startMs) / stepMs)
    const half = Math.floor(step / stepsPerHalfHour)
    const isWhole = at === day.startMs + half * stepsPerHalfHour * stepMs
    if (isWhole) add(at + stepsPerHalfHour * stepMs, halfHours.rates[half] ?? 0, halfHours.demands[half] ?? 0)
    else add(day.startMs + (step + 1) * stepMs, rates[step] ?? 0, demands[step] ?? 0)
  }
  return cut
}
