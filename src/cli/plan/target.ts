import { parseDuration } from '../../lib/duration.ts'
import { UserError } from '../../lib/errors.ts'
import { createSchedule } from '../../schedule/create.ts'
import { fewUnits } from '../../schedule/pace/few.ts'
import { previewPlan } from '../../schedule/preview.ts'
import type { ScheduleOptions } from '../../schedule/schedule.ts'
import {
  type Lags,
  lagMeasures,
  simulate,
  smallestBudget,
  summarizeLags,
  type Target,
  type TargetAnswer,
} from '../../schedule/simulate.ts'
import { UsageError } from '../arguments/usage.ts'
import { print } from '../output/output.ts'
import { table } from '../output/table.ts'
import { unknownText } from './picture.ts'

/** `plan --target`: the smallest budget that reaches a lag, computed from a trace or from what the bridge learned. */

/** Parses `p95=10s` to a measure and seconds. */
export function targetOption(text: string): Target {
  const [name, span = '', ...rest] = text.split('=')
  const measure = lagMeasures.find((each) => each === name)
  const ms = rest.length === 0 ? parseDuration(span) : undefined
  if (measure === undefined || ms === undefined || ms <= 0)
    throw new UsageError(
      `--target: "${text}" is no target such as p95=10s; mean, p50, p95 and p99 can be named.`,
    )
  return { measure, seconds: ms / 1_000 }
}

/** Larger than any budget that the API grants, so larger ones are not tried. */
const unitsMax = 1_000_000
/** A simulation takes about 20 us a poll: so all budgets together are tried within a minute or two. */
const simulatedPollsMax = 600_000
const dayMs = 86_400_000
const weekHours = 7 * 24

/**
 * Simulates the trace with each budget; when the budget is large, only the last days of it. Then the plan is taught what came before:
 * one that begins with nothing waits longer in its first days, and 13 days of a market asked for a tenth more units than 42 did.
 */
export function targetByTrace(
  target: Target,
  times: readonly number[],
  optionsAt: OptionsAt,
  pollsMax = simulatedPollsMax,
): TargetAnswer {
  return smallestBudget(target, unitsMax, (units) => {
    const days = Math.max(3, pollsMax / units)
    const fromMs = (times.at(-1) ?? 0) - days * dayMs
    const first = times.findIndex((at) => at > fromMs)
    const options = optionsAt(units)
    const schedule = createSchedule(options, undefined)
    schedule.learnHistory(times.slice(0, first))
    return summarizeLags(simulate(times.slice(first), schedule, options).lagsMs)
  })
}

/** Computes the plan of a week from the learned profile, with each budget. */
export function targetByProfile(
  target: Target,
  learned: unknown,
  nowMs: number,
  optionsAt: OptionsAt,
): TargetAnswer {
  // Sources that share an account have few units each where it has more.
  const known = new Map<number, Lags>()
  const lagAt = (units: number) => {
    const options = optionsAt(units)
    const lag = known.get(options.unitsPerDay) ?? previewPlan(options, learned, nowMs, weekHours).lag
    known.set(options.unitsPerDay, lag)
    return lag
  }
  let fewMax = 0
  while (fewMax < unitsMax && optionsAt(fewMax + 1).unitsPerDay <= fewUnits) fewMax++
  return smallestBudget(target, unitsMax, lagAt, fewMax)
}

/** Returns the options of the schedule for this budget. */
type OptionsAt = (unitsPerDay: number) => ScheduleOptions

export function targetJson(
  target: Target,
  { unitsPerDay, budgets }: TargetAnswer,
  name?: string,
  isKnown = true,
): object {
  return {
    ...(name === undefined ? {} : { source: name }),
    target,
    unitsPerDay: unitsPerDay ?? null,
    budgets,
    ...(isKnown ? {} : { note: unknownText }),
  }
}

/** Returns whether a budget reaches the target. */
export function printTarget(
  target: Target,
  { unitsPerDay, budgets }: TargetAnswer,
  name?: string,
  isKnown = true,
): boolean {
  const rows = budgets.map(({ unitsPerDay: units, lag }) => [
    `${units}${units === unitsPerDay ? ' *' : ''}`,
    ...lagMeasures.map((measure) => `${lag[measure].toFixed(1)} s`),
  ])
  if (!isKnown) print(`${unknownText}\n`)
  print(table(['UNITS A DAY', ...lagMeasures.map((measure) => measure.toUpperCase())], rows))
  const whose = name === undefined ? '' : `${name}: `
  const fewest =
    unitsPerDay === undefined ? 'no budget reaches' : `${unitsPerDay} units a day are the fewest that reach`
  print(`\n${whose}${fewest} a ${textOf(target)}.`)
  return unitsPerDay !== undefined
}

/** Of sources, or of a trace, which has no name. */
export function notReached(target: Target, names: readonly string[] = []): UserError {
  const whose = names.length === 0 ? '' : ` for ${names.join(', ')}`
  return new UserError(
    `--target: no budget up to ${unitsMax} units a day reaches a ${textOf(target)}${whose}; the intervals of poll are the limit.`,
  )
}

function textOf({ measure, seconds }: Target): string {
  return `${measure} of ${seconds} s`
}
