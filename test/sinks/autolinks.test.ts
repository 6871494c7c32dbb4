import fc from 'fast-check'
import { expect, test } from 'vitest'
import { withoutAutolinks } from '../../src/sinks/autolinks.ts'

/** What mail programs and chats are known to make links of. */
const pressable = /[a-z]:\/\/|[\p{L}\p{N}_-]\.[\p{L}]{2}|@[\p{L}\p{N}_]|www\.[a-z]/iu

test.each([
  'see https://evil.example/a',
  'evil.example',
  'EVIL.EXAMPLE/path',
  'victim@example.com',
  'mailto:victim@example.com',
  '@here',
  'ایران.ایران',
  'xn--mgba.xn--fiqs8s',
  'user@evil.example.com:8080',
])('%s is nothing to press', (text) => {
  expect(pressable.test(text)).toBe(true)
  expect(pressable.test(withoutAutolinks(text))).toBe(false)
})

test('no text is, and nothing but joiners is added', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-zا-ی0-9:/.@_ -]{0,40}$/u), (text) => {
      expect(withoutAutolinks(text)).not.toMatch(pressable)
      expect(withoutAutolinks(text).replaceAll('\u2060', '')).toBe(text)
      expect(withoutAutolinks(text).length).toBeLessThanOrEqual(text.length * 2)
    }),
  )
})

test.each(['4,120.50 > 4,118.20', '09:00:05', 'SMA(200)', 'XAU_USD', 'up 3.5%', 'end. Start'])(
  '%s stays as it is',
  (text) => {
    expect(withoutAutolinks(text)).toBe(text)
  },
)
