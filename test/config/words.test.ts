import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isTimeZone, nearestTimeZone, parseHoliday, parseTimeOfDay } from '../../src/config/calendar.ts'
import { fillVariables } from '../../src/config/file/env.ts'
import { maskAddress } from '../../src/config/mistakes/describe-value.ts'
import { editDistance, nearest } from '../../src/config/mistakes/nearest.ts'
import { anyText } from '../support/any-text.ts'

describe('variables in a text', () => {
  // Written with § so that nobody takes the texts for templates.
  const dollars = (text: string) => text.replaceAll('§', '$')
  const env = { NAME: 'value', EMPTY: '' }
  it.each([
    ['§{NAME}', 'value'],
    ['a-§{NAME}-b-§{NAME}', 'a-value-b-value'],
    ['§{MISSING:-default}', 'default'],
    ['§{EMPTY:-default}', 'default'],
    ['§{EMPTY}', ''],
    ['§{NAME:-default}', 'value'],
    ['§{MISSING:-}', ''],
    ['§{MISSING:-a:-b}', 'a:-b'],
    ['§§{NAME}', '§{NAME}'],
    ['§§', '§'],
    ['§NAME costs §5', '§NAME costs §5'],
  ])('%s reads %s', (text, filled) => {
    expect(fillVariables(dollars(text), env)).toMatchObject({ text: dollars(filled), problems: [] })
  })

  it.each(['§{MISSING}', '§{NAME', '§{}', '§{1NAME}', '§{NAME:?}', '§{NAME-x}', '§{MISSING:-§{NAME}}'])(
    '%s is a problem',
    (text) => {
      expect(fillVariables(dollars(text), env).problems).not.toEqual([])
    },
  )

  it.each(['constructor', '__proto__', 'toString', 'hasOwnProperty'])(
    'are none that every object has: %s is not set',
    (name) => {
      expect(fillVariables(`\${${name}}`, {}).problems).toMatchObject([
        { message: `the environment variable ${name} is not set` },
      ])
      expect(fillVariables(`\${${name}}`, process.env).problems).toHaveLength(1)
      expect(fillVariables(`\${${name}:-default}`, {}).text).toBe('default')
    },
  )

  it('are filled once: what a variable holds is not read again', () => {
    expect(fillVariables(`\${A}`, { A: `\${B}`, B: 'no' }).text).toBe(`\${B}`)
  })

  it('leave every text without a dollar sign alone', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        fc.pre(!text.includes('$'))
        expect(fillVariables(text, {})).toEqual({ text, variables: [], whole: false, problems: [] })
      }),
    )
  })

  it('give any text back when its dollar signs are doubled', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(fillVariables(text.replaceAll('$', '$$$$'), {})).toMatchObject({ text, problems: [] })
      }),
    )
  })
})

describe('the nearest word', () => {
  const keys = ['url', 'secret', 'headers', 'timeout', 'rateLimit', 'retry']
  it.each([
    ['urll', 'url'],
    ['ulr', 'url'],
    ['header', 'headers'],
    ['timout', 'timeout'],
    ['ratelimit', 'rateLimit'],
    ['retrys', 'retry'],
    ['colour', undefined],
    ['xy', undefined],
    ['', undefined],
  ])('to %s is %s', (word, wanted) => {
    expect(nearest(word, keys)).toBe(wanted)
  })

  it('is none among none', () => {
    expect(nearest('url', [])).toBeUndefined()
  })

  it('counts a swap of neighbours as one slip, and is the same both ways', () => {
    expect(editDistance('mian', 'main')).toBe(1)
    const word = fc.string({ maxLength: 12 })
    fc.assert(
      fc.property(word, word, (a, b) => {
        expect(editDistance(a, b)).toBe(editDistance(b, a))
        expect(editDistance(a, b) === 0).toBe(a === b)
        expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length))
      }),
    )
  })
})

describe('days', () => {
  it.each([
    ['2026-11-25', '2026-11-25'],
    ['1405-09-04', '2026-11-25'],
    ['1405-01-01', '2026-03-21'],
    ['1403-12-30', '2025-03-20'],
    ['1404-12-30', undefined],
    ['1405-13-01', undefined],
    ['1405-07-31', undefined],
    ['2026-02-29', undefined],
    ['26-11-25', undefined],
    ['2026/11/25', undefined],
  ])('%s is %s', (text, day) => {
    expect(parseHoliday(text)).toBe(day)
  })

  it('of both calendars agree for every day of two centuries', () => {
    const jalali = new Intl.DateTimeFormat('en-u-ca-persian-nu-latn', {
      timeZone: 'UTC',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
    })
    const date = fc.date({ min: new Date('1922-03-22'), max: new Date('2122-03-20'), noInvalidDate: true })
    fc.assert(
      fc.property(date, (instant) => {
        const parts = new Map(jalali.formatToParts(instant).map(({ type, value }) => [type, value]))
        const text = `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`
        expect(parseHoliday(text)).toBe(instant.toISOString().slice(0, 10))
      }),
    )
  })
})

describe('clocks', () => {
  it.each([
    ['08:45', '08:45'],
    ['8:45', '08:45'],
    ['24:00', '24:00'],
    ['24:01', undefined],
    ['12:60', undefined],
    ['noon', undefined],
  ])('%s is %s', (text, time) => {
    expect(parseTimeOfDay(text)).toBe(time)
  })

  it('run in zones that exist', () => {
    expect(['Asia/Tehran', 'UTC', 'Europe/London'].map(isTimeZone)).toEqual([true, true, true])
    expect(['Tehran', '', 'Asia/Teheran'].map(isTimeZone)).toEqual([false, false, false])
    expect(['Tehran', 'Asia/Teheran', 'nowhere'].map(nearestTimeZone)).toEqual([
      'Asia/Tehran',
      'Asia/Tehran',
      undefined,
    ])
  })
})

describe('an address that is shown', () => {
  it.each([
    ['https://example.com/a', 'https://example.com/a'],
    ['https://me:pass@example.com/a', 'https://[redacted]@example.com/a'],
    ['https://me:p/a@s@example.com', 'https://[redacted]@example.com'],
    ['https://example.com/?a=1&b=2#c', 'https://example.com/?a=[redacted]&b=[redacted]#c'],
    ['Alerts <alerts@example.com>', 'Alerts <alerts@example.com>'],
    [
      'https://hooks.example.com/services/v1/B0K3N5/s3cr3t-t0k3n/abcdefghijklmnop',
      'https://hooks.example.com/services/v1/[redacted]/[redacted]/[redacted]',
    ],
    ['https://hooks-1234567890.example.com:8443/a', 'https://hooks-1234567890.example.com:8443/a'],
    [
      'https://example.com/a?CANARY12345&b=1#CANARY12345',
      'https://example.com/a?[redacted]&b=[redacted]#[redacted]',
    ],
    ['hooks.example.com?canaryOfOneWord', 'hooks.example.com?[redacted]'],
    ['/in?canaryOfOneWord=', '/in?[redacted]'],
    ['?canaryOfOneWord', '?[redacted]'],
    ['see https://example.com/in?a=1&canaryOfOneWord', 'see https://example.com/in?a=[redacted]&[redacted]'],
    ['market?canaryOfOneWord', 'market?[redacted]'],
    ['market:8080?canaryOfOneWord', 'market:8080?[redacted]'],
    ['بازار.ایران?canaryOfOneWord', 'بازار.ایران?[redacted]'],
    ['see بازار.ایران?canaryOfOneWord', 'see بازار.ایران?[redacted]'],
    ['market?a=1&canaryOfOneWord', 'market?a=[redacted]&[redacted]'],
    ['Really?certainly so', 'Really?certainly so'],
    ['Really?{{headline}}', 'Really?{{headline}}'],
    ['<b>a</b>&nbsp;certainly', '<b>a</b>&nbsp;certainly'],
    ['hooks.example.com/services/CANARY12345', 'hooks.example.com/services/[redacted]'],
    ['https:/hooks.example.com/services/CANARY12345', 'https:/hooks.example.com/services/[redacted]'],
    ['/etc/alert-bridge/certificates-2026.pem', '/etc/alert-bridge/certificates-2026.pem'],
  ])('%s reads %s', (text, shown) => {
    expect(maskAddress(text)).toBe(shown)
  })
})
