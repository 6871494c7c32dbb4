import { describe, expect, it } from 'vitest'
import type { EndpointPath } from '../../src/feed/endpoints.ts'
import { allLetters } from '../../src/sandbox/data/company.ts'
import { sandboxToken } from '../../src/sandbox/sandbox.ts'
import { connect, type StartedSandbox, startSandbox } from '../support/sandbox.ts'
import * as document from './document.ts'
import { screenerKeys } from './screener-keys.ts'

/** The sandbox held against the document, row by row, over plain HTTP; and the client against the sandbox. */

interface Answer {
  readonly status: number
  readonly body: {
    readonly data?: unknown
    readonly meta?: Record<string, unknown>
    readonly error?: { readonly code: string; readonly detail?: Record<string, unknown> }
  }
}

type Row = document.DocumentedEndpoint

async function call(
  sandbox: StartedSandbox,
  row: Pick<Row, 'method' | 'path'>,
  more: {
    instrument?: string
    query?: readonly (readonly [string, string])[]
    body?: unknown
    token?: string
  } = {},
): Promise<Answer> {
  const { instrument = 'foolad', query = neededBy(row.path), body, token = sandboxToken } = more
  const search =
    query.length === 0
      ? ''
      : `?${new URLSearchParams(query.map(([name, value]): [string, string] => [name, value]))}`
  const path = row.path.replace('{instrument}', encodeURIComponent(instrument))
  const response = await fetch(`${sandbox.url}${path}${search}`, {
    method: row.method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(row.method === 'POST' ? { body: typeof body === 'string' ? body : JSON.stringify(body ?? {}) } : {}),
  })
  return { status: response.status, body: (await response.json()) as Answer['body'] }
}

const neededBy = (path: string): [string, string][] =>
  path === '/api/v1/macro/series' ? [['keys[]', 'usd_free']] : []
const refusalOf = ({ status, body }: Answer) => [status, body.error?.code, body.error?.detail]

describe.each(document.documented)('$method $path', (row) => {
  it('answers as documented, for its scope alone and its cost', async () => {
    const others = document.scopes.filter((scope) => scope !== row.scope)
    const sandbox = await startSandbox({
      history: 3,
      tokens: [
        { value: 'own', scopes: [row.scope] },
        { value: 'others', scopes: others },
      ],
    })
    const client = connect(sandbox)
    const fine = await call(sandbox, row, { token: 'own' })
    expect(fine.status).toBe(200)
    expect(sandbox.unitsUsed).toBe(row.cost)
    if (row.answer === 'page') expect(Object.keys(fine.body.meta ?? {})).toEqual(document.pageMeta)
    const refused = await call(sandbox, row, { token: 'others' })
    expect(refusalOf(refused)).toEqual([403, 'scope_required', undefined])
    expect(sandbox.unitsUsed).toBe(2 * row.cost)
    expect(refusalOf(await call(sandbox, row, { token: 'nobody' }))).toEqual([
      401,
      'unauthenticated',
      undefined,
    ])
    const otherMethod = row.method === 'GET' ? 'POST' : 'GET'
    expect((await call(sandbox, { ...row, method: otherMethod }, { token: 'own' })).status).toBe(404)
    sandbox.setToken({ value: 'own', hasPlan: false })
    expect(refusalOf(await call(sandbox, row, { token: 'own' }))).toEqual([403, 'plan_required', undefined])
    await client.close()
  })

  it('is understood by the client', async () => {
    const client = connect(await startSandbox({ history: 3 }))
    for (const instrument of ['فولاد', 'foolad', 101]) {
      const query = Object.fromEntries(neededBy(row.path).map(([name, value]) => [name, [value]]))
      const parameters = row.path.includes('{') ? { instrument } : {}
      const answer = await client.ask(row.path as EndpointPath, { ...parameters, query } as never)
      if (row.answer === 'page') expect(answer).toMatchObject({ page: 1, perPage: 100, skipped: [] })
      else expect(answer).toHaveProperty('data')
    }
  })

  if (row.path.includes('{instrument}'))
    it('holds an instrument by id, symbol and slug exactly, and no other', async () => {
      const sandbox = await startSandbox()
      for (const instrument of ['101', 'فولاد', 'foolad'])
        expect((await call(sandbox, row, { instrument })).status).toBe(200)
      for (const instrument of ['Foolad', 'فولا', '0101', '9999', 'foolad '])
        expect(refusalOf(await call(sandbox, row, { instrument }))).toEqual([404, 'not_found', undefined])
    })

  if (row.query.length > 0)
    it('refuses each parameter that is out of its bounds, by its name', async () => {
      const sandbox = await startSandbox({ history: 3 })
      for (const { name, of, type, min = 1, max, itemsMax, required } of row.query) {
        const wrong: string[][] = of ? [['none of them']] : []
        if (type === 'integer')
          wrong.push([String(min - 1)], ['x'], ['1.5'], ...(max ? [[String(max + 1)]] : []))
        if (type === 'boolean') wrong.push(['perhaps'], ['toString'])
        if (type === 'strings') wrong.push(Array<string>((itemsMax ?? 0) + 1).fill('usd_free'))
        if (required) wrong.push([])
        for (const values of wrong) {
          const query = [
            ...neededBy(row.path).filter(([each]) => each !== name),
            ...values.map((value) => [name, value] as const),
          ]
          const answer = await call(sandbox, row, { query })
          expect([values, ...refusalOf(answer)]).toEqual([values, 422, 'invalid_request', { fields: [name] }])
        }
        for (const value of of ??
          (type === 'integer' && name !== 'letter'
            ? [String(min === 1 ? 7 : min), ...(max ? [String(max)] : [])]
            : []))
          expect((await call(sandbox, row, { query: [...neededBy(row.path), [name, value]] })).status).toBe(
            200,
          )
      }
    })
})

it('a refusal has the status that the document has for its code', async () => {
  const sandbox = await startSandbox({
    unitsPerDay: 4,
    tokens: [{ value: sandboxToken }, { value: 'narrow', scopes: [] }, { value: 'free', hasPlan: false }],
  })
  const path = '/api/v1/alerts'
  const declared = (status: number) => {
    sandbox.fault({ kind: 'status', status })
    return sandboxToken
  }
  const provoke: Record<string, () => { path?: string; token: string }> = {
    unauthenticated: () => ({ token: 'nobody' }),
    scope_required: () => ({ token: 'narrow' }),
    plan_required: () => ({ token: 'free' }),
    not_found: () => ({ path: '/api/v1/nothing', token: sandboxToken }),
    invalid_request: () => ({ path: `${path}?page=0`, token: sandboxToken }),
    server_error: () => ({ token: declared(500) }),
    rate_limited: () => ({ token: sandboxToken }),
  }
  // Those before it spend the budget: a refusal of a valid token costs its unit, but for 404.
  const order = document.errors.toSorted(
    (a, b) => Number(a.code === 'rate_limited') - Number(b.code === 'rate_limited'),
  )
  for (const { code, status } of order) {
    const { path: asked = path, token } = provoke[code]?.() ?? { token: '' }
    const answer = await call(sandbox, { method: 'GET', path: asked }, { token })
    expect([answer.status, answer.body.error?.code]).toEqual([status, code])
  }
})

const rowOf = (path: string) => document.documented.find((each) => each.path.endsWith(path)) as Row
const dataOf = async <T>(answer: Promise<Answer>) => (await answer).body.data as T

describe('the market', () => {
  type Figures = Record<string, unknown>
  const prices = (sandbox: StartedSandbox, days?: number) =>
    dataOf<{ unit: string; points: { date: string; close: number; halted: boolean }[] }>(
      call(sandbox, rowOf('/prices'), days === undefined ? {} : { query: [['days', String(days)]] }),
    )

  it('has one history: prices, catalog, profile, board, screener and macro tell the same figures', async () => {
    const sandbox = await startSandbox()
    const { points, unit } = await prices(sandbox)
    expect(points).toHaveLength(document.limits.pricesDays.default)
    expect(points.map(({ date }) => date)).toEqual(points.map(({ date }) => date).toSorted())
    expect((await prices(sandbox, 20)).points).toEqual(points.slice(-20))
    const last = points.at(-1)?.close
    const [board, catalog] = await Promise.all([
      dataOf<Figures[]>(call(sandbox, rowOf('/board'), { query: [['search', 'فولاد']] })),
      dataOf<Figures[]>(call(sandbox, rowOf('/v1/instruments'))),
    ])
    const own = (rows: Figures[]) => rows.find(({ symbol }) => symbol === 'فولاد')
    expect([own(board)?.['last'], own(catalog)?.['last'], unit]).toEqual([last, last, 'rial'])
    expect(await dataOf(call(sandbox, rowOf('{instrument}')))).toMatchObject({ last })
    const body = { screen: { match: 'all', conditions: [{ field: 'last', operator: 'eq', value: last }] } }
    const found = await dataOf<{ rows: Figures[] }>(call(sandbox, rowOf('/run'), { body }))
    expect(own(found.rows)).toMatchObject({ last })
    const [dollar] = await dataOf<{ points: { date: string; value: number }[] }[]>(
      call(sandbox, rowOf('/series'), {
        query: [
          ['keys[]', 'usd_free'],
          ['days', '90'],
        ],
      }),
    )
    const closes = await dataOf<{ points: { date: string; close: number }[] }>(
      call(sandbox, rowOf('/prices'), { instrument: 'USD_FREE' }),
    )
    const byDate = new Map(closes.points.map(({ date, close }) => [date, close]))
    expect(dollar?.points.length).toBeGreaterThan(60)
    expect(dollar?.points.length).toBeLessThan(90)
    for (const { date, value } of dollar?.points ?? [])
      expect([date, value]).toEqual([date, byDate.get(date)])
  })

  it('is the same for the same seed, and has halted sessions', async () => {
    const [one, same, other] = [await startSandbox(), await startSandbox(), await startSandbox({ seed: 2 })]
    const { points } = await prices(one, 365)
    expect(await prices(same, 365)).toMatchObject({ points })
    expect((await prices(other, 365)).points).not.toEqual(points)
    expect(points.some(({ halted }) => halted)).toBe(true)
    const hash = async (sandbox: StartedSandbox) =>
      (await dataOf<{ seriesHash: string }>(call(sandbox, rowOf('/indicators')))).seriesHash
    expect([await hash(same), await hash(other)]).toEqual([
      await hash(one),
      expect.not.stringMatching(await hash(one)),
    ])
  })

  it('screens: what is absent never passes, any and all, sorted, with further readings', async () => {
    const sandbox = await startSandbox()
    const run = (body: unknown) =>
      dataOf<{ matched: number; shown: number; rowCap: number; rows: Figures[] }>(
        call(sandbox, rowOf('/run'), { body }),
      )
    const everything = await run({ sortBy: 'last', fields: ['change'] })
    const { matched, rowCap } = everything
    expect(everything.shown).toBe(rowCap)
    expect(everything.rows).toHaveLength(rowCap)
    const lasts = everything.rows.map((row) => Number(row['last']))
    expect(lasts).toEqual(lasts.toSorted((a, b) => b - a))
    expect(everything.rows.every((row) => 'change' in row)).toBe(true)
    const low = { field: 'pe', operator: 'gte', value: 6 }
    const high = { field: 'pe', operator: 'lt', value: 6 }
    const either = await run({ screen: { match: 'any', conditions: [low, high] } })
    expect(either.matched).toBeLessThan(matched)
    const alone = [low, high].map((one) => run({ screen: { match: 'all', conditions: [one] } }))
    const found = (await Promise.all(alone)).map((each) => each.matched)
    expect(Math.min(...found)).toBeGreaterThan(0)
    expect(either.matched).toBe(found.reduce((sum, each) => sum + each, 0))
    // What is absent is not another figure either.
    const other = { field: 'pe', operator: 'neq', value: 0 }
    expect((await run({ screen: { match: 'all', conditions: [other] } })).matched).toBe(either.matched)
    expect(await run({ screen: { match: 'all', conditions: [low, high] } })).toMatchObject({ matched: 0 })
    const saved = await run({ screenId: 31, screen: { match: 'all', conditions: [high] } })
    expect(saved.rows.every((row) => Number(row['rsi']) > 60)).toBe(true)
    const scope = { exchange: 'fara' }
    const ascending = (await run({ sortBy: 'pe', sortDescending: false, scope })).rows
    const last = ascending.findLastIndex((row) => 'pe' in row)
    expect(ascending.slice(0, last).every((row) => 'pe' in row)).toBe(true)
    expect(ascending.length).toBeGreaterThan(last + 1)
  })

  it('refuses a wrong run by its fields, and a screen that is not held', async () => {
    const sandbox = await startSandbox()
    const refused = async (body: unknown) => refusalOf(await call(sandbox, rowOf('/run'), { body }))
    const fields = (...names: string[]) => [422, 'invalid_request', { fields: names }]
    expect(await refused({ screenId: 999 })).toEqual([404, 'not_found', undefined])
    expect(await refused('{')).toEqual(fields('body'))
    expect(await refused([])).toEqual(fields('body'))
    expect(await refused({ sortBy: 'price', scope: { group: 'x' } })).toEqual(fields('scope', 'sortBy'))
    const conditions = Array<unknown>(document.limits.conditions + 1).fill({
      field: 'pe',
      operator: 'lt',
      value: 1,
    })
    expect(await refused({ screen: { match: 'all', conditions } })).toEqual(fields('screen'))
    expect(await refused({ screen: { match: 'all', conditions: conditions.slice(1) } })).toEqual([
      200,
      undefined,
      undefined,
    ])
  })

  it('lists the keys of the screener in wire order, and the saved screens with kept and limit', async () => {
    const sandbox = await startSandbox()
    const fields = await dataOf<{ key: string }[]>(call(sandbox, rowOf('/fields')))
    expect(fields.map(({ key }) => key)).toEqual(screenerKeys)
    const { body } = await call(sandbox, rowOf('/screens'))
    expect(body.meta).toEqual({ kept: (body.data as unknown[]).length, limit: expect.any(Number) })
  })

  it('lists letters newest first, one company’s alone, since a day, and only those that were parsed', async () => {
    const sandbox = await startSandbox()
    const letters = async (...query: [string, string][]) =>
      dataOf<{ symbol: string; publishedAt: string; periodMonths: number; parsed: boolean }[]>(
        call(sandbox, rowOf('/filings'), { query }),
      )
    const all = await letters(['symbol', 'foolad'])
    const market = (await letters()).map(({ publishedAt }) => publishedAt)
    expect(market).toEqual(market.toSorted().reverse())
    const times = all.map(({ publishedAt }) => publishedAt)
    expect(times).toEqual(times.toSorted().reverse())
    expect(all.every(({ periodMonths }) => [3, 6, 9, 12].includes(periodMonths))).toBe(true)
    expect(new Set((await letters(['symbol', 'khodro'])).map(({ symbol }) => symbol))).toEqual(
      new Set(['خودرو']),
    )
    expect(await letters(['symbol', 'no such'])).toEqual([])
    expect((await letters(['symbol', 'foolad'], ['parsedOnly', 'true'])).length).toBe(
      all.filter(({ parsed }) => parsed).length,
    )
    const today = Date.UTC(2026, 10, 23)
    for (const hours of [0, 11.99, 12, 23]) {
      const nowMs = today + hours * 3_600_000
      const latest = allLetters({ seed: 1, nowMs })[0]?.publishedAt ?? ''
      expect(latest, `${hours}`).toBe(hours < 12 ? '2026-11-22T12:00:00Z' : '2026-11-23T12:00:00Z')
    }
    const since = times[3]?.slice(0, 10) ?? ''
    expect((await letters(['since', since])).every(({ publishedAt }) => publishedAt >= since)).toBe(true)
    for (const noDate of ['2026-02-30', '2026-13-01', '2026-2-1', 'soon', '2026-02-01Tea']) {
      const refused = await call(sandbox, rowOf('/filings'), { query: [['since', noDate]] })
      expect(refusalOf(refused).slice(0, 1)).toEqual([422])
    }
  })

  it('does not hold what nobody declared: a series, a letter', async () => {
    const sandbox = await startSandbox()
    const series = await call(sandbox, rowOf('/series'), {
      query: [
        ['keys[]', 'usd_free'],
        ['keys[]', 'none'],
      ],
    })
    expect(refusalOf(series)).toEqual([404, 'not_found', undefined])
    expect((await call(sandbox, rowOf('/statements'), { query: [['letter', '1']] })).status).toBe(404)
  })
})
