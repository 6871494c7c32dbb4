import type { SweepReason } from '../intake/sweep.ts'
import type { BudgetDay, DecisionReason } from '../schedule/schedule.ts'
import { firedAtOf } from '../walk/scope.ts'
import type { NextPoll } from './next-poll.ts'
import type { ReadPage } from './settings.ts'

/** What units that polls do not need are used for: late rows deep in the feed (sweep), and pages of the past on a cold start. */

/**
 * How many pages a sweep may read now; pure. A sweep uses only units that would expire: in the last half hour before the
 * reset, those that the polls until then do not need, up to a share of the day's. It never delays a poll that is due, and
 * never runs while anything is wrong or behind.
 */
export function sweepPages(situation: {
  readonly nowMs: number
  readonly day: BudgetDay
  readonly unitsLeft: number
  /** Units that are left of the share of sweeps. */
  readonly shareLeft: number
  /** How many other sources, with a learned pace, have the same units: each plans to use all. */
  readonly planners: () => number
  readonly nextPoll: NextPoll
  /** When the last poll began; null before the first. */
  readonly lastStartMs: number | null
  /** Nothing failed, nothing is behind. */
  readonly healthy: boolean
}): number {
  const { nowMs, day, unitsLeft, shareLeft, planners, nextPoll, lastStartMs, healthy } = situation
  const leftMs = day.endMs - nowMs
  if (!healthy || lastStartMs === null || nextPoll.state !== 'waiting') return 0
  if (leftMs > windowMs || leftMs < endGuardMs || nextPoll.atMs - nowMs < pauseMsMin) return 0
  const planMs = Math.max(1_000, nextPoll.atMs - lastStartMs)
  // Where nothing is expected, a poll a minute is enough for the few minutes that are left of the day.
  const intervalMs = quiet.has(nextPoll.nextReason) ? Math.max(planMs, quietIntervalMs) : planMs
  const others = planners() * Math.ceil(leftMs / quietIntervalMs)
  const spare = unitsLeft - Math.ceil(leftMs / intervalMs) - others - keptUnits
  return Math.max(0, Math.min(spare, shareLeft, pagesMax))
}

/** What sweeps may still spend of the day; at least one page, also of the smallest budget. */
export function sweepShareLeft({ budget, byPurpose }: SweepBudget, share: number): number {
  return Math.max(0, Math.ceil(budget.unitsPerDay * share) - (byPurpose.sweep ?? 0))
}

interface SweepBudget {
  readonly budget: { readonly unitsPerDay: number }
  readonly byPurpose: { readonly sweep?: number }
}

/** Whether this day's sweep continues after it ended for this reason: where a limit of the minute or a poll interrupted it, too. */
export function sweepGoesOn(reason: SweepReason): boolean {
  return ['units_spent', 'refused_minute', 'refused_hold', 'refused_rest'].includes(reason)
}

const windowMs = 30 * 60_000
/** What is read later than this might be counted on the next day. */
const endGuardMs = 30_000
const pauseMsMin = 1_500
const quietIntervalMs = 60_000
const keptUnits = 3
/** Few at a time: the first page is polled in between. */
const pagesMax = 5
const quiet: ReadonlySet<DecisionReason> = new Set<DecisionReason>(['floor', 'even'])

/**
 * Pages of the past, read once: on a cold start the plan does not know when alerts fire, and learns it from the rows that
 * the feed still shows. Nothing of these pages is sent or marked; they do not change the walk.
 */
interface History {
  readonly pages: number
  /** Firing times, in milliseconds since the epoch, in no order. */
  readonly firedAtMs: readonly number[]
  /** Only a limit of the minute, or a poll, interrupted it. */
  readonly goesOn: boolean
}

export interface Allowance {
  /** The pages up to this one were read, by the poll itself or before. */
  readonly afterPage: number
  readonly pagesMax: number
}

/** Which pages may be read now, if any: for at most a tenth of the units that are left of the day. Pure. */
export function historyPages(situation: {
  readonly wanted: number
  readonly unitsLeft: number
  readonly memory: 'restored' | 'fresh' | 'lost'
  readonly historyRead: boolean
  /** What is left of what was granted when the first of them were read. */
  readonly begun?: Allowance | undefined
  readonly lastPages: number | null
  readonly behind: boolean
}): Allowance | undefined {
  const { wanted, unitsLeft, memory, historyRead, begun, lastPages, behind } = situation
  if (historyRead || memory === 'restored' || lastPages === null || behind) return undefined
  const share = Math.floor(unitsLeft / 10)
  const pagesMax = Math.min(begun?.pagesMax ?? wanted, share)
  return pagesMax > 0 ? { afterPage: begun?.afterPage ?? lastPages, pagesMax } : undefined
}

/** Reads on until the feed or the allowance ends, or a page is refused or fails. */
export async function readHistory(readPage: ReadPage, allowance: Allowance, nowMs: number): Promise<History> {
  const firedAtMs: number[] = []
  let pages = 0
  while (pages < allowance.pagesMax) {
    const answer = await readPage(allowance.afterPage + pages + 1, 'history')
    if (answer.kind !== 'page') {
      const goesOn = answer.kind === 'refused' && ['minute', 'hold', 'rest'].includes(answer.why)
      return { pages, firedAtMs, goesOn }
    }
    pages += 1
    const { page, lastPage, rows } = answer.page
    for (const row of rows) {
      const atMs = firedAtOf(row, nowMs)
      if (atMs !== null) firedAtMs.push(atMs)
    }
    if (rows.length === 0 || page >= lastPage) break
  }
  return { pages, firedAtMs, goesOn: false }
}
