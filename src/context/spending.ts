import { contextShareMax, type SkipReason } from '../alert/context.ts'
import { contextLeaves, type SlowestPace, slowestPolls } from '../config/checks/accounts.ts'
import type { FeedError } from '../feed/errors.ts'
import type { Clock } from '../lib/clock.ts'
import { budgetInForce, grantSchema } from '../schedule/budget.ts'
import type { BudgetDay } from '../schedule/schedule.ts'
import type { ContextCache } from '../store/context-cache.ts'
import type { GrantStore } from '../store/ledger/grant.ts'
import type { Ledger, TakenUnits } from '../store/ledger/ledger.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/**
 * Takes the units of context from the ledger. Polling comes first: context has a share of the day's units, never takes those that
 * polls still need until the reset, and has a limit for each burst of alerts.
 */
export interface Spending {
  /** Resolves once the units are taken, or with why not. Rejects only where Redis fails. */
  take(
    units: number,
    cache: ContextCache,
  ): Promise<TakenUnits | { readonly ok: false; readonly why: SkipReason }>
  /** The call has ended, with an answer or without. */
  ended(taken: TakenUnits): void
  /** The API answered 429: no process calls it before the time that it named, and the plan learns what it grants. */
  refused(error: FeedError, taken: TakenUnits): Promise<void>
}

interface SpendingOptions {
  readonly source: string
  readonly ledger: Pick<Ledger, 'reserve' | 'ended' | 'hold' | 'apiDay'>
  readonly grants: GrantStore
  readonly budgetDay: (nowMs: number) => BudgetDay
  readonly unitsPerDay: number
  readonly unitsShare: number
  /** Of each source that spends these units. */
  readonly polls: () => readonly SlowestPace[]
  /** The API refused a call for the day's budget. Never rejects. */
  readonly onBudgetRefused: (taken: TakenUnits, askedMs: number | undefined) => Promise<void>
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
      // Calls of more than one unit may use half of a burst, so that pages of many, at one unit, find the rest.
      const unitsMax = units === 1 ? burst : Math.ceil(burst / 2)
      if (!(await cache.take(units, { unitsMax, forMs: burstMs }))) return skip('burst')
      // Polls are held to both days, each with its own end.
      const apiDay = (await ledger.apiDay())?.day ?? day
      const leave = (of: BudgetDay) =>
        unitsPerDay - granted + unitsForPolls(options.polls(), granted, partLeft(of, nowMs), of)
      const reserved = await ledger.reserve({
        cost: units,
        purpose: 'context',
        purposeUnitsMax: Math.floor(granted * unitsShare * shareNow(partLeft(day, nowMs))),
        leaveUnits: leave(day),
        leaveApiDayUnits: leave(apiDay),
        leaveFresh: true,
      })
      if (reserved.ok) {
        metrics.budgetUnits.inc({ source, purpose: 'context' }, units)
        return { ...reserved, units }
      }
      await cache.giveBack(units)
      if (reserved.limit === 'lease') return skip('unavailable')
      if (reserved.held) return skip('held')
      return skip(reserved.limit === 'minute' ? 'minute' : 'budget')
    },
    ended: (taken) => ledger.ended(taken),
    async refused({ limit = 'minute', retryAfterMs }, taken) {
      metrics.upstreamRateLimited.inc({ source, limit })
      await ledger.hold(limit, retryAfterMs)
      if (limit === 'budget') await options.onBudgetRefused(taken, retryAfterMs)
    },
  }
}

function partLeft({ startMs, endMs }: BudgetDay, nowMs: number): number {
  return (endMs - nowMs) / (endMs - startMs)
}

function skip(why: SkipReason) {
  return { ok: false, why } as const
}

/**
 * How much of its share context may have used by now: a fifth until the last quarter of the day, then up to three tenths. Every
 * unit that it takes while alerts come makes the rest of them wait longer for their poll. By `test/bench/context.ts` (price and
 * chart, 2,000 units, 135 to 190 alerts a day, three weeks) alerts are found 1.04 to 1.08 times later than without; up to all
 * of the share, 1.05 to 1.09 later where they follow the market's hours, and 1.14 where they come all day long. Keeping the units
 * from the plan beforehand changed the wait by no more than 0.02.
 */
export function shareNow(dayLeft: number): number {
  return earlyShare + (contextShareMax - earlyShare) * Math.min(1, Math.max(0, 1 - dayLeft / lastPart))
}

const earlyShare = 0.2
const lastPart = 0.25

/** The limit of a burst: many alerts at once are worth some pages of the board, not a call for each. */
const burstMs = 10 * 60_000
const burstShare = 0.01
/** Half of it still buys any one name. */
const burstUnitsMin = 10

export function burstUnits(unitsPerDay: number): number {
  return Math.max(burstUnitsMin, Math.floor(unitsPerDay * burstShare))
}

/**
 * The units that must be left for polls until the reset: those of their slowest pace, and twice those that the plan keeps for pages
 * beneath the first at the start of a day. The number falls as the day ends, so that its last units can still be used.
 */
export function unitsForPolls(
  polls: readonly SlowestPace[],
  unitsPerDay: number,
  dayLeft: number,
  { startMs, endMs }: BudgetDay,
): number {
  const left = Math.min(1, Math.max(0, dayLeft))
  const { share, units } = contextLeaves
  const paced = slowestPolls(polls, unitsPerDay, endMs - startMs)
  return Math.min(unitsPerDay, Math.ceil((paced + unitsPerDay * share) * left) + units)
}

/** The units of a day: the API's own number where its refusals showed less than the config has. */
export async function grantedUnits(
  grants: Pick<GrantStore, 'load'>,
  unitsPerDay: number,
  day: BudgetDay,
  nowMs: number,
): Promise<number> {
  const grant = grantSchema.safeParse(await grants.load())
  return budgetInForce({ unitsPerDay, unitsLeft: unitsPerDay, day }, grant.data, nowMs).unitsPerDay
}
