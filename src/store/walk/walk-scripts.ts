import { serverRun } from '../connection/server-run.ts'
import { namedArgs } from '../named-args.ts'

/** The scripts of `walk-state.ts`. Each is one indivisible change or reading; all keys share a hash tag. */

const dayMs = 86_400_000

/**
 * KEYS meta, seen, uncovered, stretch, quarantine, quarantined, quarantinedTimes, seenDays
 * ARGV new id, id of a stored walk to replace (or ''), scope as JSON, the server that a first one may be made at (or '')
 * Returns: whether it was made now, number of seen rows, fields of meta, open stretches as JSON ('' without); -1 first, and nothing is
 * made, where there is none and this is another server, or another run of it.
 *
 * Numbers of stretches continue above those that are stored of rows, so that an old row never counts to a new stretch. What an
 * earlier version quarantined is moved; its entries are read as text, because cjson refuses half characters. What an earlier version
 * stored of seen rows, a sorted set by time, is stored anew.
 */
export const openScript = `
local id = redis.call('HGET', KEYS[1], 'id')
if not id and ARGV[4] ~= '' and (${serverRun}) ~= ARGV[4] then return {-1, 0, {}, ''} end
local created = 0
if not id or id == ARGV[2] then
  local time = redis.call('TIME')
  local top = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  redis.call('DEL', KEYS[1], KEYS[4])
  redis.call('HSET', KEYS[1], 'id', ARGV[1], 'version', 0, 'runs', top[2] or 0, 'scope', ARGV[3],
    'createdMs', time[1] * 1000 + math.floor(time[2] / 1000))
  created = 1
end
for _, entry in ipairs(redis.call('LRANGE', KEYS[5], 0, -1)) do
  local key, at = string.match(entry, '^{"key":"([^"]+)"'), string.match(entry, '"atMs":(%d+)}$')
  if key and at and redis.call('ZADD', KEYS[7], 'NX', at, key) == 1 then redis.call('HSET', KEYS[6], key, entry) end
end
redis.call('DEL', KEYS[5])
if redis.call('TYPE', KEYS[2]).ok == 'zset' then
  local byTime = KEYS[2] .. ':by-time'
  redis.call('RENAME', KEYS[2], byTime)
  -- It has days only where this memory was put in the place of another.
  redis.call('DEL', KEYS[8])
  local days = {}
  for first = 0, redis.call('ZCARD', byTime) - 1, 1000 do
    local rows = redis.call('ZRANGE', byTime, first, first + 999, 'WITHSCORES')
    for index = 2, #rows, 2 do
      local day = math.floor(rows[index] / ${dayMs})
      rows[index] = day
      days[day] = (days[day] or 0) + 1
    end
    redis.call('HSET', KEYS[2], unpack(rows))
  end
  for day, rows in pairs(days) do redis.call('HSET', KEYS[8], day, rows) end
  redis.call('UNLINK', byTime)
end
return {created, redis.call('HLEN', KEYS[2]), redis.call('HGETALL', KEYS[1]), redis.call('GET', KEYS[4]) or ''}
`

/**
 * KEYS meta, seen, uncovered, stretch, quarantinedTimes · ARGV keys of rows
 * Returns: fields of meta, open stretches as JSON, of each row its day in seen, its score in uncovered and in quarantinedTimes, the
 * server.
 */
export const lookScript = `
local seen, uncovered, quarantined = {}, {}, {}
if #ARGV > 0 then
  -- Until this version polls, the rows are stored as an earlier version did.
  local byTime = redis.call('TYPE', KEYS[2]).ok == 'zset'
  seen = redis.call(byTime and 'ZMSCORE' or 'HMGET', KEYS[2], unpack(ARGV))
  uncovered = redis.call('ZMSCORE', KEYS[3], unpack(ARGV))
  quarantined = redis.call('ZMSCORE', KEYS[5], unpack(ARGV))
  local forgottenDay = tonumber(redis.call('HGET', KEYS[1], 'forgottenDay') or '-1')
  for index = 1, #ARGV do
    if seen[index] and tonumber(seen[index]) <= forgottenDay then seen[index] = false end
  end
end
return {redis.call('HGETALL', KEYS[1]), redis.call('GET', KEYS[4]) or '', seen, uncovered, quarantined, ${serverRun}}
`

export const commitArgs = namedArgs(
  // Of the stored walk that the change was decided on.
  'baseId',
  'baseVersion',
  'changeJson',
  'seenWindowMs',
  // Rows that one commit looks at, to remove those that are forgotten.
  'scanned',
  // Of quarantined rows that are kept.
  'badMax',
  'badBytesMax',
  'callerMs',
  // The newest rows, which are kept however old they are.
  'rowsKept',
  'halfHour',
  'oldestHalfHour',
  // Empty where it is not known.
  'lookedAtServer',
)

/**
 * KEYS meta, seen, uncovered, stretch, sweep, quarantined, quarantinedTimes, seenByHalfHour, seenDays · ARGV commitArgs
 * Returns: done, raced, replaced or lost; how many rows were new; the version of the stretches after it; how many rows were
 * removed from those quarantined.
 *
 * Replaced, too, where this is another server, or another run of it: the jobs of these rows were stored at the one before, and may
 * not have reached this one.
 *
 * Raced: the stretches, or the last complete walk, are not those that the change was decided on. Its rows are marked all
 * the same, those of a covered page as covered; but no stretch is changed.
 */
export const commitScript = `
local meta, seen, uncovered, stretch, sweep, quarantined, quarantinedTimes, seenByHalfHour, seenDays = unpack(KEYS)
${commitArgs.locals}
local id, replacedId = unpack(redis.call('HMGET', meta, 'id', 'replacedId'))
if id ~= baseId then
  local replaced = string.find(' ' .. (replacedId or '') .. ' ', ' ' .. baseId .. ' ', 1, true)
  return {replaced and 'replaced' or 'lost', 0, 0, 0}
end
if lookedAtServer ~= '' and (${serverRun}) ~= lookedAtServer then return {'replaced', 0, 0, 0} end
local change = cjson.decode(changeJson)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The later of the two clocks dates a row, the earlier one decides its removal: a wrong clock removes nothing too soon.
local early, late = math.min(now, callerMs), math.max(now, callerMs)
local forgottenDay = tonumber(redis.call('HGET', meta, 'forgottenDay') or '-1')
-- Clocks that were set back date no row among those that are forgotten.
local today = math.max(math.floor(late / ${dayMs}), forgottenDay + 1)
local raced = redis.call('HGET', meta, 'version') ~= baseVersion
local become = change.become
if raced and become > 0 then become = 0 end

local added, bad = 0, 0
for _, key in ipairs(change.mark) do
  local new = redis.call('HSETNX', seen, key, today)
  if new == 0 and tonumber(redis.call('HGET', seen, key)) <= forgottenDay then
    redis.call('HSET', seen, key, today)
    new = 1
  end
  added = added + new
  if new == 1 and change.bad[key] then
    redis.call('HSET', quarantined, key, change.bad[key])
    redis.call('ZADD', quarantinedTimes, now, key)
    bad = bad + 1
  end
  if become < 0 then
    redis.call('ZREM', uncovered, key)
  elseif new == 1 then
    redis.call('ZADD', uncovered, become, key)
  elseif become > 0 then
    redis.call('ZADD', uncovered, 'XX', become, key)
  end
end
for _, key in ipairs(change.readable) do
  redis.call('HDEL', quarantined, key)
  redis.call('ZREM', quarantinedTimes, key)
end

-- A row whose entry is removed still counts as quarantined: when the feed shows it again and it can be read, it is sent.
local fellOut = 0
if bad > 0 then
  local kept, bytes = redis.call('HKEYS', quarantined), 0
  for _, key in ipairs(kept) do bytes = bytes + redis.call('HSTRLEN', quarantined, key) end
  local over = #kept - badMax
  local old = redis.call('ZRANGEBYSCORE', quarantinedTimes, 0, '+inf', 'WITHSCORES')
  for index = 1, #old - 2, 2 do
    if fellOut >= over and bytes <= tonumber(badBytesMax) then break end
    bytes = bytes - redis.call('HSTRLEN', quarantined, old[index])
    redis.call('HDEL', quarantined, old[index])
    redis.call('ZADD', quarantinedTimes, -old[index + 1], old[index])
    fellOut = fellOut + 1
  end
end

local moved = {[today] = added}
for _, key in ipairs(change.shown) do
  local before = tonumber(redis.call('HGET', seen, key) or '-1')
  if before > forgottenDay and before < today then
    redis.call('HSET', seen, key, today)
    moved[before] = (moved[before] or 0) - 1
    moved[today] = moved[today] + 1
  end
  if become < 0 then
    redis.call('ZREM', uncovered, key)
  elseif become > 0 then
    redis.call('ZADD', uncovered, 'XX', become, key)
  end
end

for day, by in pairs(moved) do
  if by ~= 0 and redis.call('HINCRBY', seenDays, day, by) <= 0 then redis.call('HDEL', seenDays, day) end
end

for name, by in pairs({
  marked = added, quarantined = bad, fellOut = fellOut, passedOver = change.passedOver, unrouted = change.unrouted,
}) do
  if by > 0 then redis.call('HINCRBY', meta, name, by) end
end
if added > change.passedOver then
  for _, half in ipairs(redis.call('HKEYS', seenByHalfHour)) do
    if tonumber(string.match(half, '%d+$')) < tonumber(oldestHalfHour) then redis.call('HDEL', seenByHalfHour, half) end
  end
  redis.call('HINCRBY', seenByHalfHour, halfHour, added - change.passedOver)
end
if change.explains and added > 0 and redis.call('HEXISTS', meta, 'expected') == 1 then
  redis.call('HINCRBY', meta, 'expected', added)
end
if change.scope then redis.call('HSET', meta, 'scope', change.scope) end
if change.sweep then redis.call('HSET', sweep, unpack(change.sweep)) end

local completeAt = redis.call('HGET', meta, 'completeAt')
if not raced then
  for _, join in ipairs(change.joins) do
    for _, key in ipairs(redis.call('ZRANGEBYSCORE', uncovered, join.from, join.from)) do
      redis.call('ZADD', uncovered, join.to, key)
    end
  end
  for _, run in ipairs(change.finished) do redis.call('ZREMRANGEBYSCORE', uncovered, run, run) end
  if change.stretches then
    if change.stretches == '' then redis.call('DEL', stretch) else redis.call('SET', stretch, change.stretches) end
    local runs = tonumber(redis.call('HGET', meta, 'runs') or '0')
    if change.runs > runs then redis.call('HSET', meta, 'runs', change.runs) end
  end
  -- What was decided before a walk was complete is not valid after it: counts and neighbouring rows show more then.
  if change.stretches or change.complete then redis.call('HINCRBY', meta, 'version', 1) end
  if change.complete then
    local total = change.complete.total
    redis.call('HSET', meta, 'lastCompleteMs', change.complete.atMs, 'total', total, 'expected', total,
      'completeAt', early)
  end
end

-- Forgets the rows of days that ended a window before the last complete walk (not before now: after a long outage the rows
-- that end the walk are as old as the outage). Forgets nothing while a walk is not done, and none of the newest rows,
-- whatever the clocks show. Rows of one day go together: beside half a page of known rows the others would look like late ones.
if completeAt and redis.call('HLEN', seen) > tonumber(rowsKept) and redis.call('EXISTS', stretch) == 0 then
  local lastDay = math.floor((math.min(early, completeAt) - seenWindowMs) / ${dayMs}) - 1
  local counts, days, left = redis.call('HGETALL', seenDays), {}, 0
  for index = 1, #counts, 2 do
    local day = {number = tonumber(counts[index]), rows = tonumber(counts[index + 1])}
    left = left + day.rows
    if day.number <= lastDay then table.insert(days, day) end
  end
  table.sort(days, function(one, other) return one.number < other.number end)
  local before, dayBefore = left, forgottenDay
  for _, day in ipairs(days) do
    if left - day.rows < tonumber(rowsKept) then break end
    left = left - day.rows
    forgottenDay = day.number
    redis.call('HDEL', seenDays, day.number)
  end
  if forgottenDay > dayBefore then
    redis.call('HINCRBY', meta, 'forgotten', before - left)
    redis.call('HSET', meta, 'forgottenDay', forgottenDay)
    local endMs = (forgottenDay + 1) * ${dayMs}
    if endMs > tonumber(redis.call('HGET', meta, 'forgottenMs') or '0') then
      redis.call('HSET', meta, 'forgottenMs', endMs)
    end
  end
end

-- Forgotten rows are removed bit by bit, in a round through all of them, which takes many changes where there are many rows.
if forgottenDay > tonumber(redis.call('HGET', meta, 'removedDay') or '-1') then
  local cursor, roundDay, roundServer = unpack(redis.call('HMGET', meta, 'removing', 'removingDay', 'removingAt'))
  -- A cursor means nothing to another server, nor to this one after a restart: the round begins again.
  if cursor and roundServer ~= lookedAtServer then cursor, roundDay = nil, nil end
  local scan = redis.call('HSCAN', seen, cursor or '0', 'COUNT', scanned)
  for index = 1, #scan[2], 2 do
    local key = scan[2][index]
    if tonumber(scan[2][index + 1]) <= forgottenDay then
      redis.call('HDEL', seen, key)
      redis.call('ZREM', uncovered, key)
      if tonumber(redis.call('ZSCORE', quarantinedTimes, key) or 0) < 0 then redis.call('ZREM', quarantinedTimes, key) end
    end
  end
  if scan[1] == '0' then
    redis.call('HSET', meta, 'removedDay', roundDay or forgottenDay)
    redis.call('HDEL', meta, 'removing', 'removingDay', 'removingAt')
  else
    redis.call('HSET', meta, 'removing', scan[1], 'removingDay', roundDay or forgottenDay, 'removingAt', lookedAtServer)
  end
end
return {raced and 'raced' or 'done', added, tonumber(redis.call('HGET', meta, 'version')), fellOut}
`
