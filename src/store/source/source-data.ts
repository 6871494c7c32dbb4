import { createHmac } from 'node:crypto'
import type { RedisClient } from '../connection/redis.ts'
import { joinedUnitsKey, leaseKey, noticesKey, sourceKeys, sourceNamesKey, unitsKeptMs } from '../keys.ts'
import { joinAccount, unitsKeyOf } from '../ledger/account.ts'
import { type UnsentNotice, unsentKeptMs } from '../operators/unsent-notices.ts'
import { storedSource } from './names.ts'
import { carryOverScript, dropSourceScript, joinUnitsScript, seenRowsScript } from './source-data-scripts.ts'
import { createSourceStatus } from './source-status.ts'

/**
 * All that is stored under the name of one source: what it has seen, spent, learned, withheld and quarantined. It can be
 * moved to another name of the same account.
 */
export interface SourceData {
  /** undefined where nothing is stored, or another process polls the source. */
  left(source: string): Promise<SourceDataLeft | undefined>
  /** Whether the source has ever polled. */
  exists(source: string): Promise<boolean>
  /** Whether `source` began to poll before the last poll of `other`; false where that is not known. */
  overlapped(source: string, other: string): Promise<boolean>
  /**
   * Moves all data of `from` to `to`. With `replace`, data that `to` has already is replaced: of units, withheld alerts and
   * rows quarantined both are kept, the rest is that of `from`.
   */
  carryOver(from: string, to: string, options: CarryOver): Promise<CarriedOver>
  /** Whether a source has data that is too old to be replaced. */
  isOld(source: string): Promise<boolean>
  /** The units that `from` spent in these days count for `to` too, unless it has counted some itself. */
  copyUnits(from: string, to: string): Promise<void>
  /** From now on the units that both spend in these days are counted together: they are of one account. */
  countWith(from: string, to: string): Promise<void>
  /** Removes all but the units of these days; with `accountHash` it also keeps whose account they are of. */
  drop(source: string, accountHash?: string): Promise<'done' | 'polled'>
}

interface CarryOver {
  /** Of the account of `to`; see `hashAccount`. */
  readonly accountHash?: string | undefined
  /** What the config calls the account, where `to` shares its units with others. */
  readonly account?: string | undefined
  readonly replace?: boolean
  /** Stored in the same step, so that a process that is killed leaves it to the others. */
  readonly notice?: UnsentNotice | undefined
}

/** `polled`: another process polls `from`; `taken`: `to` has data; `old`: its data is too old to be replaced. */
type CarriedOver = 'done' | 'nothing' | 'polled' | 'taken' | 'old'

export interface SourceDataLeft {
  readonly rows: number
  readonly held: number
  readonly quarantined: number
  readonly lastPollAtMs: number | null
}

/**
 * Alerts that were sent under the new name meanwhile are recognised by their job records, which are kept for a day (at
 * least the newest 10,000).
 */
const replaceableMs = 24 * 3_600_000

export function createSourceData(redis: RedisClient, prefix: string): SourceData {
  return {
    async left(source) {
      const keys = sourceKeys(prefix, source)
      const [polled, known, rows, held, quarantined, status] = await Promise.all([
        redis.exists(leaseKey(prefix, source)),
        redis.exists(keys.meta, keys.held, keys.quarantined),
        redis.eval(seenRowsScript, 1, keys.seen),
        redis.hlen(keys.held),
        redis.hlen(keys.quarantined),
        createSourceStatus({ redis, prefix, source }).load(),
      ])
      if (polled === 1 || known === 0) return undefined
      return { rows: Number(rows), held, quarantined, lastPollAtMs: status?.lastPollAtMs ?? null }
    },
    async exists(source) {
      return (await redis.exists(sourceKeys(prefix, source).meta)) === 1
    },
    async overlapped(source, other) {
      const [createdMs, status] = await Promise.all([
        redis.hget(sourceKeys(prefix, source).meta, 'createdMs'),
        createSourceStatus({ redis, prefix, source: other }).load(),
      ])
      return createdMs !== null && Number(createdMs) < (status?.lastPollAtMs ?? 0)
    },
    async carryOver(from, to, { accountHash, account, replace = false, notice }) {
      const pairs = pairsOf(prefix, from, to)
      const units = unitsOf(prefix, from, to)
      const keys = [sourceNamesKey(prefix), leaseKey(prefix, from), leaseKey(prefix, to)]
      const answer = await redis.eval(
        carryOverScript,
        keys.length + 2 * pairs.length + units.length + 1,
        ...keys,
        ...pairs.flatMap((pair) => [pair.from, pair.to]),
        ...units,
        noticesKey(prefix),
        ...[from, to, storedSource({ accountHash }), replace ? replaceableMs : 0],
        ...[unitsKeptMs, pairs.length],
        ...pairs.map(({ rule }) => rule),
        ...(notice === undefined ? [] : [unsentKeptMs, notice.id, JSON.stringify(notice)]),
      )
      // Otherwise the units would count for this source alone.
      await joinAccount(redis, { prefix, source: to, account }, possibleDays(Date.now()))
      return answer as CarriedOver
    },
    async isOld(source) {
      const [id, createdMs] = await redis.hmget(sourceKeys(prefix, source).meta, 'id', 'createdMs')
      return id != null && Date.now() - Number(createdMs ?? 0) > replaceableMs
    },
    async copyUnits(from, to) {
      const [here, there] = [sourceKeys(prefix, from), sourceKeys(prefix, to)]
      for (const day of possibleDays(Date.now()))
        await redis.copy(await unitsKeyOf(redis, { prefix, source: from }, day), there.units(day))
      await redis.copy(here.spendsIn, there.spendsIn)
    },
    async countWith(from, to) {
      const units = unitsOf(prefix, from, to)
      await redis.eval(joinUnitsScript, units.length, ...units, unitsKeptMs)
    },
    async drop(source, accountHash) {
      // Spent units still count if the name comes back today; these counts expire by themselves.
      const { units: _, spendsIn, ...keys } = sourceKeys(prefix, source)
      const all = Object.values(keys)
      const first = [sourceNamesKey(prefix), leaseKey(prefix, source)]
      const known = accountHash === undefined ? '' : storedSource({ accountHash, dropped: true })
      const answer = await redis.eval(
        dropSourceScript,
        first.length + all.length,
        ...first,
        ...all,
        source,
        known,
      )
      if (answer !== 1) return 'polled'
      await redis.pexpire(spendsIn, unitsKeptMs)
      return 'done'
    },
  }
}

/** A hash by which an account is recognised under another name, without its token. */
export function hashAccount(prefix: string, baseUrl: string, token: string): string {
  const address = baseUrl.replace(/\/+$/, '').toLowerCase()
  return createHmac('sha256', `alert-bridge account ${prefix}`).update(`${address}\n${token}`).digest('hex')
}

/** What to do with a key that both names have. `over`: keep that of the old name; the others: merge both. */
type MergeRule = 'over' | 'fields' | 'union'

interface Pair {
  readonly from: string
  readonly to: string
  readonly rule: MergeRule
}

/** The pair of `meta` comes first: by it the script checks whether data exists. */
function pairsOf(prefix: string, from: string, to: string): Pair[] {
  const { units: _from, meta: metaFrom, ...here } = sourceKeys(prefix, from)
  const { units: _to, meta: metaTo, ...there } = sourceKeys(prefix, to)
  const names = Object.keys(here) as (keyof typeof here)[]
  return [
    { from: metaFrom, to: metaTo, rule: 'over' },
    ...names.map((name) => ({ from: here[name], to: there[name], rule: joined[name] ?? 'over' })),
  ]
}

/** For each day the units of both, and what is joined on it. */
function unitsOf(prefix: string, from: string, to: string): string[] {
  const [here, there] = [sourceKeys(prefix, from), sourceKeys(prefix, to)]
  return possibleDays(Date.now()).flatMap((day) => [
    here.units(day),
    there.units(day),
    joinedUnitsKey(prefix, day),
  ])
}

const joined: Readonly<Record<string, MergeRule>> = {
  minute: 'union',
  held: 'fields',
  heldTimes: 'union',
  quarantined: 'fields',
  quarantinedTimes: 'union',
}

/** Every day whose units may still count, whatever the time zone. */
function possibleDays(nowMs: number): string[] {
  const dayMs = 24 * 3_600_000
  return [-4, -3, -2, -1, 0, 1, 2].map((days) => new Date(nowMs + days * dayMs).toISOString().slice(0, 10))
}
