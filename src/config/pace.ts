import type * as z from 'zod'
import { formatDuration } from '../lib/duration.ts'
import { asDuration } from './duration-text.ts'
import type { budgetSchema, pollSchema } from './source.ts'

/**
 * Whether the pace of polling fits the budget, said with the arithmetic. Pure. A poll costs one unit and one request.
 * What is refused here could never be kept at run time: the ledger would stop the source before the day ends.
 */
type Budget = z.output<typeof budgetSchema>
type Poll = z.output<typeof pollSchema>
type Key = 'every' | 'minInterval' | 'maxInterval'

export interface PaceProblem {
  readonly key: Key
  readonly message: string
  readonly remedy: string
}

const dayMs = 86_400_000
/** 250 ms is the API's ceiling of 240 requests a minute. */
const minIntervalMs = 250
const usual = { minIntervalMs: 2_000, maxIntervalMs: 900_000 }

/** The intervals that hold when the config names none: as fast and as slow as budget and fixed pace let the usual be. */
export function withIntervals(budget: Budget, poll: Poll) {
  const shortest = Math.max(usual.minIntervalMs, intervalOf(budget.requestsPerMinute, 60_000))
  const longest = Math.max(usual.maxIntervalMs, intervalOf(budget.unitsPerDay, dayMs), poll.every ?? 0)
  const { minInterval = Math.min(shortest, poll.every ?? shortest), maxInterval = longest, ...rest } = poll
  return { minInterval, maxInterval, ...rest }
}

export function paceProblems(budget: Budget, given: Poll): PaceProblem[] {
  const { every } = given
  const problems: (PaceProblem | undefined)[] = []
  if (every !== undefined)
    problems.push(rateProblem('every', every, budget) ?? unitsProblem('every', every, budget))
  if (given.minInterval !== undefined) problems.push(rateProblem('minInterval', given.minInterval, budget))
  // A fixed pace never waits for maxInterval, so only the plan must be able to afford it.
  if (given.maxInterval !== undefined && every === undefined)
    problems.push(unitsProblem('maxInterval', given.maxInterval, budget))
  const found = problems.filter((problem) => problem !== undefined)
  const order = found.length === 0 ? orderProblem(withIntervals(budget, given), given) : undefined
  return order === undefined ? found : [order]
}

/** The three intervals must stand in order: minInterval, every, maxInterval. */
function orderProblem(filled: ReturnType<typeof withIntervals>, given: Poll) {
  const { minInterval, maxInterval } = filled
  const { every } = given
  const problem = (key: Key, message: string): PaceProblem => ({
    key,
    message,
    remedy: 'change one of the two',
  })
  if (every !== undefined && every < minInterval)
    return problem(
      'every',
      `a fixed pace below the minInterval of ${formatDuration(minInterval)} is never reached`,
    )
  if (every !== undefined && every > maxInterval)
    return problem(
      'every',
      `a fixed pace beyond the maxInterval of ${formatDuration(maxInterval)} is never reached`,
    )
  if (minInterval <= maxInterval) return undefined
  const key = given.maxInterval === undefined ? 'minInterval' : 'maxInterval'
  const [low, high] = [formatDuration(minInterval), formatDuration(maxInterval)]
  return problem(key, `minInterval (${low}) is longer than maxInterval (${high})`)
}

function rateProblem(key: Key, intervalMs: number, budget: Budget): PaceProblem | undefined {
  const shortestMs = Math.max(minIntervalMs, intervalOf(budget.requestsPerMinute, 60_000))
  if (intervalMs >= shortestMs) return undefined
  const alsoMs = key === 'minInterval' ? 0 : intervalOf(budget.unitsPerDay, dayMs)
  const remedy = `${asDuration(Math.max(shortestMs, alsoMs))} is the shortest that fits`
  if (intervalMs === 0) return { key, message: neverPauses, remedy }
  const wanted = `one poll in ${formatDuration(intervalMs)} is ${round(60_000 / intervalMs)} requests a minute`
  const { requestsPerMinute } = budget
  return { key, message: `${wanted}, and requestsPerMinute is ${requestsPerMinute}`, remedy }
}

function unitsProblem(key: Key, intervalMs: number, budget: Budget): PaceProblem | undefined {
  const units = dayMs / intervalMs
  if (intervalMs > 0 && units <= budget.unitsPerDay) return undefined
  const remedy = `${asDuration(intervalOf(budget.unitsPerDay, dayMs))} is the shortest that fits, or raise unitsPerDay`
  if (intervalMs === 0) return { key, message: neverPauses, remedy }
  const wanted = `one poll in ${formatDuration(intervalMs)} is ${round(units)} units a day (86400 s / ${intervalMs / 1_000} s)`
  return { key, message: `${wanted}, and unitsPerDay is ${budget.unitsPerDay}`, remedy }
}

const neverPauses = 'an interval of 0 would never pause'

/** The shortest interval, in whole seconds where it is longer than one, of which `count` fit into `spanMs`. */
function intervalOf(count: number, spanMs: number): number {
  const ms = Math.ceil(spanMs / count)
  return ms <= 1_000 ? ms : Math.ceil(ms / 1_000) * 1_000
}

function round(value: number): string {
  return value >= 100 ? String(Math.ceil(value)) : String(Number(value.toFixed(1)))
}
