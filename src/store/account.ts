import { accountKeys, type SpendingKeys, sourceKeys, unitsKeptMs } from './keys.ts'
import type { RedisClient } from './redis.ts'

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
 * What a source has spent goes on to count where the config names another account for it, a first one, or none any more,
 * so that this grants no day's units a second time. What it alone had spent is moved. The ledger of an account that it
 * leaves is copied, since others may go on there; what was copied is written down, so that it is not added twice when
 * they come after it or it goes back. Asked for again, it changes nothing.
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
  const there = ledgerOf(account)
  const left = [...new Set(['', before])].filter((name) => name !== account)
  if (account === '' && before === '') return
  for (const name of left) {
    const here = ledgerOf(name)
    const keys = [spendsIn, here.minute, there.minute, here.hold, there.hold]
    for (const day of days) keys.push(here.units(day), there.units(day))
    await redis.eval(
      joinScript,
      keys.length,
      ...keys,
      before,
      name,
      account,
      unitsKeptMs,
      String(name === left.at(-1)),
    )
  }
}

/**
 * KEYS spendsIn, then of the ledger that is left and of the other: minute, hold, and units of each day
 * ARGV the account where the source counted, names of the two accounts ('' is its own ledger), life of the counts (ms),
 *   whether from now on the source counts in the other one: in the same breath, so that nothing is spent in between
 * Returns nothing; somebody else was faster where the source counts elsewhere by now.
 */
const joinScript = `
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return end
local left, other, isOwn = ARGV[2], ARGV[3], ARGV[2] == ''
if redis.call('EXISTS', KEYS[2]) == 1 then
  local lives = math.max(redis.call('PTTL', KEYS[2]), redis.call('PTTL', KEYS[3]))
  redis.call('ZUNIONSTORE', KEYS[3], 2, KEYS[3], KEYS[2], 'AGGREGATE', 'MAX')
  if lives > 0 then redis.call('PEXPIRE', KEYS[3], lives) end
end
if redis.call('PTTL', KEYS[4]) > redis.call('PTTL', KEYS[5]) then redis.call('COPY', KEYS[4], KEYS[5], 'REPLACE') end
if isOwn then redis.call('DEL', KEYS[2], KEYS[4]) end
for day = 6, #KEYS, 2 do
  local fields, spent = redis.call('HGETALL', KEYS[day]), {}
  for field = 1, #fields, 2 do spent[fields[field]] = tonumber(fields[field + 1]) end
  for field, count in pairs(spent) do
    if string.sub(field, 1, 5) ~= 'from:' then
      local taken = 'from:' .. left .. ':' .. field
      local back = spent['from:' .. other .. ':' .. field] or 0
      local added = count - back - tonumber(redis.call('HGET', KEYS[day + 1], taken) or '0')
      if added > 0 then
        redis.call('HINCRBY', KEYS[day + 1], field, added)
        if not isOwn then redis.call('HINCRBY', KEYS[day + 1], taken, added) end
      end
    end
  end
  if #fields > 0 then redis.call('PEXPIRE', KEYS[day + 1], ARGV[4]) end
  if isOwn then redis.call('DEL', KEYS[day]) end
end
if ARGV[5] ~= 'true' then return end
if other == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], other) end
`
