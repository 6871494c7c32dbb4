import * as z from 'zod'
import { formatDuration } from '../lib/duration.ts'
import { dateKey, instantOf, wallTime } from '../lib/zone.ts'
import type { BudgetDay, BudgetView, ScheduleOptions } from './schedule.ts'

/** When the API's budget starts anew. */
interface BudgetReset {
  /** `HH:MM` on the wall clock of `timeZone`. */
  readonly resetsAt: string
  /** An IANA name, such as `Asia/Tehran`. */
  readonly timeZone: string
}

const dayMs = 86_400_000
const last = new Map<string, BudgetDay>()

/**
 * The budget day that holds `nowMs`: from the first instant at which the wall clock shows `resetsAt` or later to the
 * next day's. So days have 23 to 25 hours where clocks change, never overlap and leave no hole.
 */
export function budgetDay(nowMs: number, reset: BudgetReset): BudgetDay {
  const cacheKey = `${reset.timeZone} ${reset.resetsAt}`
  const cached = last.get(cacheKey)
  if (cached && nowMs >= cached.startMs && nowMs < cached.endMs) return cached
  const day = findDay(nowMs, minutesOf(reset.resetsAt) * 60_000, reset.timeZone)
  last.set(cacheKey, day)
  return day
}

/** Minutes since midnight of `HH:MM`. */
export function minutesOf(time: string): number {
  const match = /^(\d{1,2}):(\d{2})$/.exec(time)
  const minutes = Number(match?.[1]) * 60 + Number(match?.[2])
  if (!match || minutes > 1_440) throw new RangeError(`not a time of day: ${time}`)
  return minutes
}

function findDay(nowMs: number, resetMs: number, timeZone: string): BudgetDay {
  const today = Math.floor((wallTime(nowMs, timeZone) - resetMs) / dayMs) * dayMs
  // A clock that was set back shows an hour of yesterday again, and a zone may skip a date: look at the neighbours too.
  for (const date of [today, today + dayMs, today - dayMs, today + 2 * dayMs, today - 2 * dayMs]) {
    const startMs = instantOf(date + resetMs, timeZone)
    const endMs = instantOf(date + dayMs + resetMs, timeZone)
    if (nowMs >= startMs && nowMs < endMs) return { key: dateKey(date), startMs, endMs }
  }
  throw new Error(`no budget day of ${timeZone} holds ${nowMs}`)
}

/**
 * What the API's own refusals teach about the budget: that it is smaller than configured, or that it starts anew
 * at another time. Nothing of that is believed for ever: it is tried once a day and forgotten when it no longer
 * holds.
 */
export type Grant = z.infer<typeof grantSchema>

export const grantSchema = z.object({
  v: z.literal(1),
  /** Units after which the API refused, or null. */
  unitsPerDay: z.int().nonnegative().nullable(),
  /** An instant at which the API's budget starts anew, every 24 hours, or null where the config's time holds. */
  resetsAtMs: z.number().nonnegative().nullable(),
  learnedAtMs: z.number().nonnegative(),
  /**
   * The last refusal that showed a size, believed or not, and how many different sizes refusals have shown, each within four
   * weeks of the one before; null where none did. What an earlier version stored knows of none.
   */
  refused: z
    .object({ atMs: z.number().nonnegative(), units: z.int().nonnegative(), sizes: z.int().positive() })
    .nullable()
    .default(null),
})

interface BudgetRefusal {
  readonly atMs: number
  /** Units that had been counted in the configured day before the call that was refused. */
  readonly unitsUsed: number
  /** `detail.retryAfter`: the time until the budget starts anew; undefined when the API did not say. */
  readonly retryAfterMs: number | undefined
  readonly day: BudgetDay
  readonly unitsPerDay: number
  /** What was known before. */
  readonly earlier?: Grant | undefined
  /** The day that an earlier refusal named, its units before the call, and whether all of them were counted. */
  readonly apiDay?: { readonly day: BudgetDay; readonly used: number; readonly whole: boolean } | undefined
  /** Units within 24 hours before the time that is named now, without the call; undefined where nobody counted them all. */
  readonly usedOfNamedDay?: number | undefined
}

export interface Lesson {
  readonly grant: Grant
  /** One sentence for log and status. */
  readonly text: string
}

/** Fewer units than this share of the configured ones say that somebody else spent today, unless the day before showed as many. */
const ownShareMin = 0.05
/** Resets that are this close to the expected one are the same one. */
const resetToleranceMs = 10 * 60_000
/** But a call that is counted in another day than the API's would seem to be beyond what it grants; so near, the ledger charges both. */
export const exactResetMs = 2_000
/** The same of one that is named by a wait: some are rounded, to tens of minutes or to minutes. */
export const namedResetMs = (waitMs: number): number =>
  [resetToleranceMs, 60_000].find((ms) => waitMs % ms === 0) ?? exactResetMs
/** Before each reset that is taken for the same: a call that is granted after it would seem to be beyond what the API grants. */
const trialBeforeMs = resetToleranceMs + 60_000
/** Refusals that are further apart have nothing to do with each other. */
const repeatMs = 28 * dayMs
/** Sizes that differ by more than this share are different ones; two of them say that another program spends of the account. */
const sameSizeShare = 0.02
const sharedFrom = 2
/**
 * Then less is planned than was granted when the API refused, and more again from day to day, faster after each week without
 * a refusal. Another program that takes 600 to 1,000 of 2,000 units a day: 2.6 refusals in six weeks (300 runs, at most 5; 3.6
 * with 0.95), and a mean lag of 1.09 of who knew (1.07).
 */
const sharedPart = 0.9
const growthPerDay = 0.005
const growthDoublesDays = 7
const growthMax = 5

/** The units of a day that begins so long after the refusal; the same on the day of the refusal. */
function plannedUnits(grant: Grant, day: BudgetDay): number {
  const units = grant.unitsPerDay ?? Number.POSITIVE_INFINITY
  if (!isShared(grant) || grant.refused.atMs >= day.startMs) return units
  const days = Math.floor((day.startMs - grant.refused.atMs) / dayMs)
  const weeks = Math.floor(days / growthDoublesDays)
  const grown = growthDoublesDays * (2 ** weeks - 1) + (days % growthDoublesDays) * 2 ** weeks
  return Math.max(1, Math.floor(units * sharedPart * Math.exp(Math.min(growthMax, growthPerDay * grown))))
}

/** Whether the size changes from day to day. */
function isShared(grant: Grant): grant is Grant & { refused: NonNullable<Grant['refused']> } {
  return grant.unitsPerDay !== null && grant.refused !== null && grant.refused.sizes >= sharedFrom
}

/** What a refusal of the day's budget teaches. */
export function learnRefusal(refusal: BudgetRefusal): Lesson {
  const { atMs, retryAfterMs, day, unitsPerDay, apiDay, earlier, usedOfNamedDay } = refusal
  const saidMs = retryAfterMs === undefined ? undefined : atMs + retryAfterMs
  const inApiDay = apiDay !== undefined && (saidMs === undefined || isSameReset(saidMs, apiDay.day))
  const isNear = !inApiDay && (saidMs === undefined || isSameReset(saidMs, day))
  const isNew = !inApiDay && saidMs !== undefined && !isSameReset(saidMs, day, namedResetMs(saidMs - atMs))
  const unitsUsed = inApiDay ? apiDay.used : ((isNew ? usedOfNamedDay : undefined) ?? refusal.unitsUsed)
  const startMs = inApiDay ? apiDay.day.startMs : isNew ? saidMs - dayMs : day.startMs
  // The API still refuses for its day before, which ends a little later than ours: nothing is known of the day that begins.
  const isOfOldDay = (saidMs ?? Infinity) <= (inApiDay ? startMs : day.startMs) + resetToleranceMs
  const resetsAtMs = inApiDay || isNew ? (saidMs ?? apiDay?.day.endMs ?? null) : null
  // Where counting began at another instant than the API's day, the count says little about the size of its budget.
  const isWhole = !isOfOldDay && (isNear || (inApiDay && apiDay.whole))
  const isLess = (isWhole || (isNew && usedOfNamedDay !== undefined)) && unitsUsed < unitsPerDay
  const shows = isLess && unitsUsed > 0
  const known = earlier?.refused && atMs - earlier.refused.atMs <= repeatMs ? earlier.refused : undefined
  const isSame = known && Math.abs(unitsUsed - known.units) <= Math.max(1, sameSizeShare * known.units)
  const isOfDayBefore = known !== undefined && known.atMs < startMs && known.atMs >= startMs - dayMs
  const isRepeated = isSame && (earlier?.unitsPerDay != null || isOfDayBefore)
  const isHandful = unitsUsed < unitsPerDay * ownShareMin
  const smaller = shows && (isRepeated || !isHandful)
  // What grows from a handful day by day would be few for months: so it is asked for more on the next day, whatever was before.
  const sizes = isRepeated && isHandful ? 1 : (known?.sizes ?? 0) + (isSame ? 0 : 1)
  const grant: Grant = {
    v: 1,
    unitsPerDay: smaller ? unitsUsed : isOfOldDay ? (earlier?.unitsPerDay ?? null) : null,
    resetsAtMs,
    learnedAtMs: isOfOldDay && !isNew ? startMs - 1 : atMs,
    refused: shows ? { atMs, units: unitsUsed, sizes } : (earlier?.refused ?? null),
  }
  if (isNew && !isNear) {
    const [theirs, ours] = [saidMs, day.endMs].map((endMs) => formatDuration(endMs - atMs))
    const size = smaller ? ` and with ${unitsUsed} units, where the config allows ${unitsPerDay}` : ''
    return {
      grant,
      text: `the API refused after ${unitsUsed} units and says that its budget starts anew in ${theirs}, not in ${ours}: days are planned from that time on${size}`,
    }
  }
  if (smaller && isShared(grant))
    return {
      grant,
      text: `the API refused after ${unitsUsed} units, not for the first time of late, and the config allows ${unitsPerDay}: somebody else spends of this account, so days are planned with ${Math.floor(sharedPart * unitsUsed)}, and with more from day to day until it refuses again`,
    }
  if (smaller)
    return {
      grant,
      text: `the API refused after ${unitsUsed} units, and the config allows ${unitsPerDay}: days are planned with ${unitsUsed} until it grants more`,
    }
  const others = isLess ? ': somebody else spends of this account today, or it grants no more' : ''
  return { grant, text: `the API refused after ${unitsUsed} of ${unitsPerDay} units${others}` }
}

/** What the plan may reckon with once the grant is known; `trialAtMs` is when one call beyond it may be tried, unless a poll began since. */
export function budgetInForce(
  view: BudgetView,
  grant: Grant | undefined,
  nowMs: number,
): BudgetView & { readonly trialAtMs?: number } {
  if (grant?.unitsPerDay == null) return view
  const planned = plannedUnits(grant, view.day)
  if (planned >= view.unitsPerDay) return view
  const unitsPerDay = Math.max(1, planned)
  const left = planned - (view.unitsPerDay - view.unitsLeft)
  // On the day of the refusal the answer is known; on later ones it is asked once, when little is lost by a refusal.
  const isLater = grant.learnedAtMs < view.day.startMs
  // Where the size changes from day to day, a call beyond it would say little about the next day.
  if (isShared(grant) && isLater) return { ...view, unitsPerDay, unitsLeft: Math.max(0, left) }
  // A plan that spends to the end of the day has to leave time for that call.
  if (left > 0) return { ...view, unitsPerDay, unitsLeft: left + (isLater ? 1 : 0) }
  const spent = { ...view, unitsPerDay, unitsLeft: 0 }
  if (view.unitsLeft === 0 || !isLater) return spent
  // Beyond it are calls of others, or one that failed and taught nothing.
  return { ...spent, trialAtMs: Math.max(left < 0 ? 0 : nowMs, view.day.endMs - trialBeforeMs) }
}

/** The grant after a call was granted: undefined once it is disproved. */
export function confirmSpending(
  grant: Grant,
  spent: { readonly atMs: number; readonly unitsUsed: number },
): Lesson | undefined {
  const granted = grant.unitsPerDay !== null && !isShared(grant) && spent.unitsUsed > grant.unitsPerDay
  const before =
    grant.resetsAtMs !== null &&
    spent.atMs < grant.resetsAtMs - resetToleranceMs &&
    spent.atMs > grant.learnedAtMs
  if (!granted && !before) return undefined
  const text = granted
    ? `the API granted ${spent.unitsUsed} units, more than the ${grant.unitsPerDay} it had refused at: the configured budget holds again`
    : 'the API granted a call before the time it had named: the configured reset holds again'
  const resetsAtMs = before ? null : grant.resetsAtMs
  // A reset that was not the API's makes what was counted until then worth nothing, and the refusals stay known.
  return { grant: { ...grant, unitsPerDay: null, resetsAtMs, learnedAtMs: spent.atMs }, text }
}

/** Whether an instant is a reset of this kind of day, this one's or one of before or after. */
export function isSameReset(atMs: number, { endMs }: BudgetDay, toleranceMs = resetToleranceMs): boolean {
  const days = (atMs - endMs) / dayMs
  return Math.abs(days - Math.round(days)) * dayMs <= toleranceMs
}

/** What does not fit together in budget, pace and the alerts that come, each with its arithmetic. Pure. */
interface BudgetFinding {
  readonly code:
    | 'too_thin'
    | 'floor_unaffordable'
    | 'every_unaffordable'
    | 'pages_unaffordable'
    | 'units_unspendable'
  readonly severity: 'warning' | 'info'
  readonly text: string
}

const alertsOnPage = 100
const hoursOfDay = 24
/** Many alerts come at a time, so pages beyond the first are about three times as many as the mean number of alerts needs. */
const pagesFactor = 3

export function budgetFindings(
  options: ScheduleOptions,
  profile: { readonly alertsPerDay: number },
): BudgetFinding[] {
  const { unitsPerDay, maxIntervalMs, minIntervalMs, everyMs } = options
  const findings: BudgetFinding[] = []
  const gapOf = (polls: number) => formatDuration(dayMs / polls)
  const even = gapOf(unitsPerDay)
  const floorUnits = Math.ceil(dayMs / maxIntervalMs)
  if (floorUnits > unitsPerDay)
    findings.push({
      code: 'floor_unaffordable',
      severity: 'warning',
      text: `a poll every ${formatDuration(maxIntervalMs)} takes ${floorUnits} units a day (86400 s / ${maxIntervalMs / 1_000} s), and there are ${unitsPerDay}: gaps will be about ${even}`,
    })
  if (findings.length === 0 && unitsPerDay < hoursOfDay)
    findings.push({
      code: 'too_thin',
      severity: 'warning',
      text: `${unitsPerDay} units a day are one poll in ${even}: alerts that nothing foretells wait half of that in the mean`,
    })
  if (everyMs !== undefined && Math.ceil(dayMs / everyMs) > unitsPerDay)
    findings.push({
      code: 'every_unaffordable',
      severity: 'warning',
      text: `a poll every ${formatDuration(everyMs)} takes ${Math.ceil(dayMs / everyMs)} units a day, and there are ${unitsPerDay}: they last for ${formatDuration(unitsPerDay * everyMs)} of each day`,
    })
  const pages = Math.ceil((pagesFactor * profile.alertsPerDay) / alertsOnPage)
  const left = unitsPerDay - pages
  const gaps = left < hoursOfDay ? 'alerts may wait for hours' : `gaps will be about ${gapOf(left)}`
  // Where not even the polls can be paid, a few pages make their gaps no longer than was said already.
  const isSaid = floorUnits > unitsPerDay && left >= hoursOfDay && gapOf(left) === even
  if (Math.min(floorUnits, unitsPerDay) > left && !isSaid)
    findings.push({
      code: 'pages_unaffordable',
      severity: 'warning',
      text: `${Math.round(profile.alertsPerDay)} alerts a day fill up to ${pages} further pages (${pagesFactor} x ${Math.round(profile.alertsPerDay)} / ${alertsOnPage}), ${floorUnits} polls keep gaps below ${formatDuration(maxIntervalMs)}, and there are ${unitsPerDay} units: ${gaps}`,
    })
  const spendable = Math.floor(dayMs / minIntervalMs)
  if (everyMs === undefined && spendable < unitsPerDay)
    findings.push({
      code: 'units_unspendable',
      severity: 'info',
      text: `a poll every ${formatDuration(minIntervalMs)} at most takes ${spendable} units a day, so ${unitsPerDay - spendable} of the ${unitsPerDay} stay unused; a shorter minInterval would use them`,
    })
  return findings
}
