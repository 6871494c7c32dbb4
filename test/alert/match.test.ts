import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Alert, parseRow } from '../../src/alert/alert.ts'
import { type Match, missesOf, normaliseSymbol } from '../../src/alert/match.ts'

function alert(fields: Record<string, unknown> = {}): Alert {
  const parsed = parseRow('main', {
    id: 7,
    kind: 'price',
    symbol: 'فولاد',
    payload: [],
    headline: 'h',
    url: 'https://example.com/7',
    ruleIds: ['12', '15'],
    firedAt: '2026-11-21T09:00:00Z',
    channels: [],
    isRead: false,
    ...fields,
  })
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.alert
}

function wants(fields: Record<string, string[]>): Match {
  const entries = Object.entries(fields)
  return Object.fromEntries(
    entries.map(([field, values]) => [field, values.map((value) => ({ op: 'equals', value }))]),
  )
}

describe('an alert matches', () => {
  it.each([
    ['nothing asked', {}],
    ['its kind', { kind: ['price'] }],
    ['one of several kinds', { kind: ['screen', 'price'] }],
    ['its symbol', { symbol: ['فولاد'] }],
    ['any of its rules', { ruleId: ['15'] }],
    ['its source', { source: ['main'] }],
    ['every field at once', { kind: ['price'], symbol: ['فولاد'], ruleId: ['12'], source: ['main'] }],
    ['a value with blanks around it', { kind: [' price '] }],
  ])('%s', (_, match) => {
    expect(missesOf(alert(), wants(match))).toEqual([])
  })

  it('rules that came as numbers', () => {
    expect(missesOf(alert({ ruleIds: [12] }), wants({ ruleId: ['12'] }))).toEqual([])
  })
})

describe('an alert does not match', () => {
  it('when one field differs, and says which, what it held, and what was wanted', () => {
    expect(missesOf(alert(), wants({ kind: ['screen', 'filing'], symbol: ['فولاد'] }))).toEqual([
      { field: 'kind', found: ['price'], wanted: ['screen', 'filing'] },
    ])
  })

  it('names every field that differs', () => {
    const misses = missesOf(alert(), wants({ source: ['other'], ruleId: ['1'] }))
    expect(misses.map(({ field }) => field)).toEqual(['ruleId', 'source'])
  })

  it('a symbol when it has none, nor a rule when it has none', () => {
    const bare = alert({ symbol: null, ruleIds: [] })
    expect(missesOf(bare, wants({ symbol: ['فولاد'], ruleId: ['12'] }))).toEqual([
      { field: 'symbol', found: [], wanted: ['فولاد'] },
      { field: 'ruleId', found: [], wanted: ['12'] },
    ])
  })

  it('a kind in another case: kinds are names, not words', () => {
    expect(missesOf(alert(), wants({ kind: ['Price'] }))).toHaveLength(1)
  })

  it('part of a symbol', () => {
    expect(missesOf(alert(), wants({ symbol: ['فولا'] }))).toHaveLength(1)
  })
})

describe('symbols', () => {
  it.each([
    ['Arabic yeh', 'ذوب\u064a', 'ذوب\u06cc'],
    ['alef maksura', 'ذوب\u0649', 'ذوب\u06cc'],
    ['Arabic kaf', '\u0643گل', '\u06a9گل'],
    ['a zero-width non-joiner', 'می\u200cخک', 'میخک'],
    ['bidi marks', '\u200fفولاد\u200e', 'فولاد'],
    ['isolates', '\u2068فولاد\u2069', 'فولاد'],
    ['a byte order mark', '\ufeffفولاد', 'فولاد'],
    ['Persian digits', 'ضفلا\u06f1\u06f2', 'ضفلا12'],
    ['Arabic digits', 'ضفلا\u0661\u0662', 'ضفلا12'],
    ['presentation forms', '\ufed3\ufeee\ufefb\ufea9', 'فولاد'],
    ['blanks around it', ' فولاد ', 'فولاد'],
  ])('are the same with %s', (_, written, wanted) => {
    expect(missesOf(alert({ symbol: written }), wants({ symbol: [wanted] }))).toEqual([])
    expect(missesOf(alert({ symbol: wanted }), wants({ symbol: [written] }))).toEqual([])
  })

  it('stay apart when a letter differs', () => {
    expect(normaliseSymbol('فولاد')).not.toBe(normaliseSymbol('فولاژ'))
    expect(normaliseSymbol('ی')).not.toBe(normaliseSymbol('ک'))
  })

  it('in their form of comparison are in it already', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const once = normaliseSymbol(text)
        expect(normaliseSymbol(once)).toBe(once)
      }),
    )
  })

  it('are reported as they came', () => {
    const [miss] = missesOf(alert({ symbol: 'ذوب\u064a' }), wants({ symbol: ['\u0643'] }))
    expect(miss).toEqual({ field: 'symbol', found: ['ذوب\u064a'], wanted: ['\u0643'] })
  })
})
