import type { Writable } from 'node:stream'
import { Cluster, Redis } from 'ioredis'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { formatDuration } from '../../lib/duration.ts'
import { toError, UserError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import { within } from '../../lib/time-limit.ts'
import type { Logger } from '../../telemetry/log.ts'
import { openCluster } from './cluster.ts'
import { isRedisAway, isReply, notConnectedText, redisErrorText } from './redis-errors.ts'
import {
  describeTarget,
  driverOptions,
  eachCopy,
  enableOfflineQueue,
  loadingText,
  loginOf,
  parseAddress,
  type RedisProfile,
  type RedisTarget,
  type RedisTls,
  reconnectDelayMs,
  type SentinelTarget,
  supplement,
  tlsOf,
  verifiedTls,
} from './redis-options.ts'

export type { RedisProfile, RedisTarget } from './redis-options.ts'

/**
 * Connections to Redis: made with explicit options, always with an error listener, one log line per outage and one per
 * recovery. What is logged of an error is its text without arguments: drivers and servers repeat commands in theirs.
 */
export type RedisClient = Redis | Cluster

interface ConnectOptions {
  readonly target: RedisTarget
  readonly profile: RedisProfile
  /** Shown by `CLIENT LIST`. */
  readonly connectionName?: string
}

/** Connects in the background and never gives up; throws only a UserError about the address. */
export function connectRedis(options: ConnectOptions, log: Logger): RedisClient {
  const redis = open(options)
  if (redis instanceof Redis) redis.on('connect', () => gatherWrites(redis.stream))
  reportOutages(redis, log.child({ redis: describeTarget(options.target) }), options.profile)
  return redis
}

/**
 * What is sent to Redis within one turn of the event loop leaves by one write at its end. A busy sender asks for hundreds of
 * scripts a second, each a write of its own otherwise. Not by the driver's pipelining, which gives up on commands whose
 * connection breaks: these are sent again.
 */
function gatherWrites(stream: Pick<Writable, 'write' | 'cork' | 'uncork'>): void {
  const write = stream.write.bind(stream) as typeof stream.write
  let isGathering = false
  stream.write = ((...given: Parameters<typeof write>) => {
    if (!isGathering) {
      isGathering = true
      stream.cork()
      setImmediate(() => {
        isGathering = false
        stream.uncork()
      })
    }
    return write(...given)
  }) as typeof write
}

/** The two connections of one process: `commands` fails fast, the workers wait for jobs on `blocking`. */
export interface RedisPair {
  readonly commands: RedisClient
  readonly blocking: RedisClient
}

/**
 * A master that hangs closes no connection, and what waits for ever notices last that another has its place: where `commands` finds
 * itself elsewhere, `blocking` and all copies of it (each worker has its own) connect anew too, also those whose greeting was never
 * answered. Each is cut at most once for each return of `commands`. (A cluster asks its nodes who has its slots.)
 */
export function keepTogether({ commands, blocking }: RedisPair): void {
  if (!(commands instanceof Redis && blocking instanceof Redis)) return
  const connected = new Set<Redis>()
  let returns = 0
  const placeOf = ({ stream }: Redis) => `${stream.remoteAddress} ${stream.remotePort}`
  const cutElsewhere = (redis: Redis) => {
    // Not `disconnect`, which waits 2 s for the farewell of a server that hangs.
    if (commands.status === 'ready' && placeOf(redis) !== placeOf(commands)) redis.stream.destroy()
  }
  eachCopy(blocking, (redis) => {
    let returnsBefore = returns
    redis.on('connecting', () => {
      returnsBefore = returns
    })
    redis.on('connect', () => {
      connected.add(redis)
      // It may have asked for the master before `commands` found the next one.
      if (returnsBefore !== returns) cutElsewhere(redis)
    })
    redis.on('close', () => connected.delete(redis))
  })
  commands.on('ready', () => {
    returns += 1
    for (const redis of connected) cutElsewhere(redis)
  })
}

/** One more to the same Redis, to be disconnected by the caller. Only the first connection logs outages. */
export function duplicateRedis(redis: RedisClient): RedisClient {
  const copy: RedisClient = redis instanceof Cluster ? redis.duplicate() : redis.duplicate()
  return copy.on('error', () => {})
}

/** Waits until commands under way have finished, within a limit. */
export async function closeRedis(redis: RedisClient): Promise<void> {
  if (redis.status === 'end') return
  // A connection that is away rejects QUIT or puts it off; disconnecting stops its attempts to come back.
  if (redis.status === 'ready') await within(closeTimeoutMs, 'QUIT', redis.quit()).catch(() => {})
  // Between two attempts there is no connection whose end could be waited for.
  const connected = redis.status !== 'reconnecting'
  const ended = new Promise((resolve) => redis.once('end', resolve))
  const nodes = redis instanceof Cluster ? redis.nodes() : [redis]
  redis.disconnect()
  // Else a server that hangs would be waited for once more, now for its farewell.
  for (const { stream } of nodes) stream?.destroy()
  if (connected) await within(closeTimeoutMs, 'closing', ended).catch(() => {})
}

/**
 * Resolves when Redis answers and `ask` succeeded, which may fail for any time: a replica that is to become the master, a
 * disk that is full. Waits without limit, because nothing can be done without Redis; logs that once, then every 30 s.
 * Throws a UserError when Redis is there but refuses us, what `ask` throws for reasons of its own, and the signal's reason
 * when it aborts.
 */
export async function waitForRedis(
  redis: RedisClient,
  options: { log: Logger; signal: AbortSignal; clock?: Clock; ask?: () => Promise<void> },
): Promise<void> {
  const { log, signal, clock = systemClock, ask } = options
  const startMs = clock.monotonicMs()
  let logged = 0
  let connectionError: Error | undefined
  const onError = (error: Error) => {
    connectionError = error
  }
  redis.on('error', onError)
  let connected = Promise.withResolvers<void>()
  const onReady = () => connected.resolve()
  redis.on('ready', onReady)
  try {
    for (;;) {
      signal.throwIfAborted()
      connected = Promise.withResolvers()
      const unreached = await ping(redis, signal)
      const failure = unreached ?? (await whyAway(ask))
      if (!failure) break
      const reason = redisErrorText((unreached && connectionError) ?? failure)
      faults.set(redis, reason)
      // Its own sentence is about its protocol.
      if (/^NOAUTH/.test(reason))
        throw new UserError(
          'Redis asks for a login (NOAUTH), and the config has none: set redis.password, or redis.username too where Redis has users',
        )
      if (/^(WRONGPASS|NOPERM|ERR (invalid password|DB index|SELECT is not allowed))/.test(reason))
        throw new UserError(`Redis refuses this user, password or database: ${reason}`)
      const waitedMs = clock.monotonicMs() - startMs
      const due =
        logged === 0 ? connectionError !== undefined || waitedMs > graceMs : waitedMs >= logged * logEveryMs
      if (due) {
        log.warn({ reason, waited: formatDuration(waitedMs) }, 'waiting for Redis')
        logged += 1
      }
      // The first answer comes with the connection: a start waits for that, and not for the next attempt.
      await Promise.race([clock.sleep(askEveryMs, signal), connected.promise])
    }
    faults.delete(redis)
    if (logged > 0) log.info({ waited: formatDuration(clock.monotonicMs() - startMs) }, 'Redis answers')
  } finally {
    redis.off('error', onError)
    redis.off('ready', onReady)
  }
}

const closeTimeoutMs = 2_000
const [sentinelTimeoutMs, pingTimeoutMs] = [2_000, 2_000]
const askEveryMs = 200
const logEveryMs = 30_000
/** A connection needs a moment to be made; that is no outage. */
const graceMs = 1_000

function open({ target, profile, connectionName = 'alert-bridge' }: ConnectOptions): RedisClient {
  const common = driverOptions(profile, connectionName)
  if ('cluster' in target) return openCluster(target, profile, common)
  const place = 'sentinels' in target ? sentinelPlace(target) : addressPlace(target)
  const [offline, retryStrategy] = [enableOfflineQueue(profile), reconnectDelayMs]
  return supplement(new Redis({ ...common, ...place, enableOfflineQueue: offline, retryStrategy }))
}

function addressPlace(target: Extract<RedisTarget, { url: unknown }>) {
  const address = parseAddress(target.url)
  return { ...address, ...loginOf(target), ...tlsOf(address, target) }
}

function sentinelPlace(target: SentinelTarget) {
  const { sentinels, name, sentinelUsername, sentinelPassword, tls } = target
  return {
    sentinels: [...sentinels],
    name,
    role: 'master' as const,
    sentinelRetryStrategy: reconnectDelayMs,
    // Else one that hangs is waited for without end, though the next would answer.
    sentinelCommandTimeout: sentinelTimeoutMs,
    ...loginOf(target),
    ...given({ sentinelUsername, sentinelPassword: sentinelPassword?.reveal() }),
    ...(tls ? sentinelTls({ ...tls, ...verifiedTls }) : {}),
  }
}

/** `enableTLSForSentinelMode` is for the master, `sentinelTLS` for the sentinels. */
function sentinelTls(tls: RedisTls) {
  return { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }
}

/** Why each connection that is not there could not be made, or why Redis is waited for. */
const faults = new WeakMap<RedisClient, string>()

export function faultOf(redis: RedisClient): string | undefined {
  return faults.get(redis)
}

/** What a person may read of a command that failed: where there was no connection, why there is none. */
export function failureText(redis: RedisClient, thrown: unknown): string {
  const text = redisErrorText(thrown)
  return text === notConnectedText ? (faults.get(redis) ?? text) : text
}

/**
 * An outage begins when a connection that worked has to be made again, not when we close it. Before it ever worked,
 * `waitForRedis` logs: a cluster needs some attempts until it knows its nodes.
 */
function reportOutages(redis: RedisClient, log: Logger, profile: RedisProfile): void {
  // Every process has a `commands` connection, which logs for all: ten workers need not log the same.
  const level = profile === 'commands' ? 'warn' : 'debug'
  let worked = false
  let sinceMs: number | undefined
  let lastError: Error | undefined
  let isRefused = false
  redis.on('error', (error: Error) => {
    lastError = error
    const reason = redisErrorText(error)
    faults.set(redis, reason)
    const said = reason === loadingText ? 'Redis loads its data' : 'Redis refuses the connection'
    // Why it was cut may be known only when it is made anew: the login was changed. The log says that, too, and once.
    if (sinceMs === undefined || isRefused || !isReply(error)) return
    isRefused = true
    log[level]({ reason }, said)
  })
  redis.on('reconnecting', () => {
    if (!worked || sinceMs !== undefined) return
    sinceMs = systemClock.monotonicMs()
    log[level]({ reason: lastError ? redisErrorText(lastError) : 'connection closed' }, 'Redis is away')
  })
  redis.on('ready', () => {
    worked ||= !(redis instanceof Cluster) || redis.nodes().length > 0
    lastError = undefined
    isRefused = false
    faults.delete(redis)
    if (sinceMs === undefined) return
    log[level === 'warn' ? 'info' : level](
      { away: formatDuration(systemClock.monotonicMs() - sinceMs) },
      'Redis is back',
    )
    sinceMs = undefined
  })
}

async function ping(redis: RedisClient, signal: AbortSignal): Promise<Error | undefined> {
  try {
    await within(pingTimeoutMs, 'PING', redis.ping(), signal)
    return undefined
  } catch (error) {
    return toError(error)
  }
}

async function whyAway(ask: (() => Promise<void>) | undefined): Promise<Error | undefined> {
  try {
    await ask?.()
    return undefined
  } catch (error) {
    if (isRedisAway(error)) return toError(error)
    throw error
  }
}
