import { Writable } from 'node:stream'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { createLogger } from '../../src/telemetry/log.ts'
import { printable, printableLines, printableOnceRead } from '../../src/telemetry/printable.ts'
import { anyText } from '../support/any-text.ts'

const unsafe = /[\p{Cc}\p{Cs}\u061c\u200b\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/u
const hostile =
  '\u001b]0;title\u0007\u009b2J\u202eevil\u2066\r\nforged \ud800 u\u200bn\u061cs\u2060een \u{e0041}\u{e007f}'
/** What the printer of lines for people writes itself: colours. */
const ownColours = /\p{Cc}\[\d{1,2}m/gu

it('what others wrote is written out, on its line', () => {
  expect(printable('a\u001b[31m\nb\u202e\u009b')).toBe('a\\u001b[31m\\nb\\u202e\\u009b')
  expect(printable('a\u200b\u061c\u{e0041}')).toBe('a\\u200b\\u061c\\udb40\\udc41')
  expect(printable('👩\u200d👩\u200d👧 ❤\ufe0f')).toBe('👩\u200d👩\u200d👧 ❤\ufe0f')
  expect(JSON.parse(printableOnceRead('"\u{e0041}\u202e"'))).toBe('\\udb40\\udc41\\u202e')
  expect(printable('می\u200cخواهم\u200f ۵٬۲۰۰')).toBe('می\u200cخواهم\u200f ۵٬۲۰۰')
})

it('no text gets anything through, and JSON stays what it was', () => {
  fc.assert(
    fc.property(anyText(), fc.jsonValue(), (text, value) => {
      expect(printable(text + hostile)).not.toMatch(unsafe)
      expect(printableLines(text).replaceAll('\n', '')).not.toMatch(unsafe)
      const json = JSON.stringify({ text, value }, null, 2)
      expect(JSON.parse(printableLines(json))).toEqual(JSON.parse(json))
    }),
  )
})

it.each([
  ['JSON', false],
  ['for people', true],
])('a log line, %s, holds nothing of it, in the message or in a field', async (_, terminal) => {
  let text = ''
  const { promise, resolve } = Promise.withResolvers<void>()
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += String(chunk)
      if (text.includes('the end')) resolve()
      done()
    },
  })
  const log = createLogger({ level: 'info', terminal, destination })
  log.warn({ reason: hostile, deep: { list: [hostile] }, err: new Error(hostile) }, hostile)
  log.info('the end')
  await promise
  expect(text).toContain('evil')
  expect(text.replace(ownColours, '').replaceAll('\n', '')).not.toMatch(unsafe)
  expect(text).not.toMatch(/^forged/m)
})
