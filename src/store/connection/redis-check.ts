import { Cluster, type Redis } from 'ioredis'
import { probeKey } from '../keys.ts'
import type { RedisClient } from './redis.ts'
import { isRedisAway, redisErrorText } from './redis-errors.ts'

/**
 * Checks a Redis before it is used. `refuse` means that alerts could be lost or nothing would work; `warn` is for people
 * to decide. Each finding is one sentence that says what to change.
 */
export interface RedisFinding {
  readonly level: 'refuse' | 'warn'
  readonly code:
    | 'version'
    | 'eviction'
    | 'permission'
    | 'persistence'
    | 'memory'
    | 'clock'
    | 'format'
    | 'unknown'
  readonly message: string
}

const redisVersionMin = '6.2'
const clockSkewMsMax = 2_000
const memoryShareMax = 0.8

/** Throws only while Redis is away, or takes no writes for now. */
export async function checkRedis(
  redis: RedisClient,
  options: {
    prefix: string
    now?: () => number
    /** Whether commands are tried on a key of their own; by default they are. */
    probe?: boolean
  },
): Promise<readonly RedisFinding[]> {
  const findings = options.probe === false ? [] : await checkCommands(redis, options.prefix)
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis]
  for (const node of nodes) {
    if (redis instanceof Cluster && options.probe !== false) findings.push(...(await checkAsking(node)))
    findings.push(...(await checkNode(node, options.now ?? Date.now)))
  }
  return findings.filter(
    (finding, index) => findings.findIndex((other) => other.message === finding.message) === index,
  )
}

/** The findings that one `INFO` text and the clocks yield; pure. */
export function findingsOf(info: string, skewMs: number): RedisFinding[] {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  const findings: RedisFinding[] = []
  const say = (level: RedisFinding['level'], code: RedisFinding['code'], message: string) =>
    findings.push({ level, code, message })

  const version = field('redis_version')
  if (version !== undefined && olderThan(version, redisVersionMin)) {
    say('refuse', 'version', `Redis is ${version}; ${redisVersionMin} or newer is needed`)
  }
  const policy = field('maxmemory_policy')
  if (policy === undefined) {
    say('warn', 'unknown', 'Redis does not show its maxmemory-policy; make sure that it is noeviction')
  } else if (policy !== 'noeviction') {
    const what = 'Redis may throw away queued alerts: maxmemory-policy is'
    say('refuse', 'eviction', `${what} ${policy}; set it to noeviction`)
  }
  if (field('aof_enabled') === '0') {
    say(
      'warn',
      'persistence',
      'Redis keeps no append-only file (appendonly no): a crash of Redis forgets alerts',
    )
  }
  const used = Number(field('used_memory') ?? 0)
  const max = Number(field('maxmemory') ?? 0)
  if (max > 0 && used > max * memoryShareMax) {
    say('warn', 'memory', `Redis has used ${Math.round((used / max) * 100)} % of its maxmemory`)
  }
  if (Math.abs(skewMs) > clockSkewMsMax) {
    const seconds = (Math.abs(skewMs) / 1_000).toFixed(1)
    say('warn', 'clock', `this machine's clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} Redis'`)
  }
  return findings
}

/**
 * Writes one short-lived key in each of the types that the bridge and BullMQ use, so that a missing permission is found now
 * and not with the first alert. The last one is for BZPOPMIN to take, which would wait for one.
 * KEYS[1] the probe · Returns: one line for each command that was refused.
 */
const probeScript = `
local probes = {
  {'SET', KEYS[1], '1', 'PX', '1000'}, {'INCR', KEYS[1]}, {'HSET', KEYS[1], 'a', '1'}, {'ZADD', KEYS[1], '1', 'a'},
  {'SADD', KEYS[1], 'a'}, {'LPUSH', KEYS[1], 'a'}, {'XADD', KEYS[1], '*', 'a', '1'}, {'PEXPIRE', KEYS[1], '1000'},
}
local refused = {}
for _, probe in ipairs(probes) do
  local answer = redis.pcall(unpack(probe))
  if type(answer) == 'table' and answer.err then table.insert(refused, probe[1] .. ': ' .. answer.err) end
  redis.call('DEL', KEYS[1])
end
redis.pcall('ZADD', KEYS[1], '1', 'a')
redis.pcall('PEXPIRE', KEYS[1], '1000')
return refused
`

async function checkCommands(redis: RedisClient, prefix: string): Promise<RedisFinding[]> {
  const key = probeKey(prefix)
  const refuse = (message: string): RedisFinding[] => [{ level: 'refuse', code: 'permission', message }]
  try {
    const refused = (await redis.eval(probeScript, 1, key)) as string[]
    const [first] = refused
    if (first !== undefined) {
      const reply = new Error(first.slice(first.indexOf(': ') + 2))
      if (isRedisAway(reply)) throw reply
      return refuse(`Redis refuses what the bridge needs: ${first.slice(0, 200)}`)
    }
  } catch (error) {
    if (!isReply(error) || isRedisAway(error)) throw error
    return refuse(`Redis refuses scripts (EVAL), which the bridge needs: ${redisErrorText(error)}`)
  }
  try {
    await redis.bzpopmin(key, 0.01)
  } catch (error) {
    if (!isReply(error) || isRedisAway(error)) throw error
    return refuse(`Redis refuses BZPOPMIN, which the queues need: ${redisErrorText(error)}`)
  }
  return []
}

/** Only a warning: it is needed while a slot moves, and without it commands wait until that is over. */
async function checkAsking(node: Redis): Promise<RedisFinding[]> {
  try {
    await node.asking()
    return []
  } catch (error) {
    if (!isReply(error) || isRedisAway(error)) throw error
    const message = `Redis refuses ASKING, without which alerts wait while a slot moves to another node: ${redisErrorText(error)}`
    return [{ level: 'warn', code: 'permission', message }]
  }
}

async function checkNode(node: Redis, now: () => number): Promise<RedisFinding[]> {
  try {
    const before = now()
    const [seconds, micros] = await node.time()
    const after = now()
    const redisMs = Number(seconds) * 1_000 + Number(micros) / 1_000
    // Redis read its clock between these two: only a difference beyond them is skew.
    const skewMs = redisMs < before ? before - redisMs : redisMs > after ? after - redisMs : 0
    return findingsOf(await node.info(), skewMs)
  } catch (error) {
    if (!isReply(error) || isRedisAway(error)) throw error
    return [
      {
        level: 'warn',
        code: 'unknown',
        message: `Redis does not show its settings: ${redisErrorText(error)}`,
      },
    ]
  }
}

function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

function olderThan(version: string, floor: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [floorMajor = 0, floorMinor = 0] = floor.split('.').map(Number)
  return major < floorMajor || (major === floorMajor && minor < floorMinor)
}
