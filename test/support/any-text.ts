import fc from 'fast-check'

/**
 * Any code point but half a surrogate pair: what fast-check calls `binary`. Its own table of them takes a second of processor
 * time in each process.
 */
const anyCharacter = fc
  .integer({ min: 0, max: 0x10_ffff - 0x800 })
  .map((nth) => String.fromCodePoint(nth < 0xd800 ? nth : nth + 0x800))

export function anyText(limits: { readonly maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ unit: anyCharacter, ...limits })
}
