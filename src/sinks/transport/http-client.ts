import { isIP } from 'node:net'
import type { Pool as Connections, buildConnector as Connector, Dispatcher } from 'undici'
import { toError } from '../../lib/errors.ts'
import { Agent, buildConnector, Pool, proxyAgent } from '../../lib/packages.ts'
import { settlesWithin } from '../../lib/time-limit.ts'
import { exchange, type HttpPost, type HttpResponse, type Target } from './exchange.ts'
import { SinkError } from './fault.ts'
import { type AddressGuard, withoutBrackets } from './guard.ts'
import { lookupWith, systemResolve } from './lookup.ts'
import { type TlsFiles, type TlsSettings, tlsOptions } from './tls.ts'

/**
 * The HTTP/1.1 client of all sinks (HTTP/2 is off: one slow response must not delay others on the same connection, and
 * rate limits count requests either way). It reuses connections, follows no redirect, decompresses nothing, reads no more
 * of a response than `bodyBytesMax`, and connects to no address that the guard refuses. Through a proxy only literal
 * addresses are checked: the proxy resolves names, and its rules apply to them.
 */
export interface HttpClient {
  post(message: HttpPost): Promise<HttpResponse>
  close(): Promise<void>
}

export interface HttpOptions {
  readonly guard: AddressGuard
  readonly connections: number
  readonly timeoutMs: number
  readonly tls?: TlsFiles | undefined
}

/** More than the 5 s after which a lookup asks the second name server. */
const connectTimeoutMsMax = 8_000
const headerBytesMax = 16_384
/** Receivers drop idle connections after 5 s and more; a POST on a dropped one is a failed attempt. */
const idleConnectionMs = 4_000
const addressAttemptMs = 1_000

/** Throws a UserError over a file (CA, certificate, key) that cannot be read. */
export function createHttpClient(options: HttpOptions): HttpClient {
  const tls = tlsOptions(options.tls)
  let current: { readonly proxy: string | undefined; readonly dispatcher: Dispatcher } | undefined
  /** The proxy's address may be in a file that changes: running requests continue through the old one. */
  const dispatcherFor = (proxy: string | undefined): Dispatcher => {
    if (current !== undefined && current.proxy === proxy) return current.dispatcher
    const dispatcher = proxy === undefined ? directAgent(options, tls) : agentThrough(proxy, options, tls)
    if (current !== undefined) void end(current.dispatcher, options.timeoutMs).catch(() => {})
    current = { proxy, dispatcher }
    return dispatcher
  }
  let closing: Promise<void> | undefined
  let last: { readonly text: string; readonly target: Target } | undefined
  /** Throws where the guard refuses a literal address. Most sinks post to one address all the time. */
  const targetOf = (text: string): Target => {
    if (last?.text === text) return last.target
    // URL converts every notation of an address (0x7f.1, 2130706433) to the usual one.
    const { hostname, origin, pathname, search } = new URL(text)
    options.guard.checkLiteral(hostname)
    last = { text, target: { origin, path: `${pathname}${search}` } }
    return last.target
  }
  return {
    async post(message) {
      const target = targetOf(message.url)
      try {
        return await exchange(dispatcherFor(message.proxy), target, message)
      } catch (error) {
        throw message.proxy === undefined ? error : proxyFault(error)
      }
    },
    close() {
      closing ??= current === undefined ? Promise.resolve() : end(current.dispatcher, options.timeoutMs)
      return closing
    },
  }
}

/** Where a proxy refuses a request and never ends its answer, the request outlives its attempt. */
async function end(dispatcher: Dispatcher, limitMs: number): Promise<void> {
  if (!(await settlesWithin(limitMs, dispatcher.close()))) await dispatcher.destroy()
}

const systemLookup = lookupWith(systemResolve)

function directAgent(options: HttpOptions, tls: TlsSettings): Dispatcher {
  return new Agent({ ...agentLimits(options), connect: guardedConnector(options, tls) })
}

function agentThrough(proxy: string, options: HttpOptions, tls: TlsSettings): Dispatcher {
  const url = URL.parse(proxy)
  // A proxy has no path, and the library refuses one.
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new SinkError('credentials', 'the address of the proxy cannot be used')
  url.pathname = ''
  url.search = ''
  url.hash = ''
  // A proxy may be in the operator's own network, and the operator named it: the guard does not check it.
  const proxyTls = { rejectUnauthorized: true, minVersion: 'TLSv1.2', lookup: systemLookup } as const
  return new (proxyAgent())({
    ...agentLimits(options),
    uri: url.href,
    proxyTls,
    requestTls: tls,
    connectTimeout: connectTimeoutMs(options),
    // A proxy that accepts a connection and never answers would delay the end of the sink by five minutes.
    clientFactory: (proxyOrigin, settings) =>
      new Pool(proxyOrigin, { ...withNameOnly(settings), headersTimeout: options.timeoutMs }),
    factory: (origin, settings) => new Pool(origin, withNameOnly(settings)),
  })
}

/** The library names a proxy by its address in TLS, too, which is no server name: Node.js 26 refuses it. */
function withNameOnly(settings: object): Connections.Options {
  const { connect, ...rest }: Connections.Options = settings
  if (typeof connect !== 'function') return settings
  const isName = (text: string) => isIP(withoutBrackets(text)) === 0
  return {
    ...rest,
    connect: ({ servername, ...to }, done) =>
      connect({ ...to, ...(servername && isName(servername) ? { servername } : {}) }, done),
  }
}

function agentLimits(options: HttpOptions) {
  return {
    connections: options.connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: idleConnectionMs,
    keepAliveMaxTimeout: idleConnectionMs,
    headersTimeout: options.timeoutMs,
    bodyTimeout: options.timeoutMs,
    maxHeaderSize: headerBytesMax,
  }
}

function connectTimeoutMs(options: HttpOptions): number {
  return Math.min(connectTimeoutMsMax, options.timeoutMs)
}

function guardedConnector(options: HttpOptions, tls: TlsSettings): Connector.connector {
  const { guard } = options
  const connect = buildConnector({
    ...tls,
    allowH2: false,
    timeout: connectTimeoutMs(options),
    lookup: guard.lookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressAttemptMs,
  })
  return (target, callback) => {
    connect(target, (...result) => {
      const [error, socket] = result
      if (error !== null) return callback(error, null)
      try {
        guard.checkPeer(socket.remoteAddress)
        callback(null, socket)
      } catch (refused) {
        socket.destroy()
        callback(refused as SinkError, null)
      }
    })
  }
}

/** Turns the library's error for a proxy that refused into a fault that names the proxy. */
function proxyFault(error: unknown): unknown {
  const { message } = toError(error)
  const status = /^Proxy (?:response|Authentication Required) \((\d{3})\)/.exec(message)?.[1]
  if (status === undefined) return error
  return new SinkError(
    'connect',
    status === '407'
      ? 'the proxy refuses the login that the bridge gave, or asks for one (407)'
      : `the proxy answered ${status} and opened no tunnel`,
  )
}
