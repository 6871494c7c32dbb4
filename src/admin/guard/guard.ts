import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { describeReadError } from '../../config/file/read-error.ts'
import { tokenHeader } from '../../telemetry/version.ts'
import type { AdminToken } from '../ports.ts'
import type { Problem } from '../problem.ts'
import { isAmong, printable } from './host.ts'

/**
 * Only requests with the admin token may change something, and none from a foreign web page. A page that rebinds its
 * name to this address would pass the check of the origin here; `host.ts` refuses it before.
 */
export function refuseChange(
  request: Pick<FastifyRequest, 'headers'>,
  token: AdminToken | undefined,
  hosts: readonly string[],
): Problem | undefined {
  const { headers } = request
  const expected = expectedToken(token)
  if (typeof expected !== 'string') return expected
  if (isFromElsewhere(headers['sec-fetch-site']))
    return { status: 403, detail: 'Requests that come from other web pages are refused.' }
  const { origin } = headers
  if (origin !== undefined && !isOfOurPage(origin, headers.host, hosts))
    return {
      status: 403,
      detail: `Requests that come from other web pages are refused. This one says ${printable(origin)}: if that is a proxy before the bridge, add its name to http.hosts in its config.`,
    }
  const shown = shownToken(headers)
  if (shown === undefined)
    return { status: 401, detail: 'Send the token of http.adminToken as "Authorization: Bearer TOKEN".' }
  if (!sameSecret(shown, expected))
    return { status: 401, detail: 'The token is not the one of http.adminToken.' }
  return undefined
}

/** A file is read at every use: it may be gone, or empty until somebody has written to it. */
function expectedToken(token: AdminToken | undefined): string | Problem {
  const isAmiss = (why: string) => ({
    status: 503,
    detail: `Nothing can be changed now: the file of http.adminTokenFile ${why}.`,
  })
  try {
    const text = token?.reveal()
    if (text) return text
    return token?.file === undefined ? isOff : isAmiss('is empty')
  } catch (thrown) {
    return isAmiss(`cannot be read: ${describeReadError(thrown)}`)
  }
}

const isOff: Problem = {
  status: 403,
  detail: 'Everything that changes something is off: set http.adminToken in the config.',
}

/** Whether a request tries a token, be it in another form than we take. */
export function triesToken({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  return headers[tokenHeader] !== undefined || headers.authorization !== undefined
}

/** A proxy before us may need `Authorization` for a login of its own, and pass it on. */
function shownToken(headers: FastifyRequest['headers']): string | undefined {
  const own = headers[tokenHeader]
  return own === undefined ? /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1] : String(own)
}

function isFromElsewhere(site: string | string[] | undefined): boolean {
  return site !== undefined && site !== 'same-origin' && site !== 'none'
}

/** A proxy before us may ask in its own words: then `Host` is our address, and the page has the name of the proxy. */
function isOfOurPage(origin: string, host: string | undefined, hosts: readonly string[]): boolean {
  if (!URL.canParse(origin)) return false
  const { host: shown, hostname } = new URL(origin)
  return shown === host || isAmong(hostname, hosts)
}

/** All digests have the same length, so the time shows neither the length of the token nor where the two differ. */
function sameSecret(shown: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(shown), digest(expected))
}

/**
 * Counts the wrong tokens of each address; an address that sends many has to wait. The right token is always taken: behind a
 * proxy all operators have one address, and a program with an old token must not lock them out. So the length of the token has to
 * make guessing hopeless; `check-config` warns of one that could be guessed.
 */
export interface Tries {
  /** How long this address has to wait before it may try another token; 0 where it need not. */
  waitMs(address: string): number
  failed(address: string): void
}

const triesMax = 20
const spanMs = 60_000
/** More addresses are not remembered: those that began first are forgotten. */
const addressesMax = 10_000

export function createTries(monotonicMs: () => number): Tries {
  const known = new Map<string, { readonly sinceMs: number; readonly count: number }>()
  const current = (address: string) => {
    const found = known.get(address)
    return found !== undefined && monotonicMs() - found.sinceMs < spanMs ? found : undefined
  }
  return {
    waitMs(address) {
      const found = current(address)
      return found !== undefined && found.count >= triesMax ? found.sinceMs + spanMs - monotonicMs() : 0
    },
    failed(address) {
      const before = current(address) ?? { sinceMs: monotonicMs(), count: 0 }
      known.delete(address)
      known.set(address, { ...before, count: before.count + 1 })
      const [oldest] = known.keys()
      if (known.size > addressesMax && oldest !== undefined) known.delete(oldest)
    },
  }
}
