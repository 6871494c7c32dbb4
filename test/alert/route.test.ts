import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Alert, parseRow } from '../../src/alert/alert.ts'
import { type Route, route } from '../../src/alert/route.ts'

function alert(kind = 'price'): Alert {
  const row = {
    id: 7,
    kind,
    payload: [],
    headline: 'h',
    url: 'u',
    ruleIds: [],
    firedAt: 'f',
    channels: [],
    isRead: false,
  }
  const parsed = parseRow('main', row)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.alert
}

function to(sinks: string[], kind?: string, name?: string): Route {
  return { name, match: kind === undefined ? {} : { kind: [{ op: 'equals', value: kind }] }, sinks }
}

describe('routes', () => {
  it('all apply that match, and each sink is named once, in the order of the config', () => {
    const routes = [to(['slack', 'mail'], 'price'), to(['hook', 'mail']), to(['pager'], 'screen')]
    expect(route(alert(), routes).sinks).toEqual(['slack', 'mail', 'hook'])
  })

  it('say for each why it takes the alert or does not', () => {
    const routes = [to(['slack'], 'screen', 'screens'), to(['mail'], 'price'), to(['hook'])]
    expect(route(alert(), routes).decisions).toEqual([
      {
        index: 0,
        name: 'screens',
        sinks: ['slack'],
        taken: false,
        reason: 'differs',
        misses: [{ field: 'kind', found: ['price'], wanted: ['screen'] }],
      },
      { index: 1, sinks: ['mail'], taken: true, reason: 'matched' },
      { index: 2, sinks: ['hook'], taken: true, reason: 'takes_everything' },
    ])
  })

  it('may leave an alert without a sink', () => {
    expect(route(alert('filing'), [to(['slack'], 'screen')]).sinks).toEqual([])
    expect(route(alert(), [])).toEqual({ sinks: [], decisions: [] })
  })

  it('reach the sinks of the routes that take the alert, no others and none twice', () => {
    const sink = fc.constantFrom('a', 'b', 'c', 'd')
    const one = fc.record({
      kind: fc.option(fc.constantFrom('price', 'screen'), { nil: undefined }),
      sinks: fc.array(sink, { minLength: 1, maxLength: 4 }),
    })
    fc.assert(
      fc.property(fc.array(one, { maxLength: 8 }), (wanted) => {
        const routes = wanted.map(({ kind, sinks }) => to(sinks, kind))
        const { sinks, decisions } = route(alert(), routes)
        const reached = wanted.filter(({ kind }) => kind !== 'screen').flatMap((each) => each.sinks)
        expect(sinks).toEqual([...new Set(reached)])
        expect(decisions).toHaveLength(routes.length)
      }),
    )
  })
})
