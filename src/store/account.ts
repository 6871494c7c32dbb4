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
 * What a source has spent on its own counts for its account from now on, so that a config which names the account does
 * not grant a day's units a second time. Asked for again, it changes nothing.
 */
export async function joinAccount(
  redis: RedisClient,
  { prefix, source, account }: Spender,
  days: readonly string[],
): Promise<void> {
  if (account === undefined) return
  const [own, shared] = [sourceKeys(prefix, source), accountKeys(prefix, account)]
  const keys = [own.minute, shared.minute, own.hold, shared.hold]
  for (const day of days) keys.push(own.units(day), shared.units(day))
  await redis.eval(joinScript, keys.length, ...keys, unitsKeptMs)
}

/** KEYS minute, hold, and units of each day: each the own key, then the shared one · ARGV life of the counts (ms) */
const joinScript = `
if redis.call('EXISTS', KEYS[1]) == 1 then
  local lives = math.max(redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2]))
  redis.call('ZUNIONSTORE', KEYS[2], 2, KEYS[2], KEYS[1], 'AGGREGATE', 'MAX')
  if lives > 0 then redis.call('PEXPIRE', KEYS[2], lives) end
  redis.call('DEL', KEYS[1])
end
if redis.call('PTTL', KEYS[3]) > redis.call('PTTL', KEYS[4]) then redis.call('RENAME', KEYS[3], KEYS[4]) end
redis.call('DEL', KEYS[3])
for day = 5, #KEYS, 2 do
  local spent = redis.call('HGETALL', KEYS[day])
  for field = 1, #spent, 2 do redis.call('HINCRBY', KEYS[day + 1], spent[field], spent[field + 1]) end
  if #spent > 0 then redis.call('PEXPIRE', KEYS[day + 1], ARGV[1]) end
  redis.call('DEL', KEYS[day])
end
`
