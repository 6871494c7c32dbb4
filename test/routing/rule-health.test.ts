import { describe, expect, it } from 'vitest'
import { ruleNews } from '../../src/app/notices/rule-notices.ts'
import { isOlderCopy, silentRules } from '../../src/routing/rule-health.ts'

const atMs = Date.UTC(2026, 10, 22, 8)
const ago = (hours: number) => new Date(atMs - hours * 3_600_000).toISOString()
const always = () => true
const rule = (id: number, fields: Record<string, unknown> = {}) => ({
  ...{ id, name: 'قیمت', isActive: true, isArmed: true, disabledReason: null, lastFiredAt: null },
  ...{ lastEvaluatedAt: ago(0.1), nextEvaluationAt: ago(-0.1) },
  readAt: ago(0),
  ...fields,
})
const silent = (rules: ReturnType<typeof rule>[], isActive: (atMs: number) => boolean = always) =>
  silentRules(rules, isActive).map(({ id, trouble }) => `${id} ${trouble}`)
const late = { lastEvaluatedAt: ago(5.1), nextEvaluationAt: ago(5) }

describe('a rule may not fire', () => {
  it('that is disabled, not armed, or not evaluated long after its time', () => {
    expect(
      silent([
        rule(1),
        rule(2, { disabledReason: 'symbol closed' }),
        rule(3, { isArmed: false }),
        rule(4, late),
        rule(5, { isActive: false, disabledReason: 'limit' }),
      ]),
    ).toEqual(['2 disabled', '3 not_armed', '4 not_evaluated', '5 disabled'])
  })

  it('but one that its owner switched off is in order, and so is one that rests since it fired', () => {
    expect(
      silent([
        rule(1, { isActive: false, isArmed: false, ...late }),
        rule(2, { isArmed: false, lastFiredAt: ago(2) }),
        rule(3, { isArmed: false, lastFiredAt: ago(30) }),
        rule(4, { disabledReason: '' }),
        rule(5, { nextEvaluationAt: null, lastEvaluatedAt: null }),
        rule(6, { nextEvaluationAt: 'tomorrow' }),
      ]),
    ).toEqual(['3 not_armed'])
  })

  it('is late by its own period, not before', () => {
    expect(silent([rule(1), rule(2, { lastEvaluatedAt: ago(8), nextEvaluationAt: ago(4) })])).toEqual([])
    expect(silent([rule(1), rule(2, { lastEvaluatedAt: ago(14), nextEvaluationAt: ago(10) })])).toEqual([
      '2 not_evaluated',
    ])
  })
})

describe('nothing is said of lateness', () => {
  it('where the whole page is old, until it has been old for a day', () => {
    const page = (hours: number) => [
      rule(1, { lastEvaluatedAt: ago(hours + 0.2), nextEvaluationAt: ago(hours) }),
      rule(2, { lastEvaluatedAt: ago(hours + 0.3), nextEvaluationAt: ago(hours + 0.1) }),
    ]
    expect(silent(page(20))).toEqual([])
    expect(silent(page(26))).toHaveLength(2)
  })

  it('of a page by one that was read at another time', () => {
    const page = (hours: number) => [
      rule(1, { readAt: ago(hours), lastEvaluatedAt: ago(hours + 0.1), nextEvaluationAt: ago(hours - 0.1) }),
      rule(2, { readAt: ago(hours), lastEvaluatedAt: ago(5), nextEvaluationAt: ago(4.9) }),
    ]
    expect(silent([...page(2), rule(3), rule(4, late)])).toEqual(['2 not_evaluated', '4 not_evaluated'])
    const alone = rule(5, { ...late, readAt: ago(0.1) })
    expect(silent([alone])).toEqual([])
    expect(silent([alone, rule(3)])).toEqual(['5 not_evaluated'])
  })

  it('while the market was closed since, whatever the engine shows as due', () => {
    const opensMs = atMs - 30 * 60_000
    const closedMs = atMs - 68 * 3_600_000
    const isActive = (ms: number) => ms < closedMs || ms >= opensMs
    const weekend = [rule(1, { lastEvaluatedAt: ago(68.1), nextEvaluationAt: ago(68) })]
    expect(silent([...weekend, rule(2)], isActive)).toEqual([])
    expect(silent(weekend, isActive)).toEqual([])
    const longOpen = (ms: number) => ms < closedMs || ms >= atMs - 2 * 3_600_000
    expect(silent([...weekend, rule(2)], longOpen)).toEqual(['1 not_evaluated'])
  })
})

it('a page is an older copy where its rules were evaluated earlier than is known', () => {
  const before = new Map([1, 2, 3].map((id) => [String(id), rule(id)]))
  const old = { lastEvaluatedAt: ago(1) }
  expect(isOlderCopy([rule(1, old), rule(2, old), rule(3)], before)).toBe(true)
  expect(isOlderCopy([rule(1, old), rule(2, { lastEvaluatedAt: ago(0) }), rule(3)], before)).toBe(false)
  expect(isOlderCopy([rule(9, old)], before)).toBe(false)
})

describe('what people are told of rules', () => {
  const trouble = 'disabled' as const
  const dead = (id: string) => ({ id, name: `rule ${id}`, trouble, text: 'disabled: halted' })
  const ids = (count: number) => Array.from({ length: count }, (_, at) => String(at + 1))

  it('is one notice for many, which names ten; nothing again; and one when they are over', () => {
    const begun = ruleNews('main', {}, { silent: ids(25).map(dead), ids: ids(40), isWhole: true })
    expect(begun?.notices).toMatchObject([{ kind: 'rules_silent', count: 25 }])
    expect(begun?.notices[0]).toHaveProperty('rules.length', 10)
    const told = begun?.names ?? {}
    expect(ruleNews('main', told, { silent: ids(25).map(dead), ids: ids(40), isWhole: true })).toBeUndefined()
    const over = ruleNews('main', told, { silent: [dead('26')], ids: ids(40).slice(1), isWhole: true })
    expect(over?.notices).toMatchObject([
      { kind: 'rules_silent', count: 1, rules: ['26 rule 26: disabled: halted'] },
      { kind: 'rules_well', count: 25 },
    ])
    expect(over?.notices[1]).toHaveProperty(['rules', 0], '1 rule 1 (deleted)')
    expect(Object.keys(over?.names ?? {})).toEqual(['26'])
  })

  it('ends only for rules that were read: a reading that is not whole shows of others nothing', () => {
    const told = { 1: 'one', 2: 'two' }
    expect(ruleNews('main', told, { silent: [], ids: ['2'], isWhole: false })?.names).toEqual({ 1: 'one' })
    expect(ruleNews('main', told, { silent: [], ids: [], isWhole: false })).toBeUndefined()
  })
})
