import * as z from 'zod'
import { formatDuration } from '../../lib/duration.ts'
import type { BudgetDay, BudgetView } from '../schedule.ts'

/**
 * What the upstream's own refusals teach about the budget: that it is smaller than configured, or that it starts anew
 * at another time. It refuses to believe for ever: what was learned is tried once a day and forgotten when it no longer
 * holds.
 */
export type Grant = z.infer<typeof grantSchema>

export const grantSchema = z.object({
  v: z.literal(1),
  /** Units after which the upstream refused, or null. */
  unitsPerDay: z.int().nonnegative().nullable(),
  /** An instant at which the upstream's budget starts anew, every 24 hours, or null where the config's time holds. */
  resetsAtMs: z.number().nonnegative().nullable(),
  learnedAtMs: z.number().nonnegative(),
})

export interface Refusal {
  readonly atMs: number
  /** Units that had been counted in the configured day before the call that was refused. */
  readonly unitsUsed: number
  /** `detail.retryAfter`: the time until the budget starts anew; undefined when the upstream did not say. */
  readonly retryAfterMs: number | undefined
  readonly day: BudgetDay
  readonly unitsPerDay: number
  /** The day that an earlier refusal told of, its units before the call, and whether all of them were counted. */
  readonly told?: { readonly day: BudgetDay; readonly used: number; readonly whole: boolean } | undefined
  /** Units within 24 hours before the time that is named now, without the call; undefined where nobody counted them all. */
  readonly usedOfNamedDay?: number | undefined
}

export interface Lesson {
  readonly grant: Grant
  /** One sentence for log and status. */
  readonly text: string
}

/** Fewer units than this share of the configured ones say that somebody else spent the account's budget today. */
const ownShareMin = 0.05
/** Resets that are this close to the expected one are the same one. */
const resetToleranceMs = 10 * 60_000
const trialBeforeMs = 5 * 60_000
const dayMs = 86_400_000

/** What a refusal of the day's budget teaches. */
export function learnRefusal(refusal: Refusal): Lesson {
  const { atMs, retryAfterMs, day, unitsPerDay, told } = refusal
  const saidMs = retryAfterMs === undefined ? undefined : atMs + retryAfterMs
  const inToldDay = told !== undefined && (saidMs === undefined || isSameReset(saidMs, told.day))
  const inOurDay = !inToldDay && (saidMs === undefined || isSameReset(saidMs, day))
  const resetsAtMs = inToldDay ? told.day.endMs : inOurDay ? null : (saidMs ?? null)
  const isNew = !inToldDay && !inOurDay
  const unitsUsed = inToldDay
    ? told.used
    : ((isNew ? refusal.usedOfNamedDay : undefined) ?? refusal.unitsUsed)
  // Where counting began at another instant than the API's day, the count says little about the size of its budget.
  const counted = inOurDay || (inToldDay && told.whole) || (isNew && refusal.usedOfNamedDay !== undefined)
  const smaller = counted && unitsUsed >= unitsPerDay * ownShareMin && unitsUsed < unitsPerDay
  const grant: Grant = {
    v: 1,
    unitsPerDay: smaller ? unitsUsed : null,
    resetsAtMs,
    learnedAtMs: atMs,
  }
  if (resetsAtMs !== null && isNew) {
    const theirs = formatDuration(resetsAtMs - atMs)
    const ours = formatDuration(day.endMs - atMs)
    const size = smaller ? ` and with ${unitsUsed} units, where the config allows ${unitsPerDay}` : ''
    return {
      grant,
      text: `the API refused after ${unitsUsed} units and says that its budget starts anew in ${theirs}, not in ${ours}: days are planned from that time on${size}`,
    }
  }
  if (smaller)
    return {
      grant,
      text: `the API refused after ${unitsUsed} units, and the config allows ${unitsPerDay}: days are planned with ${unitsUsed} until it grants more`,
    }
  const others = counted && unitsUsed < unitsPerDay ? ': somebody else spends of this account' : ''
  return { grant, text: `the API refused after ${unitsUsed} of ${unitsPerDay} units${others}` }
}

/** What the plan may reckon with once the grant is known; `trialAtMs` is when one call beyond it may be tried. */
export function budgetInForce(
  view: BudgetView,
  grant: Grant | undefined,
  nowMs: number,
): BudgetView & { readonly trialAtMs?: number } {
  if (grant?.unitsPerDay == null || grant.unitsPerDay >= view.unitsPerDay) return view
  const unitsPerDay = Math.max(1, grant.unitsPerDay)
  const left = grant.unitsPerDay - (view.unitsPerDay - view.unitsLeft)
  // On the day of the refusal the answer is known; on later ones it is asked once, when little is lost by a refusal.
  const isLater = grant.learnedAtMs < view.day.startMs
  // A plan that spends to the end of the day has to leave time for that call.
  if (left > 0) return { ...view, unitsPerDay, unitsLeft: left + (isLater ? 1 : 0) }
  const spent = { ...view, unitsPerDay, unitsLeft: 0 }
  if (view.unitsLeft === 0 || !isLater) return spent
  return { ...spent, trialAtMs: Math.max(nowMs, view.day.endMs - trialBeforeMs) }
}

/** The grant after a call was granted: undefined once it is disproved. */
export function confirmSpending(
  grant: Grant,
  spent: { readonly atMs: number; readonly unitsUsed: number },
): Lesson | undefined {
  const granted = grant.unitsPerDay !== null && spent.unitsUsed > grant.unitsPerDay
  const before =
    grant.resetsAtMs !== null &&
    spent.atMs < grant.resetsAtMs - resetToleranceMs &&
    spent.atMs > grant.learnedAtMs
  if (!granted && !before) return undefined
  const text = granted
    ? `the API granted ${spent.unitsUsed} units, more than the ${grant.unitsPerDay} it had refused at: the configured budget holds again`
    : 'the API granted a call before the time it had named: the configured reset holds again'
  const resetsAtMs = before ? null : grant.resetsAtMs
  return { grant: { v: 1, unitsPerDay: null, resetsAtMs, learnedAtMs: spent.atMs }, text }
}

/** Whether an instant is a reset of this kind of day, this one's or one of before or after. */
export function isSameReset(atMs: number, { endMs }: BudgetDay): boolean {
  const days = (atMs - endMs) / dayMs
  return Math.abs(days - Math.round(days)) * dayMs <= resetToleranceMs
}
