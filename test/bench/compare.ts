import { scheduleOptionsOf, usualSource } from '../../src/app/source/schedule-options.ts'
import { createSchedule } from '../../src/schedule/create.ts'
import { evenLags, type LagSummary, simulate, summarizeLags } from '../../src/schedule/simulate.ts'
import { backOff, lagsOf, marketHours, seasonalRate, trueRate } from './policies.ts'
import { createTrace, type ScenarioName } from './traces.ts'

/** One scenario at one budget: ours from an empty profile, side by side with the others on the same alerts. */
export interface Comparison {
  readonly scenario: ScenarioName
  readonly unitsPerDay: number
  readonly alerts: number
  /** Mean lags in seconds; what an alert waits that comes after the last poll of a day counts in full. */
  readonly mean: Readonly<Record<'even' | 'hours' | 'backOff' | 'ours' | 'seasonal' | 'true', number>>
  readonly ours: LagSummary
  readonly even: LagSummary
  /** Of ours, over whole budget days. */
  readonly unitsPerDayMin: number
  readonly unitsPerDayMax: number
  readonly gapSecondsMax: number
}

const allOthers = { hours: marketHours, backOff, seasonal: seasonalRate, true: trueRate }

/** The pool of several seeds: rare alerts say little on their own. The mean of a policy that is not asked for is 0. */
export function compare(
  scenario: ScenarioName,
  unitsPerDay: number,
  seeds: readonly number[],
  days = 70,
  others: Partial<typeof allOthers> = allOthers,
): Comparison {
  const options = benchOptions(unitsPerDay)
  const lags = { even: [], hours: [], backOff: [], ours: [], seasonal: [], true: [] } as Record<
    keyof Comparison['mean'],
    Float64Array[]
  >
  const spent: number[] = []
  let gapMs = 0
  for (const seed of seeds) {
    const trace = createTrace(scenario, seed, days)
    const endMs = trace.startMs + days * dayMs
    const ours = simulate(trace.times, createSchedule(options, undefined), options)
    const perDay = new Map<number, number>()
    for (const [index, at] of ours.polls.entries()) {
      const day = Math.floor((at - trace.startMs) / dayMs)
      perDay.set(day, (perDay.get(day) ?? 0) + 1)
      gapMs = Math.max(gapMs, at - (ours.polls[index - 1] ?? at))
    }
    spent.push(...[...perDay.values()].slice(0, -1))
    lags.ours.push(ours.lagsMs)
    lags.even.push(evenLags(trace.times, options))
    for (const [name, policy] of Object.entries(others))
      lags[name as keyof typeof allOthers].push(lagsOf(trace.times, policy(trace, options), endMs))
  }
  const summary = (name: keyof typeof lags) => summarizeLags(pool(lags[name]))
  const [ours, even] = [summary('ours'), summary('even')]
  return {
    scenario,
    unitsPerDay,
    alerts: lags.ours.reduce((sum, each) => sum + each.length, 0),
    mean: {
      even: even.mean,
      hours: summary('hours').mean,
      backOff: summary('backOff').mean,
      ours: ours.mean,
      seasonal: summary('seasonal').mean,
      true: summary('true').mean,
    },
    ours,
    even,
    unitsPerDayMin: Math.min(...spent),
    unitsPerDayMax: Math.max(...spent),
    gapSecondsMax: gapMs / 1_000,
  }
}

/** What a config that names nothing but the units comes to, with the exchange's hours, which `wrongprior` and `shift` prove wrong. */
export const benchOptions = (unitsPerDay: number) => scheduleOptionsOf(usualSource(unitsPerDay))

const dayMs = 86_400_000

function pool(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
