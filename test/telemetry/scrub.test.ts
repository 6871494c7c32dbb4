import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { scrub } from '../../src/telemetry/scrub.ts'

const secret = `Xk9/qP+zz='aa"b&<Tok3n-_N`
const entity = (write: (code: number) => string) => (text: string) =>
  text.replace(/[&<>"'/+=]/g, (character) => write(character.charCodeAt(0)))
const json = (text: string) => JSON.stringify(text).slice(1, -1)
const percent = (text: string) =>
  text.replace(/[^a-z0-9]/gi, (character) => `%${character.charCodeAt(0).toString(16)}`)
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** How those who were shown a secret may repeat it. */
const writings: Record<string, (text: string) => string> = {
  'as it is': (text) => text,
  'in capital letters': (text) => text.toUpperCase(),
  'as JSON': json,
  'as JSON of PHP': (text) => json(text).replaceAll('/', '\\/'),
  'as JSON that escapes for pages': (text) =>
    json(text).replace(/[&<>'+]/g, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'in a page': entity((code) => `&#${code};`),
  'in a page, in hexadecimal': entity((code) => `&#x${code.toString(16)};`),
  'in a page, by name': (text) =>
    text.replace(/[&<"']/g, (each) => ({ '&': '&amp;', '<': '&lt;', '"': '&quot;' })[each] ?? '&apos;'),
  'in an address': (text) => encodeURIComponent(text),
  'in an address, in small letters': percent,
  'in a form': (text) => new URLSearchParams({ v: text }).toString().slice(2),
  'in base64': base64,
  'in base64 for addresses': (text) => Buffer.from(text).toString('base64url'),
  'in the base64 of a header': (text) => base64(`Bearer ${text}\r\n`).slice(10),
  'in hexadecimal': (text) => Buffer.from(text).toString('hex'),
  'in UTF-16': (text) => Buffer.from(text, 'utf16le').toString('utf8'),
  'broken over lines': (text) => text.replace(/.{7}/g, '$&\r\n '),
  'with marks that nobody sees': (text) => text.replace(/.{5}/g, '$&\u200b\u202a'),
  'as JSON in a page in an address': (text) => percent(entity((code) => `&#${code};`)(json(text))),
}

describe('a secret in what others wrote', () => {
  it.each(Object.entries(writings))('is not told %s', (_, write) => {
    const told = scrub(`{"error":"not ${write(secret)} here"}`, [secret])
    expect(told).toMatch(/^\{"error":"not \S*\[redacted\]\S* here"\}$/)
    for (let at = 0; at + 8 <= write(secret).length; at += 1)
      expect(told).not.toContain(write(secret).slice(at, at + 8))
  })

  it('is not told by its beginning, where the text was cut off', () => {
    expect(scrub(`so ${secret.slice(0, 12)}`, [secret], { cutOff: true })).toBe('so [redacted]')
    expect(scrub(`so ${percent(secret).slice(0, 30)}`, [secret], { cutOff: true })).toMatch(
      /^so \[redacted\]/,
    )
  })

  it.each(['…', '...', '..', '***', '[...]', ''])(
    'is not told by its beginning, which others cut off with "%s"',
    (mark) => {
      for (const length of [8, 12, secret.length - 1])
        expect(scrub(`so ${secret.slice(0, length)}${mark}`, [secret])).toBe(`so [redacted]${mark}`)
      expect(scrub(`{"so":"${json(secret).slice(0, 16)}${mark}`, [secret])).toBe(`{"so":"[redacted]${mark}`)
      const less = `so ${secret.slice(0, 7)}${mark}`
      expect(scrub(less, [secret])).toBe(less)
    },
  )

  it('is not told apart from a text that begins like it and goes on', () => {
    const text = `so ${secret.slice(0, 12)}other`
    expect(scrub(text, [secret])).toBe(text)
  })

  it('leaves all else as it was written', () => {
    const text = '100%25 \\u0041 &amp;\n \u200f می\u200cشود &#65; a+b_c-d %zz \\ '
    expect(scrub(text, [secret, 'short'])).toBe(text)
    expect(scrub(`${text}${secret}${text}`, [secret])).toBe(`${text}[redacted]${text}`)
  })

  it('is found whatever it and the text around it are', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 6, unit: 'grapheme' }).filter((text) => /^\S{6,}$/.test(text)),
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom('as it is', 'as JSON', 'in an address', 'in base64'),
        (text, around, how) => {
          const written = writings[how]?.(text.toWellFormed()) ?? ''
          expect(scrub(`${around} ${written} ${around}`, [text.toWellFormed()])).toContain('[redacted]')
        },
      ),
      { numRuns: 300, seed: 10 },
    )
  })

  it('is looked for in no time, in the longest text that is looked at', () => {
    const text = '%41\\u0042&#67;%25%34%31'.repeat(100)
    const secrets = Array.from({ length: 20 }, (_, index) => `${index}`.padStart(200, 'AbC'))
    const startMs = performance.now()
    scrub(text, secrets, { cutOff: true })
    expect(performance.now() - startMs).toBeLessThan(1_000)
  })
})
