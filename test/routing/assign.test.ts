import { describe, expect, it } from 'vitest'
import type { Alert } from '../../src/alert/alert.ts'
import { ruleFacts } from '../../src/alert/match/fields.ts'
import { parseMatch } from '../../src/alert/match/match-form.ts'
import type { Route } from '../../src/alert/route.ts'
import type { Silence } from '../../src/alert/silence.ts'
import { type AssignDeps, createAssign } from '../../src/routing/assign.ts'
import { createThrottles } from '../../src/store/operators/throttle.ts'
import { createWithheldStore } from '../../src/store/walk/withheld.ts'
import { freshPrefix, startRedis, useRedis } from '../support/redis.ts'
import { longestTurnMs } from '../support/turns.ts'
import { alertOf, nowMs } from './alerts.ts'

const server = useRedis()
const always = { from: '00:00', to: '24:00', timeZone: 'UTC', holidays: ['2026-11-21'] }
const everyHour = { per: 3_600_000, by: ['symbol', 'ruleId'] as const }

function to(sinks: string[], more: Partial<Route> = {}): Route {
  return { match: {}, sinks, ...more }
}

function rig(routes: readonly Route[], silences: readonly Silence[] = []) {
  const [redis, prefix] = [server.client(), freshPrefix()]
  const retention = { ageMs: 3_600_000, count: 1_000 }
  const held = createWithheldStore({ redis, prefix, source: 'main', retention })
  const asked: string[][] = []
  const rules = new Map([['1', ruleFacts({ name: 'Steel' })]])
  const book = {
    ruleOf: (id: string) => rules.get(id),
    prepare: async (ids: readonly string[]) => void asked.push([...ids]),
  }
  const deps: AssignDeps = {
    routes,
    readSilences: async () => silences,
    rulesOf: () => book,
    throttles: createThrottles({ redis, prefix }),
    withheldOf: () => held,
  }
  const assign = async (alerts: readonly Alert[]) => (await createAssign(deps)())(alerts, nowMs)
  const sinksOf = async (alerts: readonly Alert[]) =>
    (await assign(alerts)).map(({ sinks: shares }) => shares.map(({ sink }) => sink))
  return { held, asked, deps, assign, sinksOf }
}

const texts = Array.from({ length: 49_000 }, (_, index) => `text ${index}`)

/** With the digits 0 to 7 for `N`. */
function patternsOf(field: string, regex: string) {
  return Array.from({ length: 8 }, (_, n) => parseMatch({ [field]: { regex: regex.replace('N', `${n}`) } }))
}

const ofRules = Array.from({ length: 200 }, (_, n) => parseMatch({ rule: { name: `rule ${n}` } }))

/** Letters a and b without a period. */
function abs(length: number): string {
  return Array.from({ length }, (_, at) => (Math.sin(at * at) > 0 ? 'a' : 'b')).join('')
}

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

describe('alerts', () => {
  it('that nothing holds back leave no record', async () => {
    const { assign, held } = rig([to(['hook'])])
    expect(await assign([alertOf(1)])).toEqual([
      { sinks: [{ sink: 'hook', routes: ['routes[0]'] }], withheld: [] },
    ])
    expect(await held.of(1)).toBeUndefined()
  })

  it.each([
    [
      'patterns that take long',
      1,
      patternsOf('headline', '(?:a|b)*a[ab]{50N}[zw]'),
      { headline: abs(4_000) },
    ],
    ['patterns of many texts', 1, patternsOf('payload', 'xN'), { payload: texts }],
    ['a text of megabytes', 1, patternsOf('headline', 'xN'), { headline: 'ي'.repeat(4_000_000) }],
    ['thousands of rules', 1, ofRules, { ruleIds: texts.map(() => '1') }],
    ['many patterns', 100, patternsOf('headline', '[a-h]N?q'), { headline: abs(100) }],
  ])('of one page let others run in between: %s', async (_what, alerts, matches, row) => {
    const words = Array.from({ length: 192 }, (_, index) => parseMatch({ payload: `word${index}` }))
    const silences = [...matches, ...words].map((match = {}, index) => {
      return { id: String(index), match, startsAtMs: nowMs, endsAtMs: nowMs + 9, comment: '' }
    })
    const { assign } = rig([to(['hook'])], silences)
    const page = Array.from({ length: alerts }, (_, index) => alertOf(index + 1, row))
    const before = process.threadCpuUsage()
    const longestMs = await longestTurnMs(() => assign(page))
    // Processor time, so that a busy machine changes nothing.
    expect(longestMs).toBeLessThan(250)
    expect(cpuMsSince(before)).toBeLessThan(5_000)
  })

  it('that no route wants stand on record', async () => {
    const { assign, held } = rig([to(['hook'], { match: parseMatch({ kind: 'screen' }) ?? {} })])
    expect(await assign([alertOf(1)])).toEqual([{ sinks: [], withheld: [] }])
    expect(await held.of(1)).toMatchObject({
      row: { id: 1 },
      held: [{ route: null, reason: 'unrouted', sinks: [] }],
    })
  })

  it('that a mute holds back from some sinks stand on record for these', async () => {
    const { assign, held } = rig([to(['slack', 'hook'], { name: 'night', mute: [always] }), to(['hook'])])
    expect(await assign([alertOf(1)])).toEqual([
      { sinks: [{ sink: 'hook', routes: ['routes[1]'] }], withheld: ['muted'] },
    ])
    expect((await held.of(1))?.held).toEqual([
      { route: 'night', sinks: ['slack'], reason: 'muted', untilMs: Date.parse('2026-11-22T00:00:00Z') },
    ])
  })

  it('that reach every sink by another route are not held back', async () => {
    const { assign, held } = rig([to(['hook'], { mute: [always] }), to(['hook'])])
    expect(await assign([alertOf(1)])).toEqual([
      { sinks: [{ sink: 'hook', routes: ['routes[1]'] }], withheld: [] },
    ])
    expect(await held.of(1)).toBeUndefined()
  })

  it('that are silenced stand on record with the silence', async () => {
    const silence = { id: 's1', match: {}, startsAtMs: nowMs, endsAtMs: nowMs + 9, comment: 'audit' }
    const { assign, held } = rig([to(['hook'])], [silence])
    expect(await assign([alertOf(1)])).toEqual([{ sinks: [], withheld: ['silenced'] }])
    expect((await held.of(1))?.held).toMatchObject([
      { route: 'routes[0]', reason: 'silenced', silenceId: 's1', comment: 'audit', untilMs: nowMs + 9 },
    ])
  })
})

describe('a throttle', () => {
  it('lets the oldest of a page pass, and holds the others of its symbol and rule', async () => {
    const { sinksOf, held } = rig([to(['slack'], { throttle: everyHour })])
    const page = [alertOf(1), alertOf(2), alertOf(3, { symbol: 'خودرو' }), alertOf(4, { ruleIds: ['2'] })]
    expect(await sinksOf(page)).toEqual([['slack'], [], ['slack'], ['slack']])
    expect((await held.of(2))?.held).toMatchObject([{ reason: 'throttled', sinks: ['slack'] }])
  })

  it('decides the same when a page is taken again, in whole or in part', async () => {
    const { sinksOf } = rig([to(['slack'], { throttle: everyHour })])
    const page = [alertOf(1), alertOf(2), alertOf(3)]
    const first = await sinksOf(page)
    expect(await sinksOf(page)).toEqual(first)
    expect(await sinksOf(page.slice(1))).toEqual(first.slice(1))
    expect(await sinksOf([...page].reverse())).toEqual([...first].reverse())
  })

  it('has its count told with the next that passes, to sinks that missed some', async () => {
    const short = { ...everyHour, per: 200 }
    const { assign } = rig([to(['slack', 'hook'], { throttle: short }), to(['hook'])])
    const first = await assign([alertOf(1), alertOf(2), alertOf(3)])
    expect(first.map(({ withheld: held }) => held)).toEqual([[], ['throttled'], ['throttled']])
    let id = 4
    let passed = first[1]
    while (!passed?.sinks.some(({ sink }) => sink === 'slack')) {
      ;[passed] = await assign([alertOf(id)])
      id += 1
    }
    const [slack, hook] = passed.sinks
    expect(slack).toEqual({ sink: 'slack', routes: ['routes[0]'], heldBack: id - 3 })
    expect(hook).toEqual({ sink: 'hook', routes: ['routes[0]', 'routes[1]'] })
  })

  it('is not asked by routes that do not want the alert', async () => {
    const match = parseMatch({ kind: 'screen' }) ?? {}
    const { sinksOf } = rig([to(['slack'], { match, throttle: everyHour })])
    expect(await sinksOf([alertOf(1), alertOf(2, { kind: 'screen' })])).toEqual([[], ['slack']])
  })
})

describe('the rules', () => {
  const match = parseMatch({ rule: { name: 'Steel' } }) ?? {}

  it('are looked up for routes that ask of them, each once a page', async () => {
    const { sinksOf, asked } = rig([to(['hook'], { match })])
    const page = [alertOf(1), alertOf(2), alertOf(3, { ruleIds: ['2', '1'] })]
    expect(await sinksOf(page)).toEqual([['hook'], ['hook'], ['hook']])
    expect(asked).toEqual([['1', '2']])
  })

  it('are looked up for silences that ask of them', async () => {
    const silence = { id: 's', match, startsAtMs: 0, endsAtMs: nowMs + 1, comment: '' }
    const { sinksOf, asked } = rig([to(['hook'])], [silence])
    expect(await sinksOf([alertOf(1), alertOf(2, { ruleIds: [] })])).toEqual([[], ['hook']])
    expect(asked).toHaveLength(1)
  })

  it('cost nothing where nobody asks', async () => {
    const { sinksOf, asked } = rig([to(['hook'])])
    await sinksOf([alertOf(1)])
    expect(asked).toEqual([])
  })

  it('that are not known let the alert through', async () => {
    const { sinksOf } = rig([to(['hook'], { match }), to(['desk'], { match, whenRuleUnknown: 'skip' })])
    expect(await sinksOf([alertOf(1, { ruleIds: ['9'] })])).toEqual([['hook']])
  })
})

describe('an alert is never held without a record', () => {
  it('so without Redis nothing is decided', async () => {
    const own = await startRedis()
    const retention = { ageMs: 3_600_000, count: 1_000 }
    const away = createWithheldStore({ redis: own.client(), prefix: 'away', source: 'main', retention })
    await own.dispose()
    const { deps } = rig([to(['hook'], { mute: [always] })])
    const assign = await createAssign({ ...deps, withheldOf: () => away })()
    await expect(assign([alertOf(1)], nowMs)).rejects.toThrow()
  })
})
