import { rememberDropped } from '../queue/dropped-jobs.ts'

/** The scripts of `orphans.ts`. Queues of one prefix share a hash tag, so that one script may touch two of them. */

/** `listed`: whether ARGV[1] is in the set or list KEYS[1]. */
const find = `
local isList = redis.call('TYPE', KEYS[1]).ok == 'list'
local listed
if isList then
  listed = redis.call('LPOS', KEYS[1], ARGV[1], 'RANK', -1)
else
  listed = redis.call('ZSCORE', KEYS[1], ARGV[1])
end`

/**
 * Removes the job ARGV[1] (`find`), KEYS[2], from the set or list, with its logs and its lock. These go first: a Redis that refuses DEL
 * refuses it before the job is in no list, where it would stay for ever, or be found and sent.
 */
const takeOut = `
redis.call('DEL', KEYS[3], KEYS[4])
if isList then redis.call('LREM', KEYS[1], -1, ARGV[1]) else redis.call('ZREM', KEYS[1], ARGV[1]) end
redis.call('DEL', KEYS[2])`

/**
 * KEYS the set or list of the state, the job, its logs, its lock, and to drop it the set of dropped ids
 * ARGV id, those of `rememberDropped`
 * Returns 1 when the job was removed; 0 when a process has it, or it is in another state by now; -1 when it is gone.
 */
export const removeScript = `
if redis.call('EXISTS', KEYS[4]) == 1 then return 0 end${find}
if not listed then return redis.call('EXISTS', KEYS[2]) - 1 end
if KEYS[5] then${rememberDropped('KEYS[5]')} end${takeOut}
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
if lock and lock ~= ARGV[4] then return -2 end${find}
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
if made > 0 and redis.call('HEXISTS', KEYS[7], 'paused') == 0 then redis.call('ZADD', KEYS[8], 0, '0') end${takeOut}
return made
`

/**
 * KEYS failed jobs here, the job, its logs, its lock, failed jobs there, then a job and its logs there for each target
 * ARGV id, then id and data there for each target
 * Moves a dead letter with its reason and its attempts. Returns how many were made there: none where the alert has a
 * delivery there already; -1 when it is gone. The job there is written last: without it the next call writes all anew.
 */
export const moveDeadScript = `${find}
if not listed then return -1 end
local fields, logs = redis.call('HGETALL', KEYS[2]), redis.call('LRANGE', KEYS[3], 0, -1)
local made = 0
for index = 2, #ARGV, 2 do
  local job, log = KEYS[index + 4], KEYS[index + 5]
  if #fields > 0 and redis.call('EXISTS', job) == 0 then
    redis.call('DEL', log)
    if #logs > 0 then redis.call('RPUSH', log, unpack(logs)) end
    redis.call('ZADD', KEYS[5], listed, ARGV[index])
    -- Of a field that is named twice, the last counts.
    local own = {unpack(fields)}
    own[#own + 1], own[#own + 2] = 'data', ARGV[index + 1]
    redis.call('HSET', job, unpack(own))
    made = made + 1
  end
end${takeOut}
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
    redis.call('DEL', ARGV[2] .. id, ARGV[2] .. id .. ':logs')
    redis.call('ZREM', set, id)
  end
end
for index = 4, 9 do
  if redis.call('EXISTS', KEYS[index]) == 1 then return 0 end
end
-- A sink that an operator paused is paused when its name comes back.
if redis.call('HEXISTS', KEYS[3], 'paused') == 1 then return 0 end
redis.call('DEL', unpack(KEYS, 3))
redis.call('SREM', KEYS[1], ARGV[1])
return 1
`
