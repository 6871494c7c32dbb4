import { joinedUnits } from './account.ts'

/** The scripts of `ledger.ts`. Each is one indivisible reservation, hold or reading; all keys share a hash tag. */

export type ReserveReply = [
  kind: 'ok' | 'held' | 'spent' | 'share' | 'api_day' | 'minute' | 'lease' | 'moved',
  limit: 'minute' | 'budget',
  wait: number,
  used: number,
  apiDayUsed?: number,
]

/**
 * How long a hold still lasts, by Redis' clock. Where that clock was set back, a hold lasts no longer than its own length
 * from now, and never longer than `longest`, whichever version wrote it. For the same reason requests of the minute are
 * moved to now where they are later.
 */
const holdLeft = `
local function holdLeft(key, now, longest)
  local left = tonumber(redis.call('HGET', key, 'untilMs') or '0') - now
  local length = math.min(tonumber(redis.call('HGET', key, 'forMs') or left), longest)
  if left <= length then return left end
  redis.call('HSET', key, 'untilMs', now + length)
  redis.call('PEXPIREAT', key, now + length)
  return length
end`

/**
 * KEYS hold, minute, lease, the API's own day, spendsIn, units of the day and what is joined on it, optionally the same of
 *   the neighbouring day, then of the other dates under which replicas with another config may count
 * ARGV units max, requests a minute, cost, purpose, length of the minute (ms), expiry of the counts (ms), lease token or '',
 *   a name for this request that no other has, the time of the caller (ms), by whose clock days turn,
 *   the field of its half hour, the longest that a hold lasts (ms), the account or '', the units that this purpose may use
 *   of a day or -1, the purposes that use them together, the units that may be used of the API's own day, how many
 *   days it is charged to, the first half hour of the day, then for each day what the caller knows to be used of it: Redis may
 *   have lost that
 * Moved: the source now counts in the ledger of another account; the caller has to join that one first.
 * Returns {kind, limit, wait in ms (kind spent or share: which of the days is full, from 1), units used of the day, and where
 *   it is ok those of the API's own day, or -1}
 */
export const reserveScript = `${holdLeft}${joinedUnits}
local days, sinceStart = {}, 0
for at = 6, #KEYS, 2 do
  local units = unitsOf(KEYS[at + 1], KEYS[at])
  if #days < tonumber(ARGV[16]) then days[#days + 1] = units end
  local fields = redis.call('HGETALL', units)
  for field = 1, #fields, 2 do
    local half = tonumber(string.match(fields[field], '^half:(%d+)$'))
    if half and half >= tonumber(ARGV[17]) then sinceStart = sinceStart + fields[field + 1] end
  end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local cost = tonumber(ARGV[3])
local function usedOf(day)
  local used = math.max(tonumber(redis.call('HGET', days[day], 'used') or '0'), tonumber(ARGV[17 + day]))
  return day == 1 and math.max(used, sinceStart) or used
end
local used = usedOf(1)
if ARGV[7] ~= '' and redis.call('GET', KEYS[3]) ~= ARGV[7] then return {'lease', '', 0, used} end
if (redis.call('GET', KEYS[5]) or '') ~= ARGV[12] then return {'moved', '', 0, used} end
local left = holdLeft(KEYS[1], now, tonumber(ARGV[11]))
if left > 0 then return {'held', redis.call('HGET', KEYS[1], 'limit'), left, used} end
for day = 1, #days do
  if usedOf(day) + cost > tonumber(ARGV[1]) then return {'spent', 'budget', day, used} end
  local share = 0
  for name in string.gmatch(ARGV[14], '%S+') do share = share + (redis.call('HGET', days[day], name) or 0) end
  if ARGV[13] ~= '-1' and share + cost > tonumber(ARGV[13]) then return {'share', 'budget', day, used} end
end
local reset = tonumber(redis.call('HGET', KEYS[4], 'resetsAtMs'))
local start = reset and string.format('%.0f', reset + math.floor((ARGV[9] - reset) / 86400000) * 86400000)
if reset then
  local ofToday = redis.call('HGET', KEYS[4], 'startMs') == start
  local usedToday = ofToday and tonumber(redis.call('HGET', KEYS[4], 'used')) or 0
  if usedToday + cost > tonumber(ARGV[15]) then return {'api_day', 'budget', start + 86400000 - ARGV[9], used} end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[5])
for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf')) do redis.call('ZADD', KEYS[2], now, ahead) end
local requests = redis.call('ZCARD', KEYS[2])
local max = tonumber(ARGV[2])
if requests >= max then
  local frees = redis.call('ZRANGE', KEYS[2], requests - max, requests - max, 'WITHSCORES')
  return {'minute', 'minute', frees[2] + ARGV[5] - now + 1, used}
end
redis.call('ZADD', KEYS[2], now, ARGV[8])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
for day, units in ipairs(days) do
  redis.call('HSET', units, 'used', usedOf(day) + cost)
  redis.call('HINCRBY', units, ARGV[4], cost)
  redis.call('PEXPIRE', units, ARGV[6])
end
redis.call('HINCRBY', days[1], ARGV[10], cost)
local apiUsed = -1
if reset then
  if redis.call('HGET', KEYS[4], 'startMs') ~= start then
    for _, field in ipairs(redis.call('HKEYS', KEYS[4])) do
      if string.sub(field, 1, 4) == 'for:' then redis.call('HDEL', KEYS[4], field) end
    end
    redis.call('HSET', KEYS[4], 'startMs', start, 'used', 0)
  end
  apiUsed = redis.call('HINCRBY', KEYS[4], 'used', cost)
  redis.call('HINCRBY', KEYS[4], 'for:' .. ARGV[4], cost)
end
return {'ok', '', 0, used + cost, apiUsed}
`

/**
 * KEYS minute · ARGV the name of the request, length of the minute (ms) · Returns nothing. Also a request that has left the minute
 * meanwhile: its process was frozen before it made the call.
 */
export const endedScript = `
local time = redis.call('TIME')
redis.call('ZADD', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
`

/**
 * KEYS hold · ARGV limit, length (ms) · Returns nothing. Redis' clock alone: replicas may disagree on the time.
 */
export const holdScript = `
local time = redis.call('TIME')
local untilMs = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2]
if untilMs <= tonumber(redis.call('HGET', KEYS[1], 'untilMs') or '0') then return end
redis.call('HSET', KEYS[1], 'limit', ARGV[1], 'untilMs', untilMs, 'forMs', ARGV[2])
redis.call('PEXPIREAT', KEYS[1], untilMs)
`

/** KEYS hold · ARGV the longest that it lasts (ms) · Returns {limit or '', time left in ms} */
export const heldScript = `${holdLeft}
local time = redis.call('TIME')
local left = holdLeft(KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[1]))
if left <= 0 then return {'', 0} end
return {redis.call('HGET', KEYS[1], 'limit'), left}
`
