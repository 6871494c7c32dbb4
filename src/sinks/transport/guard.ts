import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { toError } from '../../lib/errors.ts'
import { SinkError } from './fault.ts'
import { isMetadata, isPublic, liesIn, unwrap } from './ip.ts'
import { lookupWith, type Resolve, systemResolve } from './lookup.ts'

/**
 * Prevents that a sink is used to reach the private network that it runs in. Every address, in any notation or wrapping,
 * is checked when the connection is made: literals before, names after they are resolved; the connection uses the address
 * that was checked. Metadata services of clouds are refused even where private networks are allowed.
 */
export interface AddressGuard {
  /** Throws a SinkError (`blocked_address`) unless a sink may talk to this IP address. */
  check(address: string): void
  /**
   * The same for the other end of a connection that was just made. Where the receiver has already closed it, the system
   * has no address for it: that is a fault of transport (`connection_lost`), which is retried.
   */
  checkPeer(address: string | undefined): void
  /** The same for a host that is a literal address. Node connects to these without asking for a lookup. */
  checkLiteral(hostname: string): void
  /** Resolves names for `net.connect` and checks each address: one that is refused refuses the name (`blocked_name`). */
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

  /** May change later: a network that asks for a login resolves every name to its own page until then. */
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

/** Whether a host is this machine by its name alone, without a lookup. */
export function isLoopbackName(hostname: string): boolean {
  const name = withoutBrackets(hostname).toLowerCase().replace(/\.$/, '')
  if (name === 'localhost' || name.endsWith('.localhost')) return true
  return ipaddr.isValid(name) && unwrap(name).some((ip) => ip.range() === 'loopback')
}

export function withoutBrackets(hostname: string): string {
  return hostname.startsWith('[') && hostname.endsWith(']') ? hostname.slice(1, -1) : hostname
}
