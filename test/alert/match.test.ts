import fc from 'fast-check'
import { RE2JS } from 're2js'
import { describe, expect, it, vi } from 'vitest'
import { type Alert, parseRow } from '../../src/alert/alert.ts'
import { ruleFacts } from '../../src/alert/match/fields.ts'
import {
  asksNothing,
  asksOfRule,
  type Match,
  type Miss,
  matchAlert,
  normaliseSymbol,
  type RuleLookup,
} from '../../src/alert/match/match.ts'
import { parseMatch } from '../../src/alert/match/match-form.ts'
import { atOnce } from '../../src/alert/match/turns.ts'

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

function wants(written: Record<string, unknown>): Match {
  const match = parseMatch(written)
  if (match === undefined) throw new Error(`no match: ${JSON.stringify(written)}`)
  return match
}

const rules = new Map([
  [
    '12',
    ruleFacts({
      id: 12,
      name: 'Steel over 5,000',
      kind: 'price',
      owner: null,
      channels: ['app'],
      mine: true,
    }),
  ],
  ['15', ruleFacts({ id: 15, name: 'Night watch', kind: 'screen', screen: 'ارزان', mine: false })],
])

/** With the rules 12 and 15 of source main known. */
function missesOf(given: Alert, match: Match): readonly Miss[] {
  const ruleOf: RuleLookup = (source, id) => (source === 'main' ? rules.get(id) : undefined)
  const matched = atOnce(matchAlert(given, match, ruleOf))
  if (matched.kind === 'rule_unknown') throw new Error(`unknown: ${matched.ruleIds}`)
  return matched.kind === 'misses' ? matched.misses : []
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

  it.each([
    ['its rule', { ruleId: ['\u06f1\u06f5'] }],
    ['a pattern of its rule', { ruleId: [{ glob: '\u06f1*' }] }],
    ['its id', { id: ['\u0667'] }],
  ])('%s, typed on a Persian or an Arabic keyboard', (_, match) => {
    expect(missesOf(alert(), wants(match))).toEqual([])
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
    expect(misses.map(({ field }) => field)).toEqual(['source', 'ruleId'])
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

describe('every field', () => {
  const full = alert({
    slug: 'foolad',
    payload: ['last=5310', 'unit=rial'],
    headline: 'فولاد از ۵٬۲۰۰ گذشت',
    why: 'آخرین\nقیمت',
    channels: ['app', 'telegram'],
    notifiedAt: '2026-11-21T09:00:05Z',
    isRead: true,
  })

  it.each<[string, unknown]>([
    ['id', 7],
    ['slug', 'foolad'],
    ['headline', { glob: '*گذشت' }],
    ['headline', { regex: '5٬200' }],
    ['why', { regex: 'قیمت$' }],
    ['url', { regex: '^https:' }],
    ['channel', 'telegram'],
    ['payload', 'unit=rial'],
    ['payload', { regex: '^last=5\\d+$' }],
    ['firedAt', { glob: '2026-11-21T09:*' }],
    ['notifiedAt', { glob: '*:05Z' }],
    ['isRead', true],
    ['kind', { not: ['screen', { glob: 'f*' }] }],
    ['symbol', [{ not: 'فولاد' }, { glob: '??لاد' }]],
  ])('%s: %j', (field, wanted) => {
    expect(missesOf(full, wants({ [field]: wanted }))).toEqual([])
  })

  it.each<[string, unknown, string]>([
    ['isRead', false, 'false'],
    ['channel', { not: 'app' }, 'not app'],
    ['payload', { regex: '^unit=toman$' }, 'regex ^unit=toman$'],
    ['slug', { glob: 'fool' }, 'glob fool'],
    ['kind', { not: [{ regex: '^p' }, 'x'] }, 'not regex ^p or x'],
  ])('%s: %j is not this one', (field, wanted, told) => {
    expect(missesOf(full, wants({ [field]: wanted }))).toMatchObject([{ field, wanted: [told] }])
  })

  it('that is absent is not something, and is no value', () => {
    const bare = alert({ symbol: null, notifiedAt: null })
    expect(missesOf(bare, wants({ symbol: { not: 'فولاد' } }))).toEqual([])
    expect(missesOf(bare, wants({ symbol: { glob: '*' } }))).toHaveLength(1)
    expect(missesOf(bare, wants({ notifiedAt: { regex: '.*' } }))).toHaveLength(1)
  })

  it('of a payload that is a mapping reads key=value', () => {
    const mapped = alert({ payload: { unit: 'rial', last: 5310, deep: { a: 1 } } })
    expect(missesOf(mapped, wants({ payload: 'last=5310' }))).toEqual([])
    expect(missesOf(mapped, wants({ payload: 'deep={"a":1}' }))).toEqual([])
  })
})

describe('the rule', () => {
  it.each<[unknown]>([
    [{ name: { glob: 'Steel*' } }],
    [{ screen: 'ارزان', kind: 'screen' }],
    [{ owner: { not: 'x' } }],
    [{ channel: 'app', mine: true }],
  ])('%j is one of the two', (rule) => {
    expect(missesOf(alert(), wants({ rule }))).toEqual([])
  })

  it('must be one that fits in all that is asked', () => {
    const misses = missesOf(alert(), wants({ rule: { name: { glob: 'Steel*' }, kind: 'screen' } }))
    expect(misses).toEqual([{ field: 'rule.kind', found: ['price'], wanted: ['screen'] }])
    const none = missesOf(alert(), wants({ rule: { kind: 'filing' } }))
    expect(none).toEqual([{ field: 'rule.kind', found: ['price', 'screen'], wanted: ['filing'] }])
  })

  const ask = (given: Alert, written: Record<string, unknown>) =>
    atOnce(matchAlert(given, wants(written), (_source, id) => rules.get(id))).kind

  it('is looked at once, and of very many the first: the others count as not known', () => {
    const ids = Array.from({ length: 202 }, (_, nth) => String(nth))
    const askMany = (ruleIds: readonly string[], name: string) =>
      atOnce(
        matchAlert(alert({ ruleIds }), wants({ rule: { name } }), (_source, id) =>
          ruleFacts({ id: Number(id), name: `rule ${id}` }),
        ),
      )
    expect(askMany(ids, 'rule 199')).toEqual({ kind: 'matches' })
    expect(askMany(ids, 'rule 200')).toEqual({ kind: 'rule_unknown', ruleIds: ['200', '201'] })
    expect(askMany(Array(5_000).fill('7'), 'rule 8')).toMatchObject({ misses: [{ found: ['rule 7'] }] })
  })

  it('that misses only by a field that is not kept whole counts as not known', () => {
    const cut = ruleFacts({
      id: 12,
      name: 'Steel',
      config: 'x'.repeat(500),
      channels: [],
      cut: ['config', 'channels'],
    })
    const askCut = (rule: object) =>
      atOnce(matchAlert(alert({ ruleIds: ['12'] }), wants({ rule }), () => cut)).kind
    expect(askCut({ config: { regex: 'y' } })).toBe('rule_unknown')
    expect(askCut({ channel: 'app', config: { glob: '*y' } })).toBe('rule_unknown')
    expect(askCut({ config: { regex: 'x' } })).toBe('matches')
    expect(askCut({ config: { not: { regex: 'y' } } })).toBe('matches')
    expect(askCut({ config: { regex: 'y' }, name: 'Gold' })).toBe('misses')
  })

  it.each<[string, object, object[]]>([
    ['comes to be known', { id: 99 }, [{ id: 99 }, { id: 12, name: 'Steel' }]],
    [
      'is read again',
      { id: 12, name: 'x', cut: ['name'] },
      [{ id: 12, name: 'x', cut: ['name'] }, { id: 99 }],
    ],
  ])('that %s while it is compared is no miss', (_what, before, after) => {
    const known = (rows: object[]) =>
      new Map(rows.map((row) => [String('id' in row && row.id), ruleFacts({ ...row })]))
    let facts = known([before])
    const one = alert({ ruleIds: ['99', '12'] })
    const steps = matchAlert(one, wants({ rule: { name: { regex: 'Steel' } } }), (_source, id) =>
      facts.get(id),
    )
    steps.next()
    facts = known(after)
    expect(atOnce(steps).kind).toBe('rule_unknown')
  })

  it('that is not known is neither a match nor a miss', () => {
    const unknown = alert({ ruleIds: ['12', '99'] })
    expect(ask(unknown, { rule: { kind: 'filing' } })).toBe('rule_unknown')
    expect(ask(unknown, { rule: { kind: { not: 'price' } } })).toBe('rule_unknown')
    expect(ask(unknown, { rule: { kind: 'price' } })).toBe('matches')
    expect(ask(unknown, { rule: { kind: 'filing' }, kind: 'screen' })).toBe('misses')
  })

  it('of an alert without one has no values', () => {
    const bare = alert({ ruleIds: [] })
    expect(ask(bare, { rule: { name: { glob: '*' } } })).toBe('misses')
    expect(ask(bare, { rule: { name: { not: 'x' } } })).toBe('matches')
  })

  it('is asked for only where a match says so', () => {
    expect([wants({ kind: 'a' }), wants({ rule: { name: 'a' } })].map(asksOfRule)).toEqual([false, true])
    expect([wants({}), wants({ kind: 'a' }), wants({ rule: { mine: true } })].map(asksNothing)).toEqual([
      true,
      false,
      false,
    ])
  })
})

describe('patterns', () => {
  it('are compiled once, however many there are', () => {
    const all = Array.from({ length: 1_100 }, (_, index) => wants({ symbol: { glob: `x${index}*` } }))
    for (const match of all) missesOf(alert(), match)
    const compile = vi.spyOn(RE2JS, 'compile')
    for (const match of all) missesOf(alert(), match)
    expect(compile).not.toHaveBeenCalled()
    compile.mockRestore()
  })

  it('and names of a long list are made comparable once', () => {
    const names = Array.from({ length: 3_000 }, (_, index) => `نماد${index}`)
    const list = wants({ symbol: [{ not: [...names, 'فولاد'] }, ...names, 'ك'] })
    expect(missesOf(alert(), list)).toHaveLength(1)
    const normalise = vi.spyOn(String.prototype, 'normalize')
    expect(missesOf(alert({ symbol: '\u06a9' }), list)).toEqual([])
    expect(normalise.mock.calls.length).toBeLessThan(10)
    normalise.mockRestore()
  })
})

describe('a pattern of a symbol', () => {
  it('makes no difference between letters that look alike', () => {
    expect(missesOf(alert({ symbol: 'ذوب\u064a' }), wants({ symbol: { glob: '*\u06cc' } }))).toEqual([])
    expect(missesOf(alert({ symbol: 'كگل' }), wants({ symbol: { regex: '^\u06a9' } }))).toEqual([])
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
