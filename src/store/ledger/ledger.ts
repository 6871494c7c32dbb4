import { randomUUID } from 'node:crypto'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { waits } from '../../lib/waits.ts'
import type { BudgetDay } from '../../schedule/schedule.ts'
import type { ApiLimit, Purpose } from '../../telemetry/metrics.ts'
import type { RedisClient } from '../connection/redis.ts'
import { joinedUnitsKey, leaseKey, sourceKeys, unitsKeptMs } from '../keys.ts'
import { daysAround, joinAccount, spendingKeys, unitsKeyOf } from './account.ts'
import { type ApiDay, readApiDay, writeApiDay } from './api-day.ts'
import { type DayUse, numbersOf } from './day-use.ts'
import { countsByHalfHour, firstHalfOf, halfHourField, halfHourMs, sumSince } from './half-hours.ts'
import { holdMs } from './hold.ts'
import { createKnownUnits, type KnownUnits } from './known-units.ts'
import { afterSpent, otherDay } from './ledger-days.ts'
import {
  endedScript,
  heldScript,
  holdScript,
  type ReserveReply,
  reserveArgs,
  reserveScript,
} from './ledger-scripts.ts'
import { besidePolls, lookups, rateMinuteMs } from './minute.ts'

/**
 * What the bridge spends of a source, or of an account of several sources, over all replicas. Every call of the API is
 * reserved here first, in one script: the day's units and the sliding minute are never exceeded, however many processes
 * reserve at once. A reserved unit counts as spent: the API may have counted it. Redis may lose the count, as in a
 * failover: so every caller also sends how many units of the day it knows to be used; the minute starts again at 0.
 *
 * The API starts a new day by its own clock. A call within `resetGuardMs` of the reset may count on either side, so it is
 * charged to both days and must fit into both.
 */
export interface Ledger {
  reserve(request: ReserveRequest): Promise<Reservation>
  /**
   * The call that was reserved has ended, with an answer or without: its minute begins now, since the API may have counted it as
   * late as this. Where Redis does not take that, its minute began with the reservation.
   */
  ended(reserved: Extract<Reservation, { ok: true }>): void
  /** Units of a day: in all, and by purpose. This process remembers the total, also where Redis loses it. */
  used(day: BudgetDay): Promise<DayUse>
  /**
   * The API answered 429 to any call: no replica calls it for `askedMs` from now, within bounds, or for a default time
   * without `askedMs`. A hold that ends later stays. Returns the length in ms. Never rejects: this process waits also where
   * Redis could not store the hold.
   */
  hold(limit: ApiLimit, askedMs: number | undefined): Promise<number>
  /** The hold that is on now, if any. */
  currentHold(): Promise<Hold | undefined>
  /**
   * From now on units are also counted by the API's day, which resets at this instant and every 24 hours, and that day, too,
   * has no more than the configured units. `used`: units spent of the current day; null ends the counting.
   */
  countApiDay(reset: { readonly atMs: number; readonly used: number } | null): Promise<void>
  apiDay(): Promise<ApiDay | undefined>
  /**
   * Units since an instant of the last 48 hours that is a full or a half hour, give or take a minute; undefined for others,
   * and where none were spent in the first hour: this bridge may not have run then.
   */
  usedSince(fromMs: number): Promise<number | undefined>
}

interface ReserveRequest {
  /** Units, at least 1. */
  readonly cost: number
  readonly purpose: Purpose
  /** Units of the day that this call must leave to others. */
  readonly leaveUnits?: number
  /** The same of the API's own day, where this call is no poll; as many as of the day by default. */
  readonly leaveApiDayUnits?: number
  /** Units that all calls of this purpose together may use of a day; those for people and for context are counted as one. */
  readonly purposeUnitsMax?: number
  /** Whether this call leaves a part of the minute to polls of the first page. */
  readonly leaveFresh?: boolean
  /** The token of the poller's lease: nothing is reserved unless it is in Redis at this moment. */
  readonly leaseToken?: string
}

/** What was reserved for one call, which costs so many units. */
export interface TakenUnits extends Extract<Reservation, { ok: true }> {
  readonly units: number
}

export type Reservation =
  | {
      readonly ok: true
      /** The request among those of the minute. */
      readonly request: string
      readonly unitsUsed: number
      readonly unitsLeft: number
      /** Units used of the API's own day. */
      readonly apiDayUsed?: number
    }
  | { readonly ok: false; readonly limit: 'lease'; readonly unitsUsed: number }
  | {
      readonly ok: false
      readonly limit: ApiLimit
      /** The reason is an earlier 429 of the API, not our own count. */
      readonly held: boolean
      readonly ofPurpose?: true // only `purposeUnitsMax` is used up
      /** Of those: fewer than the call costs, perhaps some. */
      readonly purposeUnitsLeft?: number
      /** When to try again, by the clock of this machine. */
      readonly retryAtMs: number
      readonly unitsUsed: number
    }

export interface Hold {
  readonly limit: ApiLimit
  readonly untilMs: number
}

interface LedgerOptions {
  readonly redis: RedisClient
  readonly prefix: string
  readonly source: string
  /** Sources with the same one share one ledger. */
  readonly account?: string | undefined
  readonly unitsPerDay: number
  readonly requestsPerMinute: number
  /** How many sources of the account make these requests; left out, one. */
  readonly sources?: () => number
  readonly budgetDay: (nowMs: number) => BudgetDay
  readonly clock?: Clock
  /** Of this process; left out, this ledger is the only one that this process has of the account. */
  readonly knownUnits?: KnownUnits
}

export function createLedger(options: LedgerOptions): Ledger {
  const { redis, clock = systemClock } = options
  const keys = spendingKeys(options)
  const { spendsIn } = sourceKeys(options.prefix, options.source)
  const counted = async (dayKey: string) => redis.hgetall(await unitsKeyOf(redis, options, dayKey))
  let joined = false
  /** Runs before anything is counted or returned. */
  const join = async () => {
    if (joined) return
    await joinAccount(redis, options, daysAround(clock.now(), options.budgetDay))
    joined = true
  }
  /**
   * The config may have named other days until now, and does so still in other replicas: units of the day that runs may stand under
   * the dates of those.
   */
  const noteCounted = async () => {
    const day = options.budgetDay(clock.now())
    const counts = await Promise.all(daysAround(clock.now(), options.budgetDay).map(counted))
    known.note(keys.units(day.key), sumSince(countsByHalfHour(counts), firstHalfOf(day)))
  }
  /** Joins again where a replica with another config has meanwhile counted in another ledger. */
  const evalReserve = async (names: readonly string[], args: readonly (string | number)[]) => {
    for (let tries = 1; tries <= joinsMax; tries += 1) {
      await join()
      const reply = (await redis.eval(reserveScript, names.length, ...names, ...args)) as ReserveReply
      if (reply[0] !== 'moved') return reply
      joined = false
    }
    throw new Error(`replicas count the units of source ${options.source} for different accounts`)
  }
  const known = options.knownUnits ?? createKnownUnits()
  /** A hold that is not stored in Redis yet, because Redis was away; its end is by the monotonic clock. */
  let own: Hold | undefined
  return {
    async reserve(request) {
      const { cost, purpose, leaveUnits = 0, leaveApiDayUnits = leaveUnits } = request
      const { leaveFresh = false, leaseToken = '' } = request
      const nowMs = Math.round(clock.now())
      if (own && own.untilMs > clock.monotonicMs()) await storeHold(own)
      const day = options.budgetDay(nowMs)
      const other = otherDay(day, nowMs, options.budgetDay)
      const days = [day, ...(other ? [other] : [])]
      const charged = days.map(({ key }) => key)
      const dates = new Set([...charged, ...daysAround(nowMs, options.budgetDay)])
      const units = [...dates].flatMap((key) => [keys.units(key), joinedUnitsKey(options.prefix, key)])
      const lease = leaseKey(options.prefix, options.source)
      const name = randomUUID()
      const names = [keys.hold, keys.minute, lease, keys.apiDay, spendsIn, ...units]
      const args = reserveArgs.inOrder({
        unitsMax: Math.max(0, options.unitsPerDay - leaveUnits),
        requestsMax: leaveFresh
          ? besidePolls(purpose, options.requestsPerMinute, options.sources?.())
          : options.requestsPerMinute,
        cost,
        purpose,
        minuteMs: rateMinuteMs,
        keptMs: unitsKeptMs,
        leaseToken,
        request: name,
        callerMs: nowMs,
        halfHour: halfHourField(nowMs),
        holdMsMax: waits.apiHold.maxMs,
        account: options.account ?? '',
        purposeUnitsMax: request.purposeUnitsMax ?? -1,
        purposes: lookups.includes(purpose) ? lookups.join(' ') : purpose,
        apiDayUnitsMax: Math.max(0, options.unitsPerDay - (noPolls.includes(purpose) ? leaveApiDayUnits : 0)),
        daysCharged: charged.length,
        firstHalf: firstHalfOf(day),
      })
      const reply = await evalReserve(names, [...args, ...charged.map((key) => known.of(keys.units(key)))])
      const [kind, limit, waitMs, unitsUsed, more = -1] = reply
      known.note(keys.units(day.key), unitsUsed)
      if (kind === 'ok') {
        if (other) known.note(keys.units(other.key), known.of(keys.units(other.key)) + cost)
        const unitsLeft = Math.max(0, options.unitsPerDay - unitsUsed)
        return { ok: true, request: name, unitsUsed, unitsLeft, ...(more < 0 ? {} : { apiDayUsed: more }) }
      }
      if (kind === 'lease') return { ok: false, limit: 'lease', unitsUsed }
      const purposeUnitsLeft = Math.max(0, (request.purposeUnitsMax ?? 0) - more)
      const ofPurpose = kind === 'share' ? { ofPurpose: true as const, purposeUnitsLeft } : {}
      const retryAtMs = kind === 'spent' || kind === 'share' ? afterSpent(day, other, waitMs) : nowMs + waitMs
      return { ok: false, limit, held: kind === 'held', ...ofPurpose, retryAtMs, unitsUsed }
    },
    ended({ request }) {
      redis.eval(endedScript, 1, keys.minute, request, rateMinuteMs).catch(() => {})
    },
    async used(day) {
      await join()
      const [{ used = '0', ...rest }] = await Promise.all([counted(day.key), noteCounted()])
      const purposes = Object.entries(rest).filter(([name]) => !/^(half|from):/.test(name))
      known.note(keys.units(day.key), Number(used))
      return { used: known.of(keys.units(day.key)), byPurpose: numbersOf(purposes) }
    },
    async usedSince(fromMs) {
      const first = Math.round(fromMs / halfHourMs)
      if (Math.abs(first * halfHourMs - fromMs) > halfHourSlackMs) return undefined
      // Twice a day, so that none of 23 hours is passed over.
      const hoursBack = [0, 12, 24, 36, 48]
      const days = new Set(
        hoursBack.map((hours) => options.budgetDay(clock.now() - 2 * hours * halfHourMs).key),
      )
      const counts = await Promise.all([...days].map(counted))
      const halves = countsByHalfHour(counts)
      if (!halves.has(first) && !halves.has(first + 1)) return undefined
      return sumSince(halves, first)
    },
    async hold(limit, askedMs) {
      const nowMs = clock.now()
      const forMs = holdMs(limit, askedMs, options.budgetDay(nowMs).endMs - nowMs)
      const hold = { limit, untilMs: clock.monotonicMs() + forMs }
      if (own === undefined || own.untilMs < hold.untilMs) own = hold
      await storeHold(hold).catch(() => {})
      return forMs
    },
    async currentHold() {
      await join()
      if (own && own.untilMs > clock.monotonicMs()) await storeHold(own)
      const [limit, waitMs] = (await redis.eval(heldScript, 1, keys.hold, waits.apiHold.maxMs)) as [
        ApiLimit | '',
        number,
      ]
      return limit === '' ? undefined : { limit, untilMs: clock.now() + waitMs }
    },
    countApiDay: (reset) => writeApiDay(redis, keys.apiDay, reset, clock),
    apiDay: () => readApiDay(redis, keys.apiDay, clock),
  }

  async function storeHold(hold: Hold): Promise<void> {
    const leftMs = Math.max(1, Math.ceil(hold.untilMs - clock.monotonicMs()))
    await redis.eval(holdScript, 1, keys.hold, hold.limit, leftMs)
    if (own === hold) own = undefined
  }
}

const joinsMax = 5
/** How far an instant may be from its half hour, see `usedSince`. */
const halfHourSlackMs = 60_000
const noPolls: readonly Purpose[] = [...lookups, 'rules']
