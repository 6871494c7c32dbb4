import { describe, expect, it } from 'vitest'
import { parseMatch } from '../../src/alert/match/match-form.ts'
import { matchOf, silenceCommand } from '../../src/cli/silence.ts'
import { UserError } from '../../src/lib/errors.ts'
import { run } from '../support/cli.ts'

describe('--match', () => {
  it.each<[string[], Record<string, unknown>]>([
    [['symbol=فولاد'], { symbol: ['فولاد'] }],
    [['kind!=price'], { kind: [{ not: 'price' }] }],
    [['headline=~^a=b'], { headline: [{ regex: '^a=b' }] }],
    [['why!~x'], { why: [{ not: { regex: 'x' } }] }],
    [['symbol*=فول*'], { symbol: [{ glob: 'فول*' }] }],
    [['url=https://example.com/?a=b'], { url: ['https://example.com/?a=b'] }],
    [['kind=price', 'kind=screen', 'ruleId=12'], { kind: ['price', 'screen'], ruleId: ['12'] }],
    [['symbol!=a', 'symbol!~^b'], { symbol: [{ not: ['a', { regex: '^b' }] }] }],
    [['rule.name=a'], { rule: { name: ['a'] } }],
    [
      ['rule.kind!=x', 'rule.mine=true', 'isRead=false'],
      { isRead: false, rule: { kind: [{ not: 'x' }], mine: true } },
    ],
  ])('%j is %j, which the bridge takes', (given, match) => {
    expect(matchOf(given)).toEqual(match)
    expect(parseMatch(matchOf(given))).toBeDefined()
  })

  it.each([
    ['symbol', /expected FIELD=VALUE/],
    ['colour=red', /source, id, kind/],
    ['rule.colour=red', /rule\.name/],
    ['symbol=', /expected FIELD=VALUE/],
    ['isRead=maybe', /true or false/],
  ])('%s is refused', (given, sentence) => {
    expect(() => matchOf([given])).toThrow(sentence)
  })

  it('is refused where any alert would do', () => {
    expect(() => matchOf(['symbol!=a', 'symbol*=f*'])).toThrow(/symbol: .* together/)
    expect(() => matchOf(['rule.name=a', 'rule.name!~b'])).toThrow(/rule.name: .* together/)
  })
})

describe('silence add', () => {
  it.each([
    [['--for', '1h'], /which alerts/],
    [['--match', 'kind=price'], /when it ends/],
    [['--match', 'kind=price', '--for', '1h', '--until', '2026-11-21T09:00:00Z'], /when it ends/],
  ])('with %j is refused in a sentence', async (args, sentence) => {
    const { thrown } = await run(silenceCommand(), 'add', ...args)
    expect(thrown).toBeInstanceOf(UserError)
    expect((thrown as Error).message).toMatch(sentence)
  })
})
