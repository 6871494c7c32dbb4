import type { SkipReason } from '../alert/context.ts'
import type { FeedError } from '../feed/errors.ts'
import type { Clock } from '../lib/clock.ts'
import { budgetInForce, grantSchema } from '../schedule/budget/refusal.ts'
import type { BudgetDay } from '../schedule/schedule.ts'
import type { ContextCache } from '../store/context-cache.ts'
import type { GrantStore } from '../store/grant.ts'
import type { Ledger } from '../store/ledger.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/**
 * The units of context. Polling comes first: context has a share of the day's units, never takes those that polls still need
 * until the reset, and a burst of alerts costs no more than a burst may.
 */
export interface Spending {
  /** undefined once the units are taken; otherwise why not. Throws what Redis throws. */
  take(units: number, cache: ContextCache): Promise<SkipReason | undefined>
  /** The API answered 429: nobody calls it before it allows. */
  refused(error: FeedError): Promise<void>
}

export interface SpendingOptions {
  readonly source: string
  readonly ledger: Pick<Ledger, 'reserve' | 'hold'>
  readonly grants: GrantStore
  readonly budgetDay: (nowMs: number) => BudgetDay
  readonly unitsPerDay: number
  readonly unitsShare: number
  /** What polls take at the least of the units of a day, as a share, or how often they come where their pace is fixed. */
  readonly polls: { readonly share: number } | { readonly everyMs: number }
  readonly clock: Clock
  readonly metrics: Metrics
}

export function createSpending(options: SpendingOptions): Spending {
  const { source, ledger, grants, budgetDay, unitsPerDay, unitsShare, clock, metrics } = options
  return {
    async take(units, cache) {
      const nowMs = clock.now()
      const day = budgetDay(nowMs)
      const granted = await grantedUnits(grants, unitsPerDay, day, nowMs)
      const burst = burstUnits(granted)
      // Calls for one instrument must not use up what a page of many costs.
      const unitsMax = units === 1 ? burst : Math.ceil(burst / 2)
      if (!(await cache.take(units, { unitsMax, forMs: burstMs }))) return 'burst'
      const dayLeft = (day.endMs - nowMs) / (day.endMs - day.startMs)
      const kept = unitsForPolls(options.polls, granted, dayLeft, day)
      const reserved = await ledger.reserve({
        cost: units,
        purpose: 'context',
        purposeUnitsMax: Math.floor(granted * unitsShare * shareNow(dayLeft)),
        leaveUnits: unitsPerDay - granted + kept,
        leaveFresh: true,
      })
      if (reserved.ok) {
        metrics.budgetUnits.inc({ source, purpose: 'context' }, units)
        return undefined
      }
      await cache.giveBack(units)
      if (reserved.limit === 'lease') return 'unavailable'
      if (reserved.held) return 'held'
      return reserved.limit === 'minute' ? 'minute' : 'budget'
    },
    async refused({ limit = 'minute', retryAfterMs }) {
      metrics.upstreamRateLimited.inc({ source, limit })
      await ledger.hold(limit, retryAfterMs)
    },
  }
}

/**
 * How much of its share context may have used by now: a quarter until the last quarter of the day, then more and more. Every
 * unit that it takes while alerts come makes the rest of them wait longer for their poll: on the traces `market` and `bursty`
 * (2,000 units, 140 to 160 alerts a day) the mean wait grows by a tenth at 6 % of the day's units, and by a third at 13 %.
 */
export function shareNow(dayLeft: number): number {
  return earlyShare + (1 - earlyShare) * Math.min(1, Math.max(0, 1 - dayLeft / lastPart))
}

const earlyShare = 0.25
const lastPart = 0.25

/** Many alerts at once are worth some pages of the board, not a call for each. */
export const burstMs = 10 * 60_000
const burstShare = 0.01
/** Half of it buys any one name. */
const burstUnitsMin = 10

export function burstUnits(unitsPerDay: number): number {
  return Math.max(burstUnitsMin, Math.floor(unitsPerDay * burstShare))
}

/**
 * Units that must be left for the polls until the reset: their slowest pace, and what the plan keeps for pages beneath the
 * first. Less and less is kept as the day ends, so that its last units are worth something.
 */
export function unitsForPolls(
  polls: SpendingOptions['polls'],
  unitsPerDay: number,
  dayLeft: number,
  { startMs, endMs }: BudgetDay,
): number {
  const left = Math.min(1, Math.max(0, dayLeft))
  const paced =
    'share' in polls ? unitsPerDay * polls.share * left : ((endMs - startMs) * left) / polls.everyMs
  return Math.min(unitsPerDay, Math.ceil(paced + unitsPerDay * reserveShare * left) + lastUnits)
}

/** As the plan keeps at the start of a day, and as much again. */
const reserveShare = 0.1
const lastUnits = 3

/** What the API itself grants, where its refusals showed less than the config says. */
export async function grantedUnits(
  grants: Pick<GrantStore, 'load'>,
  unitsPerDay: number,
  day: BudgetDay,
  nowMs: number,
): Promise<number> {
  const grant = grantSchema.safeParse(await grants.load())
  return budgetInForce({ unitsPerDay, unitsLeft: unitsPerDay, day }, grant.data, nowMs).unitsPerDay
}
