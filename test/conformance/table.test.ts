import { describe, expect, it } from 'vitest'
import { budgetSchema } from '../../src/config/source.ts'
import { parseAnswer, tameAnswer } from '../../src/feed/api/answer.ts'
import { fieldKeys } from '../../src/feed/api/field-keys.ts'
import { treeLevelsMax } from '../../src/feed/api/ownership.ts'
import { prepareLoose } from '../../src/feed/api/request.ts'
import { type EndpointPath, endpointOf, endpoints, unitsOf } from '../../src/feed/endpoints.ts'
import { apiErrorCodes } from '../../src/feed/errors.ts'
import { withDefaults } from '../../src/sandbox/options.ts'
import * as document from './document.ts'
import { screenerKeys } from './screener-keys.ts'

/** The table that client, command and sandbox go by, held against the document, row by row. */

const needed = (path: string) => ({
  ...(path.includes('{instrument}') ? { instrument: 'فولاد' } : {}),
  query: path === '/api/v1/macro/series' ? { 'keys[]': ['usd_free'] } : {},
})

/** What is wrong with one parameter beside those that are needed; empty when nothing is. */
function problems(path: string, query: Record<string, unknown>): readonly string[] {
  const given = needed(path)
  const prepared = prepareLoose(path as EndpointPath, { ...given, query: { ...given.query, ...query } })
  return prepared.ok ? [] : prepared.problems
}

describe('the table of endpoints', () => {
  it('has the documented rows: method, path, scope, cost, answer, names of parameters', () => {
    const ours = endpoints.map(({ method, path, scope, units, answer, query }) => ({
      ...{ method, path, scope, cost: units, answer: answer.envelope },
      query: Object.keys(query),
    }))
    const theirs = document.documented.map(({ method, path, scope, cost, answer, query }) => ({
      ...{ method, path, scope, cost, answer },
      query: query.map(({ name }) => name),
    }))
    expect(ours).toEqual(theirs)
    expect(new Set(endpoints.map(({ scope }) => scope))).toEqual(new Set(document.scopes))
  })

  it('prices a call by its path', () => {
    expect(unitsOf('/api/v1/screener/run')).toBe(25)
    expect(unitsOf('/api/v1/alerts/deliveries')).toBe(1)
  })

  it('knows the keys of the screener, in wire order, and the error codes', () => {
    expect(fieldKeys).toEqual(screenerKeys)
    expect(apiErrorCodes).toEqual(document.errors.map(({ code }) => code))
  })
})

it('calls no more often in a minute than the document allows, and the sandbox allows as many', () => {
  const { requestsPerMinute } = document.limits
  const isFine = (value: number) =>
    budgetSchema.safeParse({ unitsPerDay: 1_000, requestsPerMinute: value }).success
  expect([requestsPerMinute, requestsPerMinute + 1].map(isFine)).toEqual([true, false])
  expect(withDefaults({}).limits.requestsPerMinute).toBe(requestsPerMinute)
})

describe.each(document.documented.filter(({ query }) => query.length > 0))('$path', ({ path, query }) => {
  it.each(query)('takes $name within its bounds alone', (parameter) => {
    const { name, type, of, min = 1, max, itemsMax, required } = parameter
    const fine: unknown[] = of ? [...of] : type === 'integer' ? [min, ...(max ? [max] : [])] : []
    const wrong: unknown[] = [null, {}, type === 'integer' ? '30' : 30]
    if (type === 'integer') wrong.push(min - 1, 1.5, Number.NaN, ...(max ? [max + 1] : [2 ** 53]))
    if (of) wrong.push('', 'ALL', 'bourses')
    else if (type === 'string') {
      fine.push('فولاد مبارکه', 'a&b=c#d')
      wrong.push('', 'a\nb', '\ud83d', 'x'.repeat(2_000))
    }
    if (type === 'boolean') fine.push(true, false)
    if (type === 'strings') {
      fine.push(['a'], Array<string>(itemsMax ?? 1).fill('a'))
      wrong.push([], Array<string>((itemsMax ?? 1) + 1).fill('a'), [7], ['a', ''], 'a')
    }
    for (const value of fine) expect(problems(path, { [name]: value })).toEqual([])
    for (const value of wrong) {
      const found = problems(path, { [name]: value })
      expect([value, found]).toEqual([value, [expect.stringMatching(/^\S+: expected [^\n]+$/)]])
      const expected = of ? `expected one of ${of.join(', ')}, found` : 'expected '
      expect(found[0]?.startsWith(`${name}: ${expected}`)).toBe(true)
    }
    expect(problems(path, { [name]: undefined })).toHaveLength(required ? 1 : 0)
  })
})

describe('a request', () => {
  it.each(document.documented)('of $path takes no parameter that the document does not name', ({ path }) => {
    expect(problems(path, { perPage: 10 })).toEqual([
      expect.stringMatching(/^perPage: there is no such parameter; there are?/),
    ])
  })

  it.each([
    [{ instrument: 101 }, '/api/v1/instruments/101/prices'],
    [{ instrument: 'gold-18k' }, '/api/v1/instruments/gold-18k/prices'],
    [{ instrument: 'فولاد' }, '/api/v1/instruments/%D9%81%D9%88%D9%84%D8%A7%D8%AF/prices'],
    [{ instrument: 'a/b c?d$&' }, '/api/v1/instruments/a%2Fb%20c%3Fd%24%26/prices'],
    [{ instrument: '7', query: { days: 30 } }, '/api/v1/instruments/7/prices?days=30'],
  ])('for %j goes to %s', (parameters, target) => {
    const prepared = prepareLoose('/api/v1/instruments/{instrument}/prices', parameters)
    expect(prepared).toMatchObject({ ok: true, request: { target } })
  })

  it('repeats the name of a list, and encodes blanks so that no server takes them for plus signs', () => {
    const series = prepareLoose('/api/v1/macro/series', { query: { 'keys[]': ['usd', 'طلا'], days: 3_650 } })
    expect(series).toMatchObject({
      request: { target: '/api/v1/macro/series?keys%5B%5D=usd&keys%5B%5D=%D8%B7%D9%84%D8%A7&days=3650' },
    })
    const found = prepareLoose('/api/v1/instruments', { query: { 'filter[q]': 'a b+c' } })
    expect(found).toMatchObject({ request: { target: '/api/v1/instruments?filter%5Bq%5D=a%20b%2Bc' } })
  })

  it.each([
    undefined,
    '',
    null,
    0,
    -1,
    1.5,
    '.',
    '..',
    '../../me',
    'a/..',
    'a\\..\\b',
    'a\u0000',
    '\udc00',
    {},
  ])('for the instrument %j is not made', (instrument) => {
    const prepared = prepareLoose('/api/v1/instruments/{instrument}', { instrument })
    expect(prepared).toMatchObject({ ok: false, problems: [expect.stringMatching(/^instrument: /)] })
  })
})

describe('the body of a screener run', () => {
  const run = (body: unknown) => {
    const prepared = prepareLoose('/api/v1/screener/run', { body })
    return prepared.ok ? [] : prepared.problems
  }
  const conditions = (count: number) =>
    Array.from({ length: count }, () => ({ field: 'pe', operator: 'lt', value: 5 }))

  it('needs no property, and knows the documented ones alone', () => {
    expect(run(undefined)).toEqual([])
    expect(run({})).toEqual([])
    const every = {
      ...{ screenId: 31, screen: { match: 'all', conditions: conditions(24) }, fields: ['pe', 'rsi'] },
      ...{ scope: { group: 'equity', exchange: 'fara', industry: 'فلزات' } },
      ...{ sortBy: 'market_cap', sortDescending: false },
    }
    expect(Object.keys(every).sort()).toEqual(document.runBody.toSorted())
    expect(Object.keys(every.scope).sort()).toEqual(document.scopeKeys.toSorted())
    expect(run(every)).toEqual([])
    expect(run({ screen: { match: 'any', conditions: [['pe', '<', 5]] } })).toEqual([])
    for (const match of document.matches) expect(run({ screen: { match } })).toEqual([])
    for (const key of document.scopeKeys)
      expect(run({ scope: { [key]: 'no such' } }).length).toBe(key === 'industry' ? 0 : 1)
  })

  it('may name any screen and scope beside a screenId, since they are ignored there', () => {
    const ignored = { screen: { match: 'some', conditions: conditions(25) }, scope: 'everything' }
    expect(run({ screenId: 31, ...ignored })).toEqual([])
    expect(run({ screenId: '31', ...ignored })).toEqual([expect.stringMatching(/^screenId: /)])
    expect(run(ignored)).toHaveLength(2)
  })

  it.each([
    [[], /^the body: expected object, found array/],
    [null, /^the body: expected object, found null/],
    [{ limit: 5 }, /^the body: .*limit/],
    [{ screenId: '31' }, /^screenId: expected number, found string/],
    [{ screen: { match: 'some' } }, /^screen\.match: expected one of "all"\|"any"/],
    [
      { screen: { conditions: conditions(25) } },
      /^screen\.conditions: expected at most 24 conditions, found 25/,
    ],
    [{ screen: { conditions: [7] } }, /^screen\.conditions\.0: expected a condition/],
    [
      { screen: { conditions: [{ field: 'p_e' }] } },
      /^screen\.conditions\.0\.field: expected a key of the screener/,
    ],
    [{ scope: { group: 'bonds' } }, /^scope\.group: /],
    [{ scope: { venue: 'fara' } }, /^scope: .*venue/],
    [{ sortBy: 'price' }, /^sortBy: expected a key of the screener/],
    [{ sortDescending: 'yes' }, /^sortDescending: /],
  ])('%j is refused in one sentence', (body, sentence) => {
    expect(run(body)).toEqual([expect.stringMatching(sentence)])
  })
})

/** A documented answer of this endpoint, with `record` in its place. */
function answerWith(endpoint: document.DocumentedEndpoint, record: Record<string, unknown>): unknown {
  const { answer, data, meta } = endpoint
  if (answer === 'page') return { data: [record], meta: { page: 1, perPage: 100, total: 1, lastPage: 1 } }
  if (meta !== undefined) return { data: [], meta: record }
  const listed = data === 'screener field' || data === 'macro entry'
  return { data: listed ? [record] : record }
}

function isTaken(path: string, body: unknown): boolean {
  const parsed = parseAnswer(endpointOf(path as EndpointPath), 1, body)
  if (!parsed.ok) return false
  const { page } = parsed as { page: { skipped?: readonly string[] } }
  return (page.skipped ?? []).length === 0
}

describe('an answer', () => {
  const shown = document.documented.flatMap((endpoint) => {
    const record = endpoint.data ?? endpoint.meta
    return record === undefined ? [] : [{ ...endpoint, record }]
  })

  it.each(shown)('of $path is taken as documented, with every field and with further ones', (endpoint) => {
    const sample = document.sampleOf(endpoint.record)
    expect(isTaken(endpoint.path, answerWith(endpoint, sample))).toBe(true)
    const parsed = parseAnswer(
      endpointOf(endpoint.path as EndpointPath),
      1,
      answerWith(endpoint, { ...sample, further: { of: [1] } }),
    )
    expect(JSON.stringify(parsed)).toContain('"further":{"of":[1]}')
  })

  it.each(document.documented)('of $path keeps the fields that the document does not show', (endpoint) => {
    const record = endpoint.data ?? endpoint.meta
    const further = { ...(record && document.sampleOf(record)), further: [{ of: 1 }] }
    const answered = answerWith(endpoint, further) as { data: unknown; meta?: object }
    const body = {
      ...(endpoint.meta === undefined ? answered : { ...answered, data: [further] }),
      ...(endpoint.answer === 'page' ? {} : { meta: { ...answered.meta, further } }),
      further,
    }
    const before = JSON.parse(JSON.stringify(body)) as typeof body
    tameAnswer(endpoint.path as EndpointPath, body)
    const parsed = parseAnswer(endpointOf(endpoint.path as EndpointPath), 1, body)
    expect(parsed).toMatchObject({ ok: true })
    if (endpoint.answer === 'page') expect(parsed).toMatchObject({ page: { rows: before.data, skipped: [] } })
    else expect(parsed).toEqual({ ok: true, page: before })
  })

  it.each(shown.filter(({ record }) => record !== 'statements'))(
    'of $path has the documented required, nullable and typed fields',
    (endpoint) => {
      const sample = document.sampleOf(endpoint.record)
      for (const { says, field, value, allowed } of document.variantsOf(endpoint.record)) {
        const body = JSON.parse(JSON.stringify(answerWith(endpoint, { ...sample, [field]: value })))
        expect([says, isTaken(endpoint.path, body)]).toEqual([says, allowed])
      }
    },
  )

  const inner = [
    ...[
      ['summary', 'summary'],
      ['history', 'history entry'],
      ['tree', 'tree node'],
    ],
    ...[
      ['lookThrough', 'look-through entry'],
      ['interlocks', 'interlock entry'],
    ],
    ...[
      ['conflicts', 'conflict entry'],
      ['profitImpact', 'profit-impact entry'],
    ],
    ...[
      ['holders', 'holder'],
      ['board', 'board member'],
      ['children', 'tree node'],
    ],
  ] as [string, document.RecordName][]
  it.each(inner)('of ownership is strict within %s too', (place, record) => {
    const path = '/api/v1/instruments/{instrument}/ownership'
    for (const { says, field, value, allowed } of document.variantsOf(record)) {
      const data = document.sampleOf('ownership') as Record<string, Record<string, unknown>[]>
      const summary = data['summary'] as unknown as Record<string, Record<string, unknown>[]>
      const holder =
        place === 'summary'
          ? (summary as Record<string, unknown>)
          : (data[place] ??
              summary[place] ??
              (data['tree']?.[0]?.['children'] as Record<string, unknown>[]))?.[0]
      Object.assign(holder ?? {}, { [field]: value })
      const body = JSON.parse(JSON.stringify({ data }))
      expect([says, isTaken(path, body)]).toEqual([says, allowed])
      expect([says, isTaken(path, { data: [body.data] })]).toEqual([says, allowed])
    }
  })

  it('of statements has its quota beside the rows: in data or in meta', () => {
    const path = '/api/v1/instruments/{instrument}/statements'
    const quota = { total: 12, shown: 4 }
    expect(isTaken(path, { data: { quota, rows: [] } })).toBe(true)
    expect(isTaken(path, { data: [], meta: { quota } })).toBe(true)
    expect(isTaken(path, { data: { rows: [] } })).toBe(false)
    for (const { says, field, value, allowed } of document.variantsOf('quota')) {
      const body = JSON.parse(JSON.stringify({ data: { quota: { ...quota, [field]: value } } }))
      expect([says, isTaken(path, body)]).toEqual([says, allowed])
    }
  })

  it.each(document.documented.filter(({ answer }) => answer === 'page'))(
    'of $path is a page with four integers in meta',
    ({ path }) => {
      const meta = { page: 1, perPage: document.limits.rowsPerPage, total: 0, lastPage: 1 }
      expect(isTaken(path, { data: [], meta })).toBe(true)
      for (const name of document.pageMeta)
        for (const value of [undefined, null, '1', 1.5])
          expect(isTaken(path, { data: [], meta: { ...meta, [name]: value } })).toBe(false)
      expect(isTaken(path, { data: [], meta: { ...meta, perPage: 50 } })).toBe(false)
    },
  )

  it.each(document.documented.filter(({ answer }) => answer === 'record'))(
    'of $path is refused without data',
    ({ path }) => {
      for (const body of [null, [], {}, { meta: {} }, { data: 7 }, { data: null }])
        expect([body, isTaken(path, body)]).toEqual([body, false])
    },
  )

  it('names the place of what is wrong, in a list of records too', () => {
    const path = '/api/v1/instruments/{instrument}/ownership'
    const data = [document.sampleOf('ownership'), { ...document.sampleOf('ownership'), chains: 'many' }]
    expect(parseAnswer(endpointOf(path), 1, { data })).toEqual({
      ok: false,
      reason: 'data.1.chains: expected number, found "many"',
    })
  })
})

describe('the tree of an ownership answer', () => {
  const path = '/api/v1/instruments/{instrument}/ownership'
  const plain = document.sampleOf('tree node')
  const deep = (levels: number) => {
    let node = { ...plain, children: [] as unknown[] }
    for (let level = 1; level < levels; level += 1) node = { ...plain, children: [node] }
    return { data: { ...document.sampleOf('ownership'), tree: [node], treeTruncated: false } }
  }
  const levelsOf = (nodes: readonly { children: readonly never[] }[]): number =>
    nodes.length === 0 ? 0 : 1 + Math.max(...nodes.map(({ children }) => levelsOf(children)))
  const readTree = (levels: number) => {
    const body = deep(levels)
    tameAnswer(path, body)
    const parsed = parseAnswer(endpointOf(path), 1, body)
    if (!parsed.ok) throw new Error(parsed.reason)
    const { data } = parsed.page as { data: { tree: []; treeTruncated: boolean } }
    return { levels: levelsOf(data.tree), truncated: data.treeTruncated }
  }

  it('is kept as it is down to its limit, and cut there, which the record then says', () => {
    expect(readTree(treeLevelsMax)).toEqual({ levels: treeLevelsMax, truncated: false })
    expect(readTree(treeLevelsMax + 1)).toEqual({ levels: treeLevelsMax, truncated: true })
    expect(readTree(20_000)).toEqual({ levels: treeLevelsMax, truncated: true })
  })
})
