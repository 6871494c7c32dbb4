import type { RedisClient } from '../connection/redis.ts'
import { accountKeys, joinedUnitsKey, type SpendingKeys, sourceKeys, unitsKeptMs } from '../keys.ts'

/** Whose units, requests and holds are counted together: those of one source, or of all sources of one account. */
export interface Spender {
  readonly prefix: string
  readonly source: string
  readonly account?: string | undefined
}

export function spendingKeys({ prefix, source, account }: Spender): SpendingKeys {
  return account === undefined ? sourceKeys(prefix, source) : accountKeys(prefix, account)
}

/**
 * What a source has spent still counts when the config names another account for it, a first one, or none any more: from
 * then until the end of the next budget day the old ledgers and the new one are counted as one. So no unit is granted
 * twice, whatever replicas with other configs reserve in either, and none is counted twice when the source goes back.
 * Accounts that are really two share the units of those days. A second call changes nothing.
 */
export async function joinAccount(
  redis: RedisClient,
  { prefix, source, account = '' }: Spender,
  days: readonly string[],
): Promise<void> {
  const { spendsIn } = sourceKeys(prefix, source)
  const before = (await redis.get(spendsIn)) ?? ''
  const ledgerOf = (name: string) =>
    spendingKeys(name === '' ? { prefix, source } : { prefix, source, account: name })
  if (account === '' && before === '') return
  const there = ledgerOf(account)
  const names = [...new Set(['', before])].filter((name) => name !== account)
  const left = names.map(ledgerOf)
  const keys = [
    spendsIn,
    ...[there, ...left].flatMap(({ minute, hold }) => [minute, hold]),
    ...days.flatMap((day) => [
      joinedUnitsKey(prefix, day),
      ...[there, ...left].map(({ units }) => units(day)),
    ]),
  ]
  const own = names.indexOf('') + 1
  await redis.eval(joinScript, keys.length, ...keys, before, account, unitsKeptMs, left.length, own)
}

/** The days whose units are still counted or read, also under the dates of zones and resets that are most of a day apart. */
export function daysAround(
  nowMs: number,
  budgetDay: (atMs: number) => { readonly key: string; readonly startMs: number; readonly endMs: number },
): string[] {
  const today = budgetDay(nowMs)
  const before = budgetDay(today.startMs - 1)
  const next = budgetDay(today.endMs)
  const days = [budgetDay(next.endMs), next, today, before, budgetDay(before.startMs - 1)]
  return [...new Set(days.map(({ key }) => key))]
}

/** The key that the units of a ledger are counted under on this day. */
export async function unitsKeyOf(
  redis: RedisClient,
  { prefix, ...spender }: Spender,
  dayKey: string,
): Promise<string> {
  const own = spendingKeys({ prefix, ...spender }).units(dayKey)
  return (await redis.hget(joinedUnitsKey(prefix, dayKey), own)) ?? own
}

/**
 * Lua: `unitsOf(joined, key)` returns the key that units are counted under, `joinUnits` counts the units of two ledgers
 * together for a day.
 */
export const joinedUnits = `
local function unitsOf(joined, key) return redis.call('HGET', joined, key) or key end
local function joinUnits(joined, from, into, ttlMs)
  local left, right = unitsOf(joined, from), unitsOf(joined, into)
  if left == right then return end
  local fields = redis.call('HGETALL', left)
  for field = 1, #fields, 2 do
    if string.sub(fields[field], 1, 5) ~= 'from:' then redis.call('HINCRBY', right, fields[field], fields[field + 1]) end
  end
  if #fields > 0 then redis.call('PEXPIRE', right, ttlMs) end
  local known = redis.call('HGETALL', joined)
  for field = 1, #known, 2 do
    if known[field + 1] == left then redis.call('HSET', joined, known[field], right) end
  end
  redis.call('HSET', joined, left, right)
  redis.call('PEXPIRE', joined, ttlMs)
end`

/**
 * KEYS spendsIn, then minute and hold of the ledger that the source comes to and of each that it leaves, then for each day
 * what is joined on it, and the units of those ledgers
 * ARGV the account where the source counted, the one where it counts now, expiry of the counts (ms), how many it leaves,
 *   which of these is its own ledger (from 1; 0: none)
 * Returns nothing, and changes nothing where another replica has joined or moved the source already.
 */
const joinScript = `${joinedUnits}
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return end
local leaves, own = tonumber(ARGV[4]), tonumber(ARGV[5])
for ledger = 1, leaves do
  local minute, hold = KEYS[2 + 2 * ledger], KEYS[3 + 2 * ledger]
  if redis.call('EXISTS', minute) == 1 then
    local ttlMs = math.max(redis.call('PTTL', minute), redis.call('PTTL', KEYS[2]))
    redis.call('ZUNIONSTORE', KEYS[2], 2, KEYS[2], minute, 'AGGREGATE', 'MAX')
    if ttlMs > 0 then redis.call('PEXPIRE', KEYS[2], ttlMs) end
  end
  if redis.call('PTTL', hold) > redis.call('PTTL', KEYS[3]) then redis.call('COPY', hold, KEYS[3], 'REPLACE') end
  if ledger == own then redis.call('DEL', minute, hold) end
end
for day = 4 + 2 * leaves, #KEYS, 2 + leaves do
  for ledger = 1, leaves do
    joinUnits(KEYS[day], KEYS[day + 1 + ledger], KEYS[day + 1], ARGV[3])
    if ledger == own and unitsOf(KEYS[day], KEYS[day + 1]) ~= KEYS[day + 1 + ledger] then redis.call('DEL', KEYS[day + 1 + ledger]) end
  end
end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
`
