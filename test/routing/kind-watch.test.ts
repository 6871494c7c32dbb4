import { describe, expect, it } from 'vitest'
import type { Matcher } from '../../src/alert/match/match.ts'
import { atOnce } from '../../src/alert/match/turns.ts'
import { createKindWatch, unseenKinds } from '../../src/routing/kind-watch.ts'
import { createKindStore } from '../../src/store/source/kinds.ts'
import { alertOf } from '../sinks/samples.ts'
import { captureLog } from '../support/log.ts'
import { freshPrefix, useRedis } from '../support/redis.ts'

const equals = (value: string): Matcher => ({ op: 'equals', value })
const asking = (...kind: Matcher[]) => ({ match: { kind }, sinks: ['hook'] })
const seen = (counts: Record<string, number>, source = 'main') =>
  new Map([[source, new Map(Object.entries(counts))]])

const unseenIn = (...asked: Parameters<typeof unseenKinds>) => atOnce(unseenKinds(...asked))

describe('a route that asks for a kind', () => {
  it('is told of when the kind only looks like one that comes', () => {
    const texts = unseenIn(
      [asking(equals('price')), asking(equals('prise'), equals('price'))],
      seen({ price: 10 }),
    )
    expect(texts).toEqual([
      {
        source: 'main',
        text: 'routes[1] asks for kind prise, which no alert has had so far (did you mean price?)',
      },
    ])
  })

  it('is told of by its name, and what came instead, when many have come', () => {
    const routes = [{ name: 'filings', ...asking(equals('codal')) }]
    expect(unseenIn(routes, seen({ price: 100, screen: 99 }))).toEqual([])
    expect(unseenIn(routes, seen({ price: 100, screen: 100 }))).toEqual([
      {
        source: 'main',
        text: 'filings asks for kind codal, which no alert has had so far (they had price, screen)',
      },
    ])
  })

  it('is left alone while little is known, and where something fits', () => {
    expect(unseenIn([asking(equals('prise'))], seen({ price: 9 }))).toEqual([])
    const fitting: Matcher[] = [
      { op: 'glob', value: 'pri*' },
      { op: 'regex', value: '^scr' },
      { op: 'not', matchers: [{ op: 'equals', value: 'prise' }] },
    ]
    expect(
      unseenIn([asking(...fitting), { match: {}, sinks: ['hook'] }], seen({ price: 500, screen: 500 })),
    ).toEqual([])
    expect(unseenIn([asking({ op: 'glob', value: 'prx*' })], seen({ price: 500 }))).toHaveLength(1)
  })

  it('is left alone where there are so many kinds that not all are counted', () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`alert ${index}`, 1]))
    expect(unseenIn([asking(equals('price'))], seen(many))).toEqual([])
  })

  it('is told of as often as kinds are counted, where it asks for thousands', () => {
    const kinds = Array.from({ length: 2_000 }, (_, index) => equals(`kind${index}`))
    expect(unseenIn([asking(...kinds)], seen({ price: 500 }))).toHaveLength(200)
  })

  it('is held against the sources that it takes, and a rule of this kind is enough', () => {
    const both = new Map([...seen({ price: 500 }), ...seen({ prise: 500 }, 'other')])
    expect(unseenIn([asking(equals('prise'))], both)).toEqual([])
    const narrow = { match: { kind: [equals('prise')], source: [equals('main')] }, sinks: ['hook'] }
    expect(unseenIn([narrow], both)).toMatchObject([{ source: 'main' }])
    expect(unseenIn([asking(equals('codal'))], seen({ price: 500, codal: 0 }))).toEqual([])
  })
})

describe('what has come', () => {
  const redis = useRedis()

  it('is counted over restarts, told once, and shown as long as it holds', async () => {
    const prefix = freshPrefix()
    const { log, with: told } = captureLog()
    const watch = () =>
      createKindWatch({
        routes: [asking(equals('prise'))],
        sources: ['main'],
        storeOf: (source) => createKindStore({ redis: redis.client(), prefix, source }),
        ruleKindsOf: async () => [],
        log,
      })
    const alerts = (kind: string) => Array.from({ length: 6 }, (_, id) => alertOf({ id: id + 1, kind }))
    const first = watch()
    await first.saw([...alerts('price'), alertOf({ kind: '' })])
    expect(await first.notes()).toEqual(new Map())
    const second = watch()
    await second.saw(alerts('price'))
    await second.saw(alerts('price'))
    const sentence = 'routes[0] asks for kind prise, which no alert has had so far (did you mean price?)'
    expect(told(sentence)).toHaveLength(1)
    expect(await second.notes()).toEqual(new Map([['main', [sentence]]]))
    await second.saw(alerts('prise'))
    expect(await second.notes()).toEqual(new Map())
  })

  it('that cannot be counted stops nothing', async () => {
    const failing = {
      load: () => Promise.reject(new Error('away')),
      add: () => Promise.reject(new Error('away')),
    }
    const { log } = captureLog()
    const watch = createKindWatch({
      routes: [asking(equals('prise'))],
      sources: ['main'],
      storeOf: () => failing,
      ruleKindsOf: async () => [],
      log,
    })
    await watch.saw([alertOf()])
    await expect(watch.notes()).rejects.toThrow('away')
  })
})
