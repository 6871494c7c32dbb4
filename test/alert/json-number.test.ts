import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseRow } from '../../src/alert/alert.ts'
import { fromJobData, toJobData } from '../../src/alert/job.ts'
import { JsonNumber, parseJson, TooManyNumbersError } from '../../src/alert/json/json-number.ts'
import { wholeText } from '../../src/alert/text/value.ts'
import { rawOf } from '../../src/store/walk/quarantine.ts'

const digits = fc.stringMatching(/^[0-9]{1,22}$/)
const whole = fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9][0-9]{0,22}$/))
const literal = fc
  .tuple(
    fc.constantFrom('', '-'),
    whole,
    fc.option(digits, { nil: undefined }),
    fc.option(fc.stringMatching(/^[eE][+-]?[0-9]{1,3}$/), { nil: '' }),
  )
  .map(
    ([sign, integer, fraction, exponent]) =>
      `${sign}${integer}${fraction === undefined ? '' : `.${fraction}`}${exponent}`,
  )
const json = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    { arbitrary: literal, weight: 3 },
    fc.constantFrom('null', 'true', '": 1.10,"', '[]'),
    fc.array(tie('value'), { maxLength: 4 }).map((parts) => `[${parts.join(',')}]`),
    fc.array(tie('value'), { maxLength: 4 }).map((parts) => `{${parts.map((p, i) => `"k${i}":${p}`)}}`),
  ),
})).value

describe('a number of a row', () => {
  it('is written again as it was spelled, whatever it is, also out of a stored job and the quarantine', () => {
    fc.assert(
      fc.property(json, (text) => {
        expect(JSON.stringify(parseJson(text))).toBe(text)
        const raw = `{"id":7,"payload":${text}}`
        const parsed = parseRow('main', parseJson(raw))
        if (!parsed.ok) throw new Error(parsed.reason)
        expect(rawOf(parsed.alert.row)).toBe(raw)
        // Redis, BullMQ, and a job that is sent again: ordinary JSON.
        const stored = copied(copied(toJobData({ sink: 'hook', alert: parsed.alert, seenAtMs: 1 })))
        const read = fromJobData('hook', stored)
        if (!read.ok) throw new Error(read.reason)
        expect(JSON.stringify(read.job.alert.row)).toBe(raw)
      }),
      { numRuns: 300 },
    )
  })

  it('is an ordinary one wherever JavaScript gives it back as it came', () => {
    expect(parseJson('{"a":[12.5,-7,0,123456789012345]}')).toEqual({ a: [12.5, -7, 0, 123456789012345] })
  })

  it.each([
    ['5.0', { id: 5 }],
    ['1e3', { id: 1_000 }],
  ])('names an alert as %s where it is a whole one', (text, alert) => {
    expect(parseRow('main', parseJson(`{"id":${text}}`))).toMatchObject({ ok: true, alert })
  })

  it.each(['9007199254740995', '5.0000000000000000001', '1e400', '[1.10]'])('names no alert as %s', (id) => {
    const found = id.startsWith('[') ? 'a list' : id
    expect(parseRow('main', parseJson(`{"id":${id}}`))).toMatchObject({
      ok: false,
      reason: expect.stringContaining(`found ${found}`),
    })
  })

  it('is shown and compared as JavaScript spells it, where that is the same number', () => {
    const shown = (text: string) => wholeText(parseJson(`[${text}]`))
    expect(['2.0', '1E3', '-0', '9007199254740995', '0.10', '1e400'].map(shown)).toEqual([
      ...['2', '1000', '0', '9007199254740995', '0.1', '1e400'],
    ])
    expect(Number(new JsonNumber('1e400'))).toBe(Number.MAX_VALUE)
  })

  it('is exact however deep the text is nested, and however many there are', () => {
    const deep = `${'['.repeat(50_000)}1.10${']'.repeat(50_000)}`
    let value = parseJson(`[2.20,${deep},{"__proto__":3.30}]`)
    expect(Array.isArray(value) && [String(value[0]), JSON.stringify(value[2])]).toEqual([
      '2.2',
      '{"__proto__":3.30}',
    ])
    value = Array.isArray(value) ? value[1] : undefined
    while (Array.isArray(value)) value = value[0]
    expect(value).toEqual(new JsonNumber('1.10'))
    const many = `[${Array.from({ length: 20_000 }, (_, index) => `${index}.10`).join(',')}]`
    expect(JSON.stringify(parseJson(many))).toBe(many)
  })

  it('is an ordinary one in a row that has more of them than a row may have, from there on', () => {
    const text =
      '{"data":[{"a":[1.10,2.20,[3.30],-0]},{"a":1.10,"b":"]"},{"c":[[2.20,"\\"{"]],"d":3.30}],"meta":{"e":1.0}}'
    expect(JSON.stringify(parseJson(text, { rowMax: 2 }))).toBe(text.replace('3.30],-0]', '3.3],0]'))
    expect(() => parseJson(text, { max: 2 })).toThrow(TooManyNumbersError)
  })

  it.each(['{"a":1.10', '[01.10]', '{1.10:2}', '[1.10.2]', '[1.10"]'])('makes no JSON of %s', (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError)
  })
})

function copied(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}
