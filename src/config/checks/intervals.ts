import type * as z from 'zod'
import { durationText, formatDuration } from '../../lib/duration.ts'
import { usualIntervals, wholeSeconds } from '../../schedule/schedule.ts'
import type { budgetSchema, pollSchema } from '../source.ts'

/**
 * Checks whether the pace of polling fits the budget; the messages show the arithmetic. Pure. A poll costs one unit and
 * one request. A pace that contradicts itself is refused. A pace that spends the budget before the day ends is only a
 * warning: the ledger never overspends, and a person may want just that.
 */
type Budget = z.output<typeof budgetSchema>
type Poll = z.output<typeof pollSchema>
type Key = 'every' | 'minInterval' | 'maxInterval'

export interface IntervalProblem {
  readonly severity: 'mistake' | 'warning'
  readonly key: Key
  readonly message: string
  readonly remedy: string
}

const dayMs = 86_400_000
/** Shorter pauses are not possible: a poll takes longer. */
const intervalMsMin = 50

/** Fills intervals that the config leaves out: the usual ones for the budget, adjusted to those that are given. */
export function withIntervals(budget: Budget, poll: Poll) {
  const { every, ...given } = poll
  const { minIntervalMs: shortest, maxIntervalMs: longest } = usualIntervals(budget)
  const {
    minInterval = Math.min(shortest, every ?? shortest, given.maxInterval ?? shortest),
    maxInterval = Math.max(longest, every ?? 0, given.minInterval ?? 0),
    ...rest
  } = given
  return { minInterval, maxInterval, ...(every === undefined ? {} : { every }), ...rest }
}

export function intervalProblems(budget: Budget, given: Poll): IntervalProblem[] {
  const keys = (['every', 'minInterval', 'maxInterval'] as const).filter((key) => given[key] !== undefined)
  const tooShort = keys.flatMap((key) => shortProblem(key, given[key] ?? 0, budget))
  if (tooShort.length > 0) return tooShort
  const contradiction = orderProblem(given)
  return contradiction === undefined
    ? keys.flatMap((key) => budgetProblem(key, given, budget))
    : [contradiction]
}

function budgetProblem(key: Key, given: Poll, budget: Budget): IntervalProblem[] {
  const intervalMs = given[key] ?? 0
  switch (key) {
    case 'every':
      return [rateProblem(key, intervalMs, budget) ?? unitsProblem(key, intervalMs, budget) ?? []].flat()
    case 'minInterval':
      return [rateProblem(key, intervalMs, budget) ?? []].flat()
    case 'maxInterval':
      // A fixed pace never waits for maxInterval, so only the plan must be able to afford it.
      return given.every === undefined ? [unitsProblem(key, intervalMs, budget) ?? []].flat() : []
  }
}

function shortProblem(key: Key, intervalMs: number, budget: Budget): IntervalProblem[] {
  if (intervalMs >= intervalMsMin) return []
  const message =
    intervalMs === 0
      ? 'an interval of 0 would never pause'
      : `expected at least ${formatDuration(intervalMsMin)}`
  const remedy = `${durationText(shortestFor(key, budget))} is the shortest that fits`
  return [{ severity: 'mistake', key, message, remedy }]
}

/** It must be minInterval ≤ every ≤ maxInterval. Intervals that are left out are adjusted to the others. */
function orderProblem({ every, minInterval, maxInterval }: Poll): IntervalProblem | undefined {
  const problem = (key: Key, message: string): IntervalProblem => ({
    severity: 'mistake',
    key,
    message,
    remedy: 'change one of the two',
  })
  const never = (bound: string, ms: number) =>
    problem('every', `a fixed pace ${bound} of ${formatDuration(ms)} is never reached`)
  if (every !== undefined && minInterval !== undefined && every < minInterval)
    return never('below the minInterval', minInterval)
  if (every !== undefined && maxInterval !== undefined && every > maxInterval)
    return never('beyond the maxInterval', maxInterval)
  if (minInterval === undefined || maxInterval === undefined || minInterval <= maxInterval) return undefined
  const [low, high] = [formatDuration(minInterval), formatDuration(maxInterval)]
  return problem('maxInterval', `minInterval (${low}) is longer than maxInterval (${high})`)
}

function rateProblem(key: Key, intervalMs: number, budget: Budget): IntervalProblem | undefined {
  const { requestsPerMinute } = budget
  if (intervalMs >= intervalOf(requestsPerMinute, 60_000)) return undefined
  const wanted = `one poll in ${formatDuration(intervalMs)} is ${round(60_000 / intervalMs)} requests a minute`
  return {
    severity: 'warning',
    key,
    message: `${wanted}, and requestsPerMinute is ${requestsPerMinute}: polls will wait for it`,
    remedy: `${durationText(shortestFor(key, budget))} is the shortest that fits`,
  }
}

function unitsProblem(key: Key, intervalMs: number, budget: Budget): IntervalProblem | undefined {
  const { unitsPerDay } = budget
  const units = dayMs / intervalMs
  if (units <= unitsPerDay) return undefined
  const wanted = `one poll in ${formatDuration(intervalMs)} is ${round(units)} units a day (86400 s / ${intervalMs / 1_000} s)`
  // A plan spreads what there is over the day; a fixed pace goes on until nothing is left.
  const effect =
    key === 'every'
      ? `they are spent after ${formatDuration(unitsPerDay * intervalMs)}`
      : `gaps will be about ${formatDuration(dayMs / unitsPerDay)}`
  return {
    severity: 'warning',
    key,
    message: `${wanted}, and unitsPerDay is ${unitsPerDay}: ${effect}`,
    remedy: `${durationText(intervalOf(unitsPerDay, dayMs))} is the shortest that fits, or raise unitsPerDay`,
  }
}

/** The shortest interval that the budget allows. */
function shortestFor(key: Key, { requestsPerMinute, unitsPerDay }: Budget): number {
  const units = key === 'minInterval' ? 0 : intervalOf(unitsPerDay, dayMs)
  return Math.max(intervalMsMin, intervalOf(requestsPerMinute, 60_000), units)
}

/** The shortest interval that fits `count` times into `spanMs`; above one second, in whole seconds. */
function intervalOf(count: number, spanMs: number): number {
  return wholeSeconds(spanMs / count)
}

function round(value: number): string {
  return value >= 100 ? String(Math.ceil(value)) : String(Number(value.toFixed(1)))
}
