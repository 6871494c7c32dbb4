import * as z from 'zod'
import { formatDuration } from '../lib/duration.ts'
import type { BudgetDay, BudgetView } from './schedule.ts'

/**
 * What the upstream's own refusals teach about the budget: that it is smaller than configured, or that it starts anew
 * at another time. It refuses to believe for ever: what was learned is tried once a day and forgotten when it no longer
 * holds.
 */
export type BudgetTruth = z.infer<typeof budgetTruthSchema>

export const budgetTruthSchema = z.object({
  v: z.literal(1),
  /** Units after which the upstream refused, or null. */
  unitsPerDay: z.int().nonnegative().nullable(),
  /** An instant at which the upstream's budget starts anew, once a day, or null where the config's time holds. */
  resetsAtMs: z.number().nullable(),
  learnedAtMs: z.number(),
})

export interface Refusal {
  readonly atMs: number
  /** Units that the ledger had counted in its day before the call that was refused. */
  readonly unitsUsed: number
  /** `detail.retryAfter`: the time until the budget starts anew; undefined when the upstream did not say. */
  readonly retryAfterMs: number | undefined
  readonly day: BudgetDay
  readonly unitsPerDay: number
}

export interface Lesson {
  readonly truth: BudgetTruth
  /** One sentence for log and status. */
  readonly text: string
}

/** Fewer units than this share of the configured ones say that somebody else spent the account's budget today. */
const ownShareMin = 0.05
/** Resets that are this close to the expected one are the same one. */
const resetToleranceMs = 10 * 60_000
const trialBeforeMs = 5 * 60_000

/** What a refusal of the day's budget teaches. */
export function learnRefusal(refusal: Refusal): Lesson {
  const { atMs, unitsUsed, retryAfterMs, day, unitsPerDay } = refusal
  const saidMs = retryAfterMs === undefined ? undefined : atMs + retryAfterMs
  const otherReset = saidMs !== undefined && differs(saidMs, day) ? saidMs : null
  // Spending began with our day and not with theirs, so where the reset differs the count says little about the size.
  const own = unitsUsed >= unitsPerDay * ownShareMin
  const smaller = otherReset === null && own && unitsUsed < unitsPerDay ? unitsUsed : null
  const truth: BudgetTruth = { v: 1, unitsPerDay: smaller, resetsAtMs: otherReset, learnedAtMs: atMs }
  if (otherReset !== null) {
    const inMs = formatDuration(otherReset - atMs)
    return {
      truth,
      text: `the API refused after ${unitsUsed} units and says that its budget starts anew in ${inMs}, not in ${formatDuration(day.endMs - atMs)}: its time is believed`,
    }
  }
  if (smaller !== null)
    return {
      truth,
      text: `the API refused after ${unitsUsed} units, and the config allows ${unitsPerDay}: days are planned with ${unitsUsed} until it grants more`,
    }
  const others = unitsUsed < unitsPerDay ? ': somebody else spends of this account' : ''
  return { truth, text: `the API refused after ${unitsUsed} of ${unitsPerDay} units${others}` }
}

/** What the plan may reckon with once the truth is known; `trialAtMs` is when one call beyond it may be tried. */
export function budgetInForce(
  view: BudgetView,
  truth: BudgetTruth | undefined,
  nowMs: number,
): BudgetView & { readonly trialAtMs?: number } {
  if (truth?.unitsPerDay == null || truth.unitsPerDay >= view.unitsPerDay) return view
  const used = view.unitsPerDay - view.unitsLeft
  const unitsLeft = Math.max(0, truth.unitsPerDay - used)
  const known = { ...view, unitsPerDay: Math.max(1, truth.unitsPerDay), unitsLeft }
  // On the day of the refusal the answer is known; on later ones it is asked once, when little is lost by a refusal.
  const isLater = truth.learnedAtMs < view.day.startMs
  if (unitsLeft > 0 || view.unitsLeft === 0 || !isLater) return known
  return { ...known, trialAtMs: Math.max(nowMs, view.day.endMs - trialBeforeMs) }
}

/** The truth after a call was granted: undefined once it is disproved. */
export function confirmSpending(
  truth: BudgetTruth,
  spent: { readonly atMs: number; readonly unitsUsed: number },
): Lesson | undefined {
  const granted = truth.unitsPerDay !== null && spent.unitsUsed > truth.unitsPerDay
  const before =
    truth.resetsAtMs !== null &&
    spent.atMs < truth.resetsAtMs - resetToleranceMs &&
    spent.atMs > truth.learnedAtMs
  if (!granted && !before) return undefined
  const text = granted
    ? `the API granted ${spent.unitsUsed} units, more than the ${truth.unitsPerDay} it had refused at: the configured budget holds again`
    : 'the API granted a call before the time it had named: the configured reset holds again'
  return { truth: { v: 1, unitsPerDay: null, resetsAtMs: null, learnedAtMs: spent.atMs }, text }
}

function differs(saidMs: number, day: BudgetDay): boolean {
  return Math.abs(saidMs - day.endMs) > resetToleranceMs
}
