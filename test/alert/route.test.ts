import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Alert, parseRow } from '../../src/alert/alert.ts'
import { ruleFacts } from '../../src/alert/match/fields.ts'
import { parseMatch } from '../../src/alert/match/match-form.ts'
import { atOnce } from '../../src/alert/match/turns.ts'
import {
  isWithheld,
  type Route,
  type RouteFacts,
  route as routeInSteps,
  routeLabel,
  throttleValues,
  withThrottles,
} from '../../src/alert/route.ts'
import type { Silence } from '../../src/alert/silence.ts'
import type { AlertRule } from '../../src/feed/wire.ts'
import { ruleRowOf } from '../../src/routing/rule-row.ts'

const nowMs = Date.parse('2026-11-21T09:00:00Z')
const facts: RouteFacts = {
  nowMs,
  silences: [],
  ruleOf: () => undefined,
}
const route = (...asked: Parameters<typeof routeInSteps>) => atOnce(routeInSteps(...asked))
const always = { from: '00:00', to: '24:00', timeZone: 'UTC', holidays: ['2026-11-21'] }

function alert(kind = 'price', fields: Record<string, unknown> = {}): Alert {
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
    ...fields,
  }
  const parsed = parseRow('main', row)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.alert
}

function to(sinks: string[], kind?: string, more: Partial<Route> = {}): Route {
  return { match: kind === undefined ? {} : { kind: [{ op: 'equals', value: kind }] }, sinks, ...more }
}

function silence(id: string, written: object, fromMs: number, toMs: number): Silence {
  return {
    id,
    match: parseMatch(written) ?? {},
    startsAtMs: nowMs + fromMs,
    endsAtMs: nowMs + toMs,
    comment: 'why',
  }
}

describe('routes', () => {
  it('all apply that match, and each sink is named once, in the order of the config', () => {
    const routes = [to(['slack', 'mail'], 'price'), to(['hook', 'mail']), to(['pager'], 'screen')]
    expect(route(alert(), routes, facts).sinks).toEqual(['slack', 'mail', 'hook'])
  })

  it('say for each why it takes the alert or does not', () => {
    const routes = [to(['slack'], 'screen', { name: 'screens' }), to(['mail'], 'price'), to(['hook'])]
    expect(route(alert(), routes, facts).decisions).toEqual([
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
    expect(route(alert('filing'), [to(['slack'], 'screen')], facts).sinks).toEqual([])
    expect(route(alert(), [], facts)).toEqual({ sinks: [], decisions: [], withheld: [] })
  })

  it('are called by their name, or by their place', () => {
    expect([routeLabel({ index: 3, name: 'steel' }), routeLabel({ index: 3 })]).toEqual([
      'steel',
      'routes[3]',
    ])
  })
})

describe('a mute', () => {
  it('holds its own route back, and no other', () => {
    const { sinks, decisions } = route(
      alert(),
      [to(['slack'], undefined, { mute: [always] }), to(['hook'])],
      facts,
    )
    expect(sinks).toEqual(['hook'])
    expect(decisions[0]).toEqual({
      index: 0,
      sinks: ['slack'],
      taken: false,
      reason: 'muted',
      untilMs: Date.parse('2026-11-22T00:00:00Z'),
    })
  })

  it('of a route that does not match says nothing', () => {
    const { decisions } = route(alert(), [to(['slack'], 'screen', { mute: [always] })], facts)
    expect(decisions.filter(isWithheld)).toEqual([])
  })
})

describe('a silence', () => {
  const routes = [to(['slack'], 'price'), to(['hook'])]
  const decide = (silences: readonly Silence[], given = alert()) =>
    route(given, routes, { ...facts, silences })

  it('holds every route back from what it matches', () => {
    const { sinks, decisions } = decide([silence('a', { kind: 'price' }, -1, 1_000)])
    expect(sinks).toEqual([])
    expect(decisions).toMatchObject([
      { reason: 'silenced', silenceId: 'a', comment: 'why', untilMs: nowMs + 1_000 },
      { reason: 'silenced' },
    ])
    expect(decide([silence('a', { kind: 'screen' }, -1, 1_000)]).sinks).toEqual(['slack', 'hook'])
  })

  it('holds from its start to its end', () => {
    expect(decide([silence('a', {}, 0, 1)]).sinks).toEqual([])
    expect(decide([silence('a', {}, 1, 2)]).sinks).toHaveLength(2)
    expect(decide([silence('a', {}, -2, 0)]).sinks).toHaveLength(2)
  })

  it('that ends last is the one that explains', () => {
    const both = [silence('a', {}, -1, 10), silence('b', {}, -1, 20)]
    expect(decide(both).decisions[0]).toMatchObject({ silenceId: 'b', untilMs: nowMs + 20 })
  })

  it('that asks for a rule that is not known does not hold', () => {
    const byRule = [silence('a', { rule: { name: 'x' } }, -1, 10)]
    expect(decide(byRule, alert('price', { ruleIds: ['1'] })).sinks).toHaveLength(2)
  })
})

describe('a rule that is not known', () => {
  const match = parseMatch({ rule: { name: 'x' } }) ?? {}
  const given = alert('price', { ruleIds: ['1'] })

  it('is taken for the right one, and the decision says so', () => {
    const { sinks, decisions } = route(given, [{ match, sinks: ['hook'] }], facts)
    expect(sinks).toEqual(['hook'])
    expect(decisions[0]).toMatchObject({ taken: true, reason: 'rule_unknown', ruleIds: ['1'] })
  })

  it('is passed by where the config says so, which is no holding back', () => {
    const { sinks, decisions } = route(given, [{ match, sinks: ['hook'], whenRuleUnknown: 'skip' }], facts)
    expect(sinks).toEqual([])
    expect(decisions[0]).toMatchObject({ taken: false, reason: 'rule_unknown' })
    expect(decisions.filter(isWithheld)).toEqual([])
  })
})

describe('a throttle', () => {
  const throttled = to(['slack'], undefined, { throttle: { per: 60_000, by: ['symbol', 'ruleId'] } })

  it('is asked by the values of its fields', () => {
    const { decisions } = route(alert(), [throttled], facts)
    expect(decisions[0]).toMatchObject({ taken: true, throttle: { perMs: 60_000 } })
    const key = (fields: object, by = throttled.throttle?.by ?? []) =>
      throttleValues(alert('price', { ...fields }), { per: 1, by })
    expect(key({ symbol: 'ك', ruleIds: ['2', '1'] })).toEqual(key({ symbol: 'ک', ruleIds: [1, 2] }))
    expect(key({ symbol: 'a' })).not.toEqual(key({ symbol: 'b' }))
    expect(key({ ruleIds: ['1'] })).not.toEqual(key({ ruleIds: ['1', '2'] }))
    expect(key({ slug: null }, ['slug'])).not.toEqual(key({ slug: '' }, ['slug']))
  })

  it('tells the rules of two accounts apart', () => {
    const mine = alert('price', { ruleIds: ['1'] })
    const by = { per: 1, by: ['ruleId' as const] }
    expect(throttleValues(mine, by)).not.toEqual(throttleValues({ ...mine, source: 'other' }, by))
  })

  it('that does not let it pass holds its route back', () => {
    const routing = route(alert(), [throttled, to(['hook'])], facts)
    const { sinks, decisions } = withThrottles(routing, new Map([[0, nowMs + 5]]))
    expect(sinks).toEqual(['hook'])
    expect(decisions[0]).toEqual({
      index: 0,
      sinks: ['slack'],
      taken: false,
      reason: 'throttled',
      untilMs: nowMs + 5,
    })
    expect(withThrottles(routing, new Map())).toEqual(routing)
  })
})

describe('more than is compared', () => {
  const decide = (fields: object, silences: Silence[], match: object = {}) =>
    route(alert('price', { ...fields }), [{ match: parseMatch(match) ?? {}, sinks: ['hook'] }], {
      ...facts,
      silences,
    }).sinks

  it.each([
    { chart: 'x'.repeat(60_000), level: 'critical' },
    { note: 'x'.repeat(30_000), chart: 'y'.repeat(30_000), level: 'critical' },
  ])('in one value hides no shorter one', (payload) => {
    expect(decide({ payload }, [], { payload: 'level=critical' })).toEqual(['hook'])
    expect(decide({ payload }, [], { payload: { glob: 'level=*' } })).toEqual(['hook'])
  })

  it.each([
    ['symbol', [...Array(2_000).fill('a'), 'فولاد']],
    ['payload', ['x'.repeat(60_000), 'x'.repeat(60_000), 'فولاد']],
    ['payload', ['x'.repeat(30_000), 'x'.repeat(30_000)]],
  ])('of %s is not what a silence says "not" of: it does not hold', (field, values) => {
    const held = (of: unknown[]) =>
      decide({ [field]: of }, [silence('a', { [field]: { not: 'فولاد' } }, -1, 1)])
    expect(held(values)).toEqual(['hook'])
    expect(held(['x'])).toEqual([])
    expect(decide({ [field]: values }, [silence('a', { kind: 'price' }, -1, 1)])).toEqual([])
  })

  it.each([
    ['name', 'x', `${'x'.repeat(600)} فولاد`],
    ['config', { symbols: ['x'] }, { symbols: [...Array<string>(2_000).fill('x'), 'فولاد'] }],
    ['channel', ['x'], [...Array<string>(2_000).fill('x'), 'فولاد']],
  ])('of the %s of a rule, which is not kept whole, is none of it either', (field, short, long) => {
    const held = (value: unknown) => {
      const rule = { id: 12, [field === 'channel' ? 'channels' : field]: value } as unknown as AlertRule
      return route(alert('price', { ruleIds: ['12'] }), [{ match: {}, sinks: ['hook'] }], {
        ...facts,
        silences: [silence('a', { rule: { [field]: { not: { glob: '*فولاد*' } } } }, -1, 1)],
        ruleOf: () => ruleFacts(ruleRowOf(rule)),
      }).sinks
    }
    expect([held(short), held(long)]).toEqual([[], ['hook']])
  })

  it.each([
    ['comes to be known', undefined, ruleFacts({ id: 12, name: 'x', cut: ['name'] })],
    ['is read whole', ruleFacts({ id: 12, name: 'x', cut: ['name'] }), ruleFacts({ id: 12, name: 'xy' })],
  ])(
    'of a field that is not kept whole of a rule that %s while it is compared, neither',
    (_what, before, after) => {
      let ruleOf = () => before
      const silences = [silence('a', { kind: 'price', rule: { name: { not: { glob: '*y' } } } }, -1, 1)]
      const asked = { ...facts, silences, ruleOf: () => ruleOf() }
      const steps = routeInSteps(alert('price', { ruleIds: ['12'] }), [{ match: {}, sinks: ['hook'] }], asked)
      for (let step = steps.next(); ; step = steps.next()) {
        if (step.done) return expect(step.value.sinks).toEqual(['hook'])
        ruleOf = () => after
      }
    },
  )
})

describe('whatever the routes are', () => {
  it('they reach the sinks of those that take the alert, no others and none twice, and explain every one', () => {
    const sink = fc.constantFrom('a', 'b', 'c', 'd')
    const one = fc.record({
      kind: fc.option(fc.constantFrom('price', 'screen'), { nil: undefined }),
      sinks: fc.array(sink, { minLength: 1, maxLength: 4 }),
      muted: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(one, { maxLength: 8 }), fc.boolean(), (wanted, silenced) => {
        const routes = wanted.map(({ kind, sinks, muted }) =>
          to(sinks, kind, { mute: muted ? [always] : [] }),
        )
        const silences = silenced ? [silence('s', {}, -1, 1)] : []
        const { sinks, decisions } = route(alert(), routes, { ...facts, silences })
        const matching = wanted.filter(({ kind }) => kind !== 'screen')
        const open = matching.filter(({ muted }) => !muted && !silenced)
        expect(sinks).toEqual([...new Set(open.flatMap((each) => each.sinks))])
        expect(decisions.map(({ index }) => index)).toEqual(routes.map((_, index) => index))
        expect(decisions.filter(isWithheld)).toHaveLength(matching.length - open.length)
      }),
    )
  })
})
