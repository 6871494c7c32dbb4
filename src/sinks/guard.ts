import { promises as dns, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { toError } from '../lib/errors.ts'
import { SinkError } from './fault.ts'

/**
 * Keeps sinks from being turned against the network they run in. Every address is checked, in whatever notation and
 * wrapping, where the connection is made: literals before, names after they are resolved, and what is connected to is
 * what was checked. Metadata services of clouds are refused even where private networks are allowed.
 */
export interface AddressGuard {
  /** Throws a SinkError (`blocked_address`) unless a sink may talk to this IP address. */
  check(address: string): void
  /** The same for a host that is a literal address. Node connects to these without asking for a lookup. */
  checkLiteral(hostname: string): void
  /** Resolves names as `net.connect` wants it, each answer checked: one bad answer spoils all. */
  readonly lookup: LookupFunction
}

export type Resolve = (hostname: string) => Promise<LookupAddress[]>

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
    if (wrapped.some((ip) => allowed.some((cidr) => ip.kind() === cidr[0].kind() && ip.match(cidr)))) return
    const kind = wrapped.map((ip) => ip.range()).find((range) => range !== 'unicast') ?? 'reserved'
    throw new SinkError(
      'blocked_address',
      `refused ${address} (${kind}): it is not public and allowPrivateNetworks of this sink does not include it`,
    )
  }

  function checkLiteral(hostname: string): void {
    const literal = withoutBrackets(hostname)
    if (isIP(literal) !== 0) check(literal)
  }

  async function resolveChecked(hostname: string): Promise<LookupAddress[]> {
    const addresses = await resolve(hostname)
    if (addresses.length === 0) throw new SinkError('dns', `no address was found for ${hostname}`)
    for (const { address } of addresses) check(address)
    return addresses
  }

  const lookup: LookupFunction = (hostname, options, callback) => {
    resolveChecked(hostname).then(
      (addresses) => {
        const first = addresses[0]
        if (options.all || first === undefined) callback(null, addresses)
        else callback(null, first.address, first.family)
      },
      (error: unknown) => callback(toError(error), []),
    )
  }

  return { check, checkLiteral, lookup }
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

type Ip = ipaddr.IPv4 | ipaddr.IPv6

/** Where clouds hand out credentials to whoever asks from inside: AWS, GCP, Azure, Alibaba, Oracle, Scaleway. */
const metadataNetworks = [
  '169.254.169.0/24',
  '169.254.170.0/24',
  '169.254.42.42/32',
  '169.254.0.23/32',
  '168.63.129.16/32',
  '100.100.100.200/32',
  '192.0.0.192/32',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
  'fd00:42::42/128',
  'fd00:c1::a9fe:a9fe/128',
].map((cidr) => ipaddr.parseCIDR(cidr))

function isMetadata(ip: Ip): boolean {
  return metadataNetworks.some((cidr) => cidr[0].kind() === ip.kind() && ip.match(cidr))
}

/** Of the wrappings, only the two that carry plain IPv4 traffic count as public when what they carry is. */
function isPublic(wrapped: readonly Ip[]): boolean {
  const [outer, ...inner] = wrapped
  if (outer === undefined) return false
  if (isPlainPublic(outer)) return true
  const carries = outer.range() === 'ipv4Mapped' || isNat64(outer)
  return carries && inner.length > 0 && inner.every(isPlainPublic)
}

function isPlainPublic(ip: Ip): boolean {
  if (ip.range() !== 'unicast') return false
  // Of IPv6 only 2000::/3 was ever handed out; ::127.0.0.1 and its like lie outside.
  return ip.kind() === 'ipv4' || ip.match(globalUnicast)
}

const globalUnicast = ipaddr.parseCIDR('2000::/3')
const nat64 = ipaddr.parseCIDR('64:ff9b::/96')

function isNat64(ip: Ip): boolean {
  return ip.kind() === 'ipv6' && ip.match(nat64)
}

/** The address and every IPv4 address that it may carry inside; none when the text is no address. */
function unwrap(address: string): Ip[] {
  const text = address.replace(/%.*$/, '')
  if (!ipaddr.isValid(text)) return []
  const ip = ipaddr.parse(text)
  if (!(ip instanceof ipaddr.IPv6)) return [ip]
  const bytes = ip.toByteArray()
  return [ip, ...embedded(ip, bytes).map((octets) => new ipaddr.IPv4(octets))]
}

function embedded(ip: ipaddr.IPv6, bytes: number[]): number[][] {
  switch (ip.range()) {
    case '6to4':
      return [bytes.slice(2, 6)]
    case 'teredo':
      // The server in the clear, the client with every bit turned.
      return [bytes.slice(4, 8), bytes.slice(12).map((byte) => byte ^ 0xff)]
    default:
      // Mapped, compatible, translated (RFC 6145) and NAT64 addresses all end in the IPv4 address.
      return isPlainPublic(ip) ? [] : [bytes.slice(12)]
  }
}

async function systemResolve(hostname: string): Promise<LookupAddress[]> {
  return dns.lookup(hostname, { all: true })
}
