import type { LookupAddress } from 'node:dns'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SinkError } from '../../src/sinks/transport/fault.ts'
import { createGuard, isLoopbackName } from '../../src/sinks/transport/guard.ts'

const strict = createGuard(false)
const open = createGuard(true)

/** As a request to this host would be checked, by whatever way the address is written. */
function hostOf(written: string): string {
  return new URL(`http://${written}/`).hostname
}

const privateAddresses = [
  '127.0.0.1',
  '127.255.255.254',
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.1.1',
  '100.64.0.1',
  '192.0.0.1',
  '192.0.2.1',
  '192.88.99.1',
  '198.18.0.1',
  '198.51.100.7',
  '203.0.113.7',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
  '::ffff:0:127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b::10.0.0.1',
  '64:ff9b:1::7f00:1',
  '2002:7f00:1::',
  '2002:0a00:0001::1',
  '2001:0:7f00:1::',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2',
  '2607:f8b0::5efe:10.0.0.1',
  '2607:f8b0::200:5efe:127.0.0.1',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'fc00::1',
  'fd12:3456::1',
  'ff02::1',
  '100::1',
  '2001:db8::1',
  '3fff::1',
  '5f00::1',
  '4000::1',
]

const metadataAddresses = [
  '169.254.169.254',
  '169.254.169.253',
  '169.254.170.2',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  'fd00:ec2::254',
  'fd20:ce::254',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '::169.254.169.254',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b:1::a9fe:a9fe',
  '2002:a9fe:a9fe::1',
  '2001:0:a9fe:a9fe::',
  '2001:0:808:808::5601:5601',
  // The local NAT64 prefix (RFC 8215) carries the address at the place that its length says: /48, /56, /64, /96.
  '64:ff9b:1:a9fe:a9:fe00::',
  '64:ff9b:1:a9:fe:a9fe::',
  '64:ff9b:1:5:a9:fea9:fe00:0',
  '64:ff9b:1:ffff:ffff:ffff:a9fe:a9fe',
  // Any network may make a prefix of its own for it: /32, /40, /48, /56, /64, /96.
  '2001:db8:a9fe:a9fe::',
  '2001:db8:01a9:fea9:00fe::',
  '2607:f8b0:122:a9fe:a9:fe00::',
  '2607:f8b0:122:3a9:fe:a9fe::',
  '2607:f8b0:122:344:a9:fea9:fe00::',
  '2607:f8b0:122:344::a9fe:a9fe',
  '2607:f8b0:122:344::100.100.100.200',
  // Translated (RFC 6145), ISATAP, a tunnel by 6to4 and a link-local one.
  '::ffff:0:169.254.169.254',
  '2607:f8b0::5efe:169.254.169.254',
  'fe80::200:5efe:169.254.169.254',
  'fe80::a9fe:a9fe%eth0',
  '2002:6464:64c8::',
  'fd00:a9fe:a9fe::1',
  '2001:0:a83f:8110::',
]

const publicAddresses = [
  '8.8.8.8',
  '93.184.216.34',
  '172.15.255.255',
  '172.32.0.1',
  '100.128.0.1',
  '2606:2800:220:1:248:1893:25c8:1946',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
  '2607:f8b0::5efe:8.8.8.8',
]

describe('without allowPrivateNetworks', () => {
  test.each([...privateAddresses, ...metadataAddresses])('refuses %s', (address) => {
    expect(() => strict.check(address)).toThrow(SinkError)
  })

  test.each(publicAddresses)('takes %s', (address) => {
    expect(() => strict.check(address)).not.toThrow()
  })

  test.each([
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0.0.1',
    '0x7f.1',
    '0177.0.0.1',
    '017700000001',
    '0',
    '127.0.0.1.',
    '１２７.０.０.１',
    '⑯⑨.254.169.254',
    '2852039166',
    '[::1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:ffff:127.0.0.1]',
    '[64:ff9b::a9fe:a9fe]',
  ])('refuses the literal %s before any connection', (written) => {
    expect(() => strict.checkLiteral(hostOf(written))).toThrow(SinkError)
  })

  test('names what would allow it', () => {
    expect(() => strict.check('10.0.0.1')).toThrow(/10\.0\.0\.1 \(private\).*allowPrivateNetworks/)
  })

  test('refuses what is no address at all', () => {
    expect(() => strict.check('')).toThrow(SinkError)
    expect(() => strict.check('example.com')).toThrow(SinkError)
    expect(() => open.check('not an address')).toThrow(SinkError)
  })

  test('no private IPv4 address passes in any wrapping', () => {
    const byte = fc.integer({ min: 0, max: 255 })
    const privateIpv4 = fc.oneof(
      fc.tuple(fc.constantFrom(10, 127, 0), byte, byte, byte),
      fc.tuple(fc.constant(192), fc.constant(168), byte, byte),
      fc.tuple(fc.constant(169), fc.constant(254), byte, byte),
    )
    const hex = (a: number, b: number) => ((a << 8) | b).toString(16)
    fc.assert(
      fc.property(privateIpv4, ([a, b, c, d]) => {
        const tail = `${hex(a, b)}:${hex(c, d)}`
        for (const wrapped of [`::${tail}`, `::ffff:${tail}`, `64:ff9b::${tail}`, `2002:${tail}::1`])
          expect(() => strict.check(wrapped)).toThrow(SinkError)
      }),
    )
  })
})

describe('with allowPrivateNetworks', () => {
  test.each(privateAddresses)('true takes %s', (address) => {
    expect(() => open.check(address)).not.toThrow()
  })

  test.each(metadataAddresses)('true still refuses %s', (address) => {
    expect(() => open.check(address)).toThrow(/metadata/)
  })

  test('a list takes what lies in it and refuses the rest', () => {
    const listed = createGuard(['10.1.0.0/16', 'fd12::/16'])
    for (const inside of ['10.1.2.3', '::ffff:10.1.2.3', 'fd12::5', '8.8.8.8'])
      expect(() => listed.check(inside)).not.toThrow()
    // Of an address with two inside, both must lie in it: the server of a Teredo address is connected to as well.
    for (const outside of ['10.2.0.1', '127.0.0.1', 'fd13::5', '::1', '2001:0:7f00:1::f5fe:fdfc'])
      expect(() => listed.check(outside)).toThrow(SinkError)
  })

  test('no metadata address passes in any wrapping', () => {
    const metadata = fc.oneof(
      fc.tuple(fc.constant(169), fc.constant(254), fc.constantFrom(169, 170), fc.nat(255)),
      fc.constantFrom([100, 100, 100, 200], [168, 63, 129, 16], [192, 0, 0, 192], [169, 254, 0, 23]),
    )
    const bits = fc.constantFrom(32, 40, 48, 56, 64, 96)
    const prefix = fc.uint8Array({ minLength: 16, maxLength: 16 })
    fc.assert(
      fc.property(metadata, bits, prefix, (ipv4, length, bytes) => {
        // RFC 6052: byte 8 stays 0, so the address goes around it.
        const places = [0, 1, 2, 3].map((place) => length / 8 + place)
        const at = length < 96 ? places.map((place) => (place >= 8 ? place + 1 : place)) : places
        if (length < 96) bytes[8] = 0
        for (const [index, place] of at.entries()) bytes[place] = ipv4[index] ?? 0
        const words = Array.from(
          { length: 8 },
          (_, i) => ((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0),
        )
        expect(() => open.check(words.map((word) => word.toString(16)).join(':'))).toThrow(/metadata/)
      }),
    )
  })

  test('a list over everything still refuses metadata addresses', () => {
    const listed = createGuard(['0.0.0.0/0', '::/0'])
    expect(() => listed.check('127.0.0.1')).not.toThrow()
    for (const address of metadataAddresses) expect(() => listed.check(address)).toThrow(/metadata/)
  })
})

test('a receiver that breaks the connection at once is no refused address', () => {
  const guard = createGuard(false)
  expect(() => guard.checkPeer('10.0.0.1')).toThrow(expect.objectContaining({ fault: 'blocked_address' }))
  // So far away is the other end of a socket that was reset.
  expect(() => guard.checkPeer(undefined)).toThrow(expect.objectContaining({ fault: 'connection_lost' }))
})

describe('the lookup', () => {
  const answering = (...addresses: string[]) =>
    createGuard(false, async () =>
      addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  const lookUp = (guard: ReturnType<typeof answering>, all: boolean) =>
    new Promise<unknown>((resolve, reject) => {
      guard.lookup('some.test', { all }, (error, address) => (error ? reject(error) : resolve(address)))
    })

  test('gives one address or all, as it is asked', async () => {
    const guard = answering('93.184.216.34', '2606:2800::1')
    expect(await lookUp(guard, false)).toBe('93.184.216.34')
    expect(await lookUp(guard, true)).toEqual([
      { address: '93.184.216.34', family: 4 },
      { address: '2606:2800::1', family: 6 },
    ])
  })

  test('refuses all answers for one bad one', async () => {
    await expect(lookUp(answering('93.184.216.34', '10.0.0.1'), true)).rejects.toThrow(SinkError)
    await expect(lookUp(answering('93.184.216.34', '::1'), false)).rejects.toThrow(SinkError)
  })

  test('calls a name without addresses unknown', async () => {
    await expect(lookUp(answering(), true)).rejects.toMatchObject({ fault: 'dns' })
  })
})

test('a host is this machine by its name or literal, and by nothing else', () => {
  for (const name of ['localhost', 'LOCALHOST', 'mail.localhost', 'localhost.', '127.0.0.1', '[::1]', '::1'])
    expect(isLoopbackName(name)).toBe(true)
  for (const name of ['localhost.example.com', 'mylocalhost', '10.0.0.1', '[fe80::1]', 'example.com'])
    expect(isLoopbackName(name)).toBe(false)
})

test('a private IPv6 address is not allowed for ending like an allowed IPv4 one', () => {
  const listed = createGuard(['10.0.0.0/8', '0.0.0.0/8', '127.0.0.0/8'])
  for (const address of [
    'fd00::a00:1',
    'fd12:3456::10.1.2.3',
    'fe80::a00:1',
    'fd00::1',
    'fd00::5efe:10.0.0.1',
    'ff02::7f00:1',
  ])
    expect(() => listed.check(address), address).toThrow(SinkError)
  for (const address of [
    '10.0.0.1',
    '::ffff:10.0.0.1',
    '64:ff9b::10.0.0.1',
    '64:ff9b:1::10.0.0.1',
    '2002:a00:1::',
    '2607:f8b0::5efe:10.0.0.1',
  ])
    expect(() => listed.check(address), address).not.toThrow()
})
