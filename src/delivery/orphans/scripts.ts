import { rememberDropped } from '../dropped.ts'

/** The scripts of `orphans.ts`. Queues of one prefix share a hash tag, so that one script may touch two of them. */

/** `removed`: how many of the set or list KEYS[1] were ARGV[1], which is taken out of it. */
const takeOut = `
local removed
if redis.call('TYPE', KEYS[1]).ok == 'list' then
  removed = redis.call('LREM', KEYS[1], -1, ARGV[1])
else
  removed = redis.call('ZREM', KEYS[1], ARGV[1])
end`

/**
 * KEYS the set or list of the state, the job, its logs, its lock, and to drop it the set of dropped ids
 * ARGV id, those of `rememberDropped`
 * Returns 1 when the job was removed; 0 when a process has it, or it is in another state by now; -1 when it is gone.
 */
export const removeScript = `
if redis.call('EXISTS', KEYS[4]) == 1 then return 0 end${takeOut}
if removed == 0 then return redis.call('EXISTS', KEYS[2]) - 1 end
redis.call('DEL', KEYS[2], KEYS[3])
if KEYS[5] then${rememberDropped('KEYS[5]')} end
return 1
`

/**
 * KEYS the set or list of the state, the job, its logs, its lock, names of sinks, what waits there, meta there, marker
 * there, then a job there for each target · ARGV id, sink there, now (ms), token of our lock or '', then id and data
 * there for each target
 * Moves an alert that is to be sent, in one step: a worker of the old sink has it, or a worker of the new one, never
 * both. Returns as `moveDeadScript`; -2 when a process has it, or it is in another state by now. It leaves its list last: where Redis
 * refuses the middle of the script it stays there, and the next call continues.
 */
export const moveWaitingScript = `
local lock = redis.call('GET', KEYS[4])
if lock and lock ~= ARGV[4] then return -2 end
local listed
if redis.call('TYPE', KEYS[1]).ok == 'list' then
  listed = redis.call('LPOS', KEYS[1], ARGV[1], 'RANK', -1)
else
  listed = redis.call('ZSCORE', KEYS[1], ARGV[1])
end
if not listed then return redis.call('EXISTS', KEYS[2]) == 1 and -2 or -1 end
local name, opts = unpack(redis.call('HMGET', KEYS[2], 'name', 'opts'))
local made = 0
redis.call('SADD', KEYS[5], ARGV[2])
for index = 5, #ARGV, 2 do
  local job = KEYS[9 + (index - 5) / 2]
  if name and redis.call('EXISTS', job) == 0 then
    redis.call('HSET', job, 'name', name, 'opts', opts, 'data', ARGV[index + 1], 'timestamp', ARGV[3], 'delay', 0, 'priority', 0)
    local pushed = redis.pcall('LPUSH', KEYS[6], ARGV[index])
    if type(pushed) == 'table' then
      redis.call('DEL', job)
      return pushed
    end
    made = made + 1
  end
end
if made > 0 and redis.call('HEXISTS', KEYS[7], 'paused') == 0 then redis.call('ZADD', KEYS[8], 0, '0') end
${takeOut}
redis.call('DEL', KEYS[2], KEYS[3], KEYS[4])
return made
`

/**
 * KEYS failed jobs here, the job, its logs, failed jobs there, then a job and its logs there for each target
 * ARGV id, then id and data there for each target
 * Moves a dead letter with its reason and its attempts. Returns how many were made there: none where the alert has a
 * delivery there already; -1 when it is gone.
 */
export const moveDeadScript = `
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score then return -1 end
local fields, logs = redis.call('HGETALL', KEYS[2]), redis.call('LRANGE', KEYS[3], 0, -1)
local made = 0
for index = 2, #ARGV, 2 do
  local job, log = KEYS[index + 3], KEYS[index + 4]
  if #fields > 0 and redis.call('EXISTS', job) == 0 then
    redis.call('HSET', job, unpack(fields))
    redis.call('HSET', job, 'data', ARGV[index + 1])
    if #logs > 0 then redis.call('RPUSH', log, unpack(logs)) end
    redis.call('ZADD', KEYS[4], score, ARGV[index])
    made = made + 1
  end
end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2], KEYS[3])
return made
`

/**
 * KEYS names of sinks, who serves which, meta, wait, active, delayed, failed, completed, then what else a queue has
 * ARGV the sink, the prefix of its keys, records that ended before (ms): acknowledged, given up on; how many to forget, how
 * long it is believed that a process serves a sink (ms)
 * Does nothing where a process has the sink in its config by now. Forgets records that are too old, as a queue does whose
 * sink is in the config, and the queue when nothing is left.
 */
export const tidyScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], now - ARGV[6], now + ARGV[6])) do
  if string.sub(member, 1, #ARGV[1] + 1) == ARGV[1] .. ' ' then return 0 end
end
for index, set in ipairs({KEYS[8], KEYS[7]}) do
  local old = redis.call('ZRANGEBYSCORE', set, '-inf', ARGV[index + 2], 'LIMIT', 0, ARGV[5])
  for _, id in ipairs(old) do
    redis.call('ZREM', set, id)
    redis.call('DEL', ARGV[2] .. id, ARGV[2] .. id .. ':logs')
  end
end
for index = 4, 9 do
  if redis.call('EXISTS', KEYS[index]) == 1 then return 0 end
end
-- A sink that an operator paused is paused when its name comes back.
if redis.call('HEXISTS', KEYS[3], 'paused') == 1 then return 0 end
redis.call('SREM', KEYS[1], ARGV[1])
redis.call('DEL', unpack(KEYS, 3))
return 1
`
