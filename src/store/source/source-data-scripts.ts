import { joinedUnits } from '../ledger/account.ts'
import { storeNotice } from '../operators/unsent-notices.ts'

/** The scripts of `source-data.ts`. All keys of one prefix share a hash tag. */

/**
 * KEYS names of sources, the lease of the old name, that of the new one, then pairs of keys: of the old name, of the new
 * one; those of meta first, then for each day units of the old name, of the new one, and what is joined; unsent notices
 * ARGV old name, new name, what is known of the new one as JSON, up to which age (ms) data of the new one may be replaced
 * (0: never), expiry of the counts (ms), how many pairs there are, then for each pair its merge rule; then of a notice, if
 * there is one, expiry (ms), id and JSON
 * Returns done, nothing, polled, taken or old. A poller that works under the new name loses its lease, and its next change
 * is refused, because the stored walk has another id: it begins again with what is there now. The stored walk names all
 * that it replaced, so that no process reports a loss, also one that did not look between two moves.
 */
export const carryOverScript = `${joinedUnits}
local pairsEnd = 3 + 2 * tonumber(ARGV[6])
if redis.call('EXISTS', KEYS[2]) == 1 then return 'polled' end
local there = 0
for index = 4, pairsEnd, 2 do there = there + redis.call('EXISTS', KEYS[index]) end
for day = pairsEnd + 1, #KEYS - 1, 3 do there = there + redis.call('EXISTS', unitsOf(KEYS[day + 2], KEYS[day])) end
if there == 0 then return 'nothing' end
local replaced = {}
for _, field in ipairs({'id', 'replacedId'}) do
  local known = redis.call('HGET', KEYS[5], field)
  if known then table.insert(replaced, known) end
end
if redis.call('EXISTS', KEYS[5]) == 1 then
  if ARGV[4] == '0' then return 'taken' end
  local time = redis.call('TIME')
  local created = tonumber(redis.call('HGET', KEYS[5], 'createdMs') or 0)
  if time[1] * 1000 - created > tonumber(ARGV[4]) then return 'old' end
  redis.call('DEL', KEYS[3])
end
for index = 4, pairsEnd, 2 do
  local from, to, how = KEYS[index], KEYS[index + 1], ARGV[6 + (index - 2) / 2]
  if redis.call('EXISTS', from) == 1 then
    if how ~= 'over' and redis.call('EXISTS', to) == 1 then
      local ttlMs = math.max(redis.call('PTTL', from), redis.call('PTTL', to))
      if how == 'union' then
        redis.call('ZUNIONSTORE', from, 2, from, to, 'AGGREGATE', 'MAX')
      else
        local fields = redis.call('HGETALL', to)
        for field = 1, #fields, 2 do
          redis.call('HSETNX', from, fields[field], fields[field + 1])
        end
      end
      if ttlMs > 0 then redis.call('PEXPIRE', from, ttlMs) end
    end
    redis.call('RENAME', from, to)
  end
end
if #replaced > 0 then redis.call('HSET', KEYS[5], 'replacedId', table.concat(replaced, ' ')) end
for day = pairsEnd + 1, #KEYS - 1, 3 do
  local from, to, joined = KEYS[day], KEYS[day + 1], KEYS[day + 2]
  joinUnits(joined, from, to, ARGV[5])
  -- No other source counts under this key: the old name, if it comes back, begins at 0.
  if unitsOf(joined, from) == unitsOf(joined, to) and redis.call('EXISTS', from) == 1 and unitsOf(joined, from) ~= from then
    redis.call('DEL', from)
    redis.call('HDEL', joined, from)
  end
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
local given = 6 + ARGV[6]
if ARGV[given + 1] then
  ${storeNotice('KEYS[#KEYS]', 'ARGV[given + 2]', 'ARGV[given + 3]')}
  redis.call('PEXPIRE', KEYS[#KEYS], ARGV[given + 1])
end
return 'done'
`

/**
 * KEYS, for each day: units of one ledger, of another, and what is joined · ARGV expiry of the counts (ms) · Counts both
 * together.
 */
export const joinUnitsScript = `${joinedUnits}
for day = 1, #KEYS, 3 do joinUnits(KEYS[day + 2], KEYS[day], KEYS[day + 1], ARGV[1]) end
`

/**
 * KEYS names of sources, the lease, then the keys to remove · ARGV its name, the JSON to keep of it or ''
 * Returns 0 when a process polls it.
 */
export const dropSourceScript = `
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
for index = 3, #KEYS do redis.call('UNLINK', KEYS[index]) end
if ARGV[2] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) else redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1
`

/** KEYS seen rows · Returns how many there are; a source that left the config has them as the version that polled it stored them. */
export const seenRowsScript = `
return redis.call(redis.call('TYPE', KEYS[1]).ok == 'zset' and 'ZCARD' or 'HLEN', KEYS[1])
`
