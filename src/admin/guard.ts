import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Problem } from './problem.ts'

/**
 * Only requests with the admin token may change something, and none from a foreign web page. A page that rebinds its
 * name to this address would pass the check of the origin here; `host.ts` refuses it before.
 */
export function refuseChange(
  request: Pick<FastifyRequest, 'headers'>,
  token: { reveal(): string } | undefined,
): Problem | undefined {
  const { headers } = request
  const expected = token?.reveal()
  if (!expected)
    return {
      status: 403,
      detail: 'Everything that changes something is off: set http.adminToken in the config.',
    }
  if (isForeign(headers['origin'], headers['sec-fetch-site'], headers.host))
    return { status: 403, detail: 'Requests that come from other web pages are refused.' }
  const shown = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
  if (shown === undefined)
    return { status: 401, detail: 'Send the token of http.adminToken as "Authorization: Bearer TOKEN".' }
  if (!sameSecret(shown, expected))
    return { status: 401, detail: 'The token is not the one of http.adminToken.' }
  return undefined
}

function isForeign(
  origin: string | undefined,
  site: string | string[] | undefined,
  host: string | undefined,
): boolean {
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true
  if (origin === undefined) return false
  return !URL.canParse(origin) || new URL(origin).host !== host
}

/** All digests have the same length, so the time shows neither the length of the token nor where the two differ. */
function sameSecret(shown: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(shown), digest(expected))
}
