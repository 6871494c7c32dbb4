import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  cut,
  directionMark,
  directionOf,
  fewLines,
  isolate,
  oneLine,
  shares,
} from '../../src/alert/text/text.ts'
import { anyText } from '../support/any-text.ts'

describe('one line', () => {
  test.each([
    ['a\r\nb\tc', 'a b c'],
    ['\u001b[31mred\u0000', '[31mred'],
    ['a\u202eb\u2066c\u2069', 'abc'],
    ['half \ud800 pair', 'half \ufffd pair'],
    ['a\u2028b\u2029c\ufeff', 'a b c'],
    ['می‌شود', 'می‌شود'],
  ])('of %j is %j', (text, line) => {
    expect(oneLine(text)).toBe(line)
  })

  test('has no control, break or direction mark left in it', () => {
    fc.assert(
      fc.property(anyText(), (text) => {
        const line = oneLine(text)
        expect(line).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u)
        expect(line.isWellFormed()).toBe(true)
        expect(oneLine(line)).toBe(line)
      }),
    )
  })
})

test('few lines keep their breaks, drop the empty ones and fold what is too many into the last', () => {
  expect(fewLines('a\r\n\n b \nc\u2028d', 9)).toEqual(['a', 'b', 'c', 'd'])
  expect(fewLines('a\nb\nc\nd', 2)).toEqual(['a', 'b c d'])
  expect(fewLines(' \n ', 3)).toEqual([])
})

describe('a cut', () => {
  test('leaves short text alone and marks what it shortens', () => {
    expect(cut('short', 5)).toBe('short')
    expect(cut('longer text', 7)).toBe('longer…')
  })

  test.each(['👩‍👩‍👧‍👦', 'é', 'کَ', '🇮🇷'])('never halves %s', (character) => {
    for (let charsMax = 1; charsMax < 60; charsMax += 1)
      expect(cut(character.repeat(40), charsMax).replace(/…$/, '').replaceAll(character, '')).toBe('')
  })

  test('counts what the text becomes where it is written', () => {
    const write = (part: string) => part.replaceAll('&', '&amp;')
    expect(cut('&&&&&', 16, write)).toBe('&&&…')
    expect(cut('&&&', 15, write)).toBe('&&&')
  })

  test('keeps the limit for any text, also one mark piled on another without end', () => {
    fc.assert(
      fc.property(anyText({ maxLength: 300 }), fc.integer({ min: 1, max: 200 }), (text, charsMax) => {
        expect(cut(text, charsMax).length).toBeLessThanOrEqual(charsMax)
      }),
    )
    const pile = cut(`a${'\u0301'.repeat(100_000)}`, 50)
    expect(pile.length).toBeLessThanOrEqual(50)
    expect(pile.isWellFormed()).toBe(true)
  })

  test('of megabytes takes no longer than of a line', () => {
    const huge = 'ب'.repeat(20_000_000)
    // Processor time, so that a busy machine changes nothing.
    const before = process.threadCpuUsage()
    for (let count = 0; count < 50; count += 1) cut(huge, 200)
    const { user, system } = process.threadCpuUsage(before)
    expect((user + system) / 1_000).toBeLessThan(2_000)
  })
})

describe('the direction', () => {
  test.each([
    ['فولاد از مرز گذشت', 'rtl'],
    ['AAPL از مرز ۲۰۰ دلار گذشت', 'rtl'],
    ['فولاد crossed above its average', 'ltr'],
    ['שלום', 'rtl'],
    ['Gold', 'ltr'],
  ])('of %s is %s', (text, direction) => {
    expect(directionOf(text)).toBe(direction)
  })

  test('of text without letters is that of its surroundings', () => {
    expect(directionOf('12.5 %', 'rtl')).toBe('rtl')
    expect(directionOf('', 'ltr')).toBe('ltr')
  })

  test('marks are the ones of Unicode', () => {
    expect([directionMark('rtl'), directionMark('ltr')]).toEqual(['\u200f', '\u200e'])
    expect(isolate('x')).toBe('\u2068x\u2069')
  })
})

describe('a total that is shared out', () => {
  test.each<[number[], number, number[]]>([
    [[], 10, []],
    [[3, 4], 10, [3, 4]],
    [[1, 100, 1], 10, [1, 8, 1]],
    [[100, 2, 100], 12, [5, 2, 5]],
    [[100, 100, 100], 10, [3, 3, 4]],
  ])('%j of %i gives %j', (lengths, total, given) => {
    expect(shares(lengths, total)).toEqual(given)
  })
})
