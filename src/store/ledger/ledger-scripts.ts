import { namedArgs } from '../named-args.ts'
import { joinedUnits } from './account.ts'

/** The scripts of `ledger.ts`. Each is one indivisible reservation, hold or reading; all keys share a hash tag. */

export type ReserveReply = [
  kind: 'ok' | 'held' | 'spent' | 'share' | 'api_day' | 'minute' | 'lease' | 'moved',
  limit: 'minute' | 'budget',
  wait: number,
  used: number,
  /** ok: used of the API's own day; share: used of what the purpose may use. */
  more?: number,
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

export const reserveArgs = namedArgs(
  'unitsMax',
  'requestsMax',
  'cost',
  'purpose',
  // The length of the minute, and how long the counts are kept.
  'minuteMs',
  'keptMs',
  // Empty where the call is no poller's.
  'leaseToken',
  // No other request has this name.
  'request',
  // By the clock of the caller days turn, and half hours.
  'callerMs',
  'halfHour',
  'holdMsMax',
  // Empty where the source has none.
  'account',
  // The units of a day that this purpose may use, or -1, and the purposes that use them together.
  'purposeUnitsMax',
  'purposes',
  'apiDayUnitsMax',
  // How many days it is charged to, and the first half hour of the day that runs.
  'daysCharged',
  'firstHalf',
)

/**
 * KEYS hold, minute, lease, the API's own day, spendsIn, units of the day and what is joined on it, optionally the same of
 *   the neighbouring day, then of the other dates under which replicas with another config may count
 * ARGV reserveArgs, then for each day that is charged what the caller knows to be used of it: Redis may have lost that
 * Moved: the source now counts in the ledger of another account; the caller has to join that one first.
 * Returns {kind, limit, wait in ms (kind spent or share: which of the days is full, from 1), units used of the day, and where
 *   it is ok those of the API's own day, or -1; where it is share, those of the purposes}
 */
export const reserveScript = `${holdLeft}${joinedUnits}
${reserveArgs.locals}
cost = tonumber(cost)
local hold, minute, lease, apiDay, spendsIn = unpack(KEYS, 1, 5)
local days, sinceStart = {}, 0
for at = 6, #KEYS, 2 do
  local units = unitsOf(KEYS[at + 1], KEYS[at])
  if #days < tonumber(daysCharged) then days[#days + 1] = units end
  local fields = redis.call('HGETALL', units)
  for field = 1, #fields, 2 do
    local half = tonumber(string.match(fields[field], '^half:(%d+)$'))
    if half and half >= tonumber(firstHalf) then sinceStart = sinceStart + fields[field + 1] end
  end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function usedOf(day)
  local used = math.max(tonumber(redis.call('HGET', days[day], 'used') or '0'), tonumber(ARGV[${reserveArgs.count} + day]))
  return day == 1 and math.max(used, sinceStart) or used
end
local used = usedOf(1)
if leaseToken ~= '' and redis.call('GET', lease) ~= leaseToken then return {'lease', '', 0, used} end
if (redis.call('GET', spendsIn) or '') ~= account then return {'moved', '', 0, used} end
local left = holdLeft(hold, now, tonumber(holdMsMax))
if left > 0 then return {'held', redis.call('HGET', hold, 'limit'), left, used} end
for day = 1, #days do
  if usedOf(day) + cost > tonumber(unitsMax) then return {'spent', 'budget', day, used} end
  local share = 0
  for name in string.gmatch(purposes, '%S+') do share = share + (redis.call('HGET', days[day], name) or 0) end
  if purposeUnitsMax ~= '-1' and share + cost > tonumber(purposeUnitsMax) then return {'share', 'budget', day, used, share} end
end
local dayMs = 86400000
local reset = tonumber(redis.call('HGET', apiDay, 'resetsAtMs'))
local start = reset and string.format('%.0f', reset + math.floor((callerMs - reset) / dayMs) * dayMs)
if reset then
  local ofToday = redis.call('HGET', apiDay, 'startMs') == start
  local usedToday = ofToday and tonumber(redis.call('HGET', apiDay, 'used')) or 0
  if usedToday + cost > tonumber(apiDayUnitsMax) then return {'api_day', 'budget', start + dayMs - callerMs, used} end
end
redis.call('ZREMRANGEBYSCORE', minute, '-inf', now - minuteMs)
for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', minute, '(' .. now, '+inf')) do redis.call('ZADD', minute, now, ahead) end
local requests = redis.call('ZCARD', minute)
local max = tonumber(requestsMax)
if requests >= max then
  local frees = redis.call('ZRANGE', minute, requests - max, requests - max, 'WITHSCORES')
  return {'minute', 'minute', frees[2] + minuteMs - now + 1, used}
end
redis.call('ZADD', minute, now, request)
redis.call('PEXPIRE', minute, minuteMs)
for day, units in ipairs(days) do
  redis.call('HSET', units, 'used', usedOf(day) + cost)
  redis.call('HINCRBY', units, purpose, cost)
  redis.call('PEXPIRE', units, keptMs)
end
redis.call('HINCRBY', days[1], halfHour, cost)
local apiUsed = -1
if reset then
  if redis.call('HGET', apiDay, 'startMs') ~= start then
    for _, field in ipairs(redis.call('HKEYS', apiDay)) do
      if string.sub(field, 1, 4) == 'for:' then redis.call('HDEL', apiDay, field) end
    end
    redis.call('HSET', apiDay, 'startMs', start, 'used', 0)
  end
  apiUsed = redis.call('HINCRBY', apiDay, 'used', cost)
  redis.call('HINCRBY', apiDay, 'for:' .. purpose, cost)
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
