import ipaddr from 'ipaddr.js'

/**
 * The kind of an IP address, and the IPv4 addresses inside it: there are a dozen ways to write an IPv4 address into an
 * IPv6 one, and a connection to the outer one may reach the inner one. Pure.
 */
type Ip = ipaddr.IPv4 | ipaddr.IPv6

/** The address and every IPv4 address that it carries by its kind; none when the text is no address. */
export function unwrap(address: string): Ip[] {
  const text = address.replace(/%.*$/, '')
  if (!ipaddr.isValid(text)) return []
  const ip = ipaddr.parse(text)
  if (!(ip instanceof ipaddr.IPv6)) return [ip]
  return [ip, ...embedded(ip, ip.toByteArray()).map((octets) => new ipaddr.IPv4(octets))]
}

/** Of the wrappings, only those that carry plain IPv4 traffic count as public when what they carry is. */
export function isPublic([outer, ...inner]: readonly Ip[]): boolean {
  if (outer === undefined) return false
  if (isPlainPublic(outer)) return inner.every(isPlainPublic)
  const carries = outer.range() === 'ipv4Mapped' || isNat64(outer)
  return carries && inner.length > 0 && inner.every(isPlainPublic)
}

/**
 * Whether it lies in one of these networks, or is a wrapping of which all that it carries does or is public. A private
 * IPv6 address that only ends in the bytes of an allowed IPv4 one is none.
 */
export function liesIn([outer, ...inner]: readonly Ip[], networks: readonly Network[]): boolean {
  if (outer === undefined) return false
  const inside = (ip: Ip) => networks.some((network) => matches(ip, network))
  if (inside(outer)) return true
  return carriesIpv4(outer) && inner.some(inside) && inner.every((ip) => inside(ip) || isPlainPublic(ip))
}

function carriesIpv4(ip: Ip): boolean {
  if (!(ip instanceof ipaddr.IPv6)) return false
  if (isPlainPublic(ip)) return isIsatap(ip.toByteArray())
  return wrappings.has(ip.range()) || ip.match(localNat64)
}

type Network = ReturnType<typeof ipaddr.parseCIDR>

/**
 * Whether it is, or contains, the address of a cloud's metadata service, which gives out credentials. Any network may
 * have its own prefix for NAT64 (RFC 6052), 6rd or another tunnel, so every position of an IPv6 address is searched for
 * such an IPv4 address: a match by chance is one in millions.
 */
export function isMetadata(ip: Ip): boolean {
  if (metadataNetworks.some((network) => matches(ip, network))) return true
  return (
    ip instanceof ipaddr.IPv6 &&
    octetsIn(ip.toByteArray()).some((octets) => isMetadata(new ipaddr.IPv4(octets)))
  )
}

/** AWS, GCP, Azure, Alibaba, Oracle, Scaleway, Tencent. */
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

/** Every four bytes in a row; by RFC 6052 byte 8 stays 0 and the address goes around it. */
function octetsIn(bytes: readonly number[]): number[][] {
  const starts = [...Array(bytes.length - 3).keys()]
  const around = bytes.toSpliced(8, 1)
  return [
    ...starts.map((start) => bytes.slice(start, start + 4)),
    ...[5, 6, 7].map((start) => around.slice(start, start + 4)),
  ]
}

function matches(ip: Ip, network: Network): boolean {
  return network[0].kind() === ip.kind() && ip.match(network)
}

function isPlainPublic(ip: Ip): boolean {
  if (ip.range() !== 'unicast') return false
  // Of IPv6 only 2000::/3 is in public use; ::127.0.0.1 and similar addresses are outside it.
  return ip.kind() === 'ipv4' || ip.match(globalUnicast)
}

const globalUnicast = ipaddr.parseCIDR('2000::/3')
const nat64 = ipaddr.parseCIDR('64:ff9b::/96')
/** RFC 8215. */
const localNat64 = ipaddr.parseCIDR('64:ff9b:1::/48')
const wrappings: ReadonlySet<string> = new Set(['ipv4Mapped', 'rfc6145', 'rfc6052', '6to4', 'teredo'])

function isNat64(ip: Ip): boolean {
  return ip.kind() === 'ipv6' && ip.match(nat64)
}

function embedded(ip: ipaddr.IPv6, bytes: readonly number[]): number[][] {
  switch (ip.range()) {
    case '6to4':
      return [bytes.slice(2, 6)]
    case 'teredo':
      // The address of the server as it is, and that of the client with every bit inverted.
      return [bytes.slice(4, 8), bytes.slice(12).map((byte) => byte ^ 0xff)]
    default:
      // Mapped, compatible, translated (RFC 6145) and NAT64 addresses all end in the IPv4 address.
      return isPlainPublic(ip) && !isIsatap(bytes) ? [] : [bytes.slice(12)]
  }
}

/** RFC 5214: the interface is named 0:5efe or 200:5efe and the IPv4 address, under any prefix. */
function isIsatap(bytes: readonly number[]): boolean {
  const [universal, zero, high, low] = bytes.slice(8, 12)
  return (universal === 0 || universal === 2) && zero === 0 && high === 0x5e && low === 0xfe
}
