import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { RedisOptions as DriverOptions, Redis } from 'ioredis'
import { UserError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import { hostPort } from '../../lib/host-port.ts'
import type { Secret } from '../../lib/secret.ts'
import { replyText } from './redis-errors.ts'

/**
 * Where Redis is, and the explicit options of every connection to it. Addresses are parsed here and not by the driver,
 * which would take any of its options from a query string. No message of this file repeats an address: it may contain a
 * password.
 */
export type RedisTarget =
  /** `redis://[user:password@]host[:6379][/db]`, `rediss://…` (TLS), `unix://[user:password@]/path[?db=1]`. */
  | ({ readonly url: string | Secret } & Login)
  | SentinelTarget
  | ({ readonly cluster: readonly (string | Secret)[] } & Login)

/** How a connection introduces itself. A login here is used instead of one in an address. */
interface Login {
  readonly username?: string
  readonly password?: Secret
  /** For connections by TLS: an authority, a client certificate. The certificate of the server must be good all the same. */
  readonly tls?: RedisTls
}

export type RedisTls = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'servername' | 'checkServerIdentity' | 'minVersion'
>

interface HostPort {
  readonly host: string
  readonly port: number
}

export interface SentinelTarget extends Login {
  readonly sentinels: readonly HostPort[]
  /** The name of the master group. */
  readonly name: string
  readonly sentinelUsername?: string
  readonly sentinelPassword?: Secret
}

/**
 * `commands` fails fast: a poll, a page or a CLI must not hang on a Redis that is away. `blocking` waits for ever, which
 * is what BullMQ asks of the connections of its workers.
 */
export type RedisProfile = 'commands' | 'blocking'

const connectTimeoutMs = 10_000
/** No command of ours takes long; an answer that does not come in this time will not come. */
const commandTimeoutMs = 5_000
/** When nothing arrives for so long while a command waits, the connection is closed. Workers block for up to 10 s. */
const silenceMsMax = { commands: 10_000, blocking: 15_000 } as const
const reconnectDelayMsMax = 2_000
const keepAliveMs = 10_000
const loadingCheckEveryMs = 1_000

export function driverOptions(profile: RedisProfile, connectionName: string) {
  return {
    connectionName,
    // CLIENT SETINFO is known from Redis 7.2 on, and cannot be granted before: where rights are given one by one, it is refused.
    disableClientInfo: true,
    connectTimeout: connectTimeoutMs,
    keepAlive: keepAliveMs,
    socketTimeout: silenceMsMax[profile],
    ...(profile === 'commands' ? { commandTimeout: commandTimeoutMs } : {}),
    maxRetriesPerRequest: profile === 'commands' ? 1 : null,
    // Waits while a restarted Redis still loads its file. How long that takes, Redis estimates badly where what it keeps is of many sizes.
    enableReadyCheck: true,
    maxLoadingRetryTime: loadingCheckEveryMs,
    // The driver settles commands under way when a connection breaks; off, some promises never settle.
    autoResendUnfulfilledCommands: true,
    reconnectOnError: reconnectOnError(profile),
  } satisfies DriverOptions
}

export function enableOfflineQueue(profile: RedisProfile): boolean {
  return profile === 'blocking'
}

/** Doubles from 50 ms to 2 s, give or take a fifth, and never gives up: nothing works until Redis is back. */
export function reconnectDelayMs(attempt: number): number {
  return Math.min(50 * 2 ** Math.min(attempt - 1, 10), reconnectDelayMsMax) * (0.8 + 0.4 * Math.random())
}

/**
 * A master that became a replica (failover) or that loads a new data set: look for another. The refused command was not
 * executed; where commands may wait it is sent again (2), else its caller gets the error (1).
 */
function reconnectOnError(profile: RedisProfile): (error: Error) => 1 | 2 | false {
  return ({ message }) => {
    if (!/^(READONLY|LOADING|MASTERDOWN|UNBLOCKED)\b/.test(replyText(message))) return false
    return enableOfflineQueue(profile) ? 2 : 1
  }
}

/** A connection to one server with what the driver leaves out. */
export function supplement(redis: Redis): Redis {
  return tellLoading(keepToDatabase(redis))
}

/**
 * A refused SELECT (no right to it, no database of that number, a script that runs for long) is an error that the driver passes
 * over: it would go on in database 0. Such a connection, and each copy of it, is made anew until it has its own database.
 */
function keepToDatabase(redis: Redis): Redis {
  return eachCopy(redis, (each) => {
    each.on('error', (error: Error & { command?: { name: string } }) => {
      if (error.command?.name === 'select') each.stream.destroy(error)
    })
  })
}

/** Prepares a connection, and those that are copied from it: BullMQ makes copies by its own rules. */
export function eachCopy(redis: Redis, prepare: (redis: Redis) => void): Redis {
  prepare(redis)
  const copy = redis.duplicate.bind(redis)
  redis.duplicate = (options) => eachCopy(copy(options), prepare)
  return redis
}

/** The driver waits in silence for a Redis that loads its file, which may take minutes. Here that is an error of the connection. */
function tellLoading(redis: Redis): Redis {
  const info = redis.info.bind(redis) as (...given: unknown[]) => Promise<string>
  redis.info = ((...given: unknown[]) => {
    const answer = info(...given)
    const isWaitedFor = (text: string) => redis.status === 'connect' && /^loading:1/m.test(text)
    const tell = () => redis.emit('error', Object.assign(new Error(loadingText), { name: 'ReplyError' }))
    answer.then(
      (text) => void (isWaitedFor(text) && tell()),
      () => {},
    )
    return answer
  }) as typeof redis.info
  return redis
}

/** As Redis answers commands meanwhile. */
export const loadingText = 'LOADING Redis is loading the dataset in memory'

/** Set at every connection, so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch the check off. */
export const verifiedTls = { rejectUnauthorized: true } as const

/** The login of a target as the driver takes it. */
export function loginOf({ username, password }: Login): { username?: string; password?: string } {
  return given({ username, password: password?.reveal() })
}

/** The same for one address by TLS. Throws a UserError where files are named for a connection without. */
export function tlsOf(address: Pick<Address, 'tls'>, { tls }: Login): { tls?: RedisTls } {
  if (address.tls !== undefined) return { tls: { ...address.tls, ...tls, ...verifiedTls } }
  if (tls === undefined) return {}
  throw new UserError('redis.tls only goes with rediss:// addresses, and there is another')
}

interface Address {
  readonly path?: string
  readonly host?: string
  readonly port?: number
  readonly username?: string
  readonly password?: string
  readonly db?: number
  readonly tls?: typeof verifiedTls & { readonly servername?: string }
}

/** Throws a UserError that names the form, never the text. */
export function parseAddress(secret: string | Secret): Address {
  const text = typeof secret === 'string' ? secret : secret.reveal()
  // URL takes no login where there is no host, as with a socket: that form is read as one with a host.
  const unix = /^unix:\/\/([^/@?]*@)?(\/.+)$/.exec(text)
  const readable = unix ? `unix://${unix[1] ?? ''}socket${unix[2]}` : text
  const url = URL.canParse(readable) ? new URL(readable) : undefined
  const db = url && dbOf(url)
  if (!url || db === null || hasMore(url)) throw new UserError(addressHelp)
  const login = {
    ...(url.username ? { username: decoded(url.username) } : {}),
    ...(url.password ? { password: decoded(url.password) } : {}),
    ...(db === undefined ? {} : { db }),
  }
  if (unix) return { path: decoded(url.pathname), ...login }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!/^rediss?:$/.test(url.protocol) || !host) throw new UserError(addressHelp)
  const port = url.port ? Number(url.port) : 6379
  if (url.protocol !== 'rediss:') return { host, port, ...login }
  // An IP address is no name that a server could choose its certificate by.
  return { host, port, ...login, tls: { ...verifiedTls, ...(isIP(host) ? {} : { servername: host }) } }
}

/** The place without its credentials, for logs. */
export function describeTarget(target: RedisTarget): string {
  if ('sentinels' in target) return `sentinels ${target.sentinels.map(hostPort).join(', ')} (${target.name})`
  const urls = 'cluster' in target ? target.cluster : [target.url]
  return urls
    .map((url) => parseAddress(url))
    .map(({ path, host, port }) => path ?? `${host}:${port}`)
    .join(', ')
}

const addressHelp =
  'The Redis address must look like redis://host:6379/0, rediss://user:password@host:6379 or unix:///path/to.sock'

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new UserError(addressHelp)
  }
}

/** What nobody reads after a `?`: for a socket the number of its database stands there. */
function hasMore({ protocol, search }: URL): boolean {
  return !(protocol === 'unix:' ? /^(\?(db=[^&]*)?)?$/ : /^$/).test(search)
}

/** undefined: not given; null: not a number. */
function dbOf(url: URL): number | undefined | null {
  const text = url.protocol === 'unix:' ? url.searchParams.get('db') : url.pathname.slice(1)
  if (!text) return undefined
  return /^\d{1,4}$/.test(text) ? Number(text) : null
}
