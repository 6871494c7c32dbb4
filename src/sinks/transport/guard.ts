import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { toError } from '../../lib/errors.ts'
import { SinkError } from './fault.ts'
import { isMetadata, isPublic, liesIn, unwrap } from './ip.ts'
import { lookupWith, type Resolve, systemResolve } from './lookup.ts'

/**
 * Keeps sinks from being turned against the network they run in. Every address is checked, in whatever notation and
 * wrapping, where the connection is made: literals before, names after they are resolved, and what is connected to is
 * what was checked. Metadata services of clouds are refused even where private networks are allowed.
 */
export interface AddressGuard {
  /** Throws a SinkError (`blocked_address`) unless a sink may talk to this IP address. */
  check(address: string): void
  /**
   * The same for the other end of a connection that was just made. The system does not know that end any more where it has
   * already broken the connection: a fault of transport (`connection_lost`), and no reason to give an alert up.
   */
  checkPeer(address: string | undefined): void
  /** The same for a host that is a literal address. Node connects to these without asking for a lookup. */
  checkLiteral(hostname: string): void
  /** Resolves names as `net.connect` wants it, each answer checked: one bad answer spoils all (`blocked_name`). */
  readonly lookup: LookupFunction
}

export function createGuard(
  allowPrivateNetworks: boolean | readonly string[],
  resolve: Resolve = systemResolve,
): AddressGuard {
  const allowed = typeof allowPrivateNetworks === 'boolean' ? [] : allowPrivateNetworks.map(ipaddr.parseCIDR)

  function check(address: string): void {
    const wrapped = unwrap(address)
    if (wrapped.length === 0)
      throw new SinkError('blocked_address', 'refused an address that is no IP address')
    if (wrapped.some(isMetadata))
      throw new SinkError(
        'blocked_address',
        `refused ${address}: a metadata address of a cloud is never allowed`,
      )
    if (allowPrivateNetworks === true || isPublic(wrapped)) return
    if (liesIn(wrapped, allowed)) return
    const kind = wrapped.map((ip) => ip.range()).find((range) => range !== 'unicast') ?? 'reserved'
    throw new SinkError(
      'blocked_address',
      `refused ${address} (${kind}): it is not public and allowPrivateNetworks of this sink does not include it`,
    )
  }

  function checkPeer(address: string | undefined): void {
    if (address === undefined)
      throw new SinkError('connection_lost', 'the receiver broke the connection as soon as it was made')
    check(address)
  }

  function checkLiteral(hostname: string): void {
    const literal = withoutBrackets(hostname)
    if (isIP(literal) !== 0) check(literal)
  }

  /** A name server may tell another address later: while a network asks for a login, it tells the one of its own page. */
  function checkFound(hostname: string, address: string): void {
    try {
      check(address)
    } catch (refused) {
      if (isLoopbackName(hostname)) throw refused
      throw new SinkError('blocked_name', toError(refused).message)
    }
  }

  async function resolveChecked(hostname: string): Promise<LookupAddress[]> {
    const addresses = await resolve(hostname)
    if (addresses.length === 0) throw new SinkError('dns', `no address was found for ${hostname}`)
    for (const { address } of addresses) checkFound(hostname, address)
    return addresses
  }

  return { check, checkPeer, checkLiteral, lookup: lookupWith(resolveChecked) }
}

/** Whether a host is this machine by its very name, without asking anybody. */
export function isLoopbackName(hostname: string): boolean {
  const name = withoutBrackets(hostname).toLowerCase().replace(/\.$/, '')
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  return ipaddr.isValid(name) && unwrap(name).some((ip) => ip.range() === 'loopback')
}

export function withoutBrackets(hostname: string): string {
  return hostname.startsWith('[') && hostname.endsWith(']') ? hostname.slice(1, -1) : hostname
}
