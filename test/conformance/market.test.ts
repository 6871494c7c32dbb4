import { expect, it } from 'vitest'
import { sandboxToken } from '../../src/sandbox/sandbox.ts'
import { startSandbox } from '../support/sandbox.ts'
import { documented } from './document.ts'
import { screenerKeys } from './screener-keys.ts'

/** The sandbox's market, whole: what one endpoint shows of an instrument follows from what the others show. */

type Row = Readonly<Record<string, unknown>>
interface Page {
  readonly data: readonly Row[]
  readonly meta: { readonly total: number; readonly lastPage: number }
}

const dayMs = 86_400_000
const dateOf = (at: unknown) => new Date(Date.parse(String(at)) + 3.5 * 3_600_000).toISOString().slice(0, 10)
const figure = (text: unknown) => Number(String(text).split('=')[1])

/** A sandbox, and what reads it: one answer, all rows of a list, a run of the screener. */
async function startMarket() {
  const sandbox = await startSandbox({ history: 200, requestsPerMinute: 100_000 })
  const ask = async <T>(path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${sandbox.url}/api/v1/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${sandboxToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    expect([path, response.status]).toEqual([path, 200])
    return (await response.json()) as T
  }
  const all = async (path: string) => {
    const first = await ask<Page>(`${path}page=1`)
    const rest = Array.from({ length: first.meta.lastPage - 1 }, (_, at) =>
      ask<Page>(`${path}page=${at + 2}`),
    )
    return [first, ...(await Promise.all(rest))].flatMap(({ data }) => data)
  }
  const run = async (body: unknown) =>
    (
      await ask<{ data: { matched: number; shown: number; rowCap: number; rows: Row[] } }>(
        'screener/run',
        body,
      )
    ).data
  return { sandbox, ask, all, run }
}

it('three hundred instruments show the same figures on every endpoint', async () => {
  const { sandbox, ask, all, run } = await startMarket()
  const [catalog, board] = await Promise.all([all('instruments?'), all('board?')])
  expect(catalog.length).toBeGreaterThanOrEqual(300)
  for (const name of ['id', 'symbol', 'slug'])
    expect(new Set(catalog.map((row) => row[name])).size).toBe(catalog.length)
  expect(new Set(catalog.map(({ market }) => market))).toEqual(new Set(['tse', 'gold', 'currency']))
  expect(new Set(catalog.map((row) => row['board']))).toEqual(new Set(['bourse', 'fara', 'fara_base', null]))
  expect(new Set(catalog.map(({ unit }) => unit))).toEqual(new Set(['rial', 'toman', 'usd']))

  // The screener, in two runs of at most `rowCap` rows, has what the board shows.
  const onBoard = new Map(board.map((row) => [row['symbol'], row]))
  const screened = new Map<unknown, Row>()
  for (const sortDescending of [true, false]) {
    const { matched, shown, rowCap, rows } = await run({
      sortBy: 'last',
      sortDescending,
      fields: ['change', 'volume', 'rsi', 'pe'],
    })
    expect([matched, shown, rows.length]).toEqual([catalog.length, rowCap, rowCap])
    for (const row of rows) screened.set(row['symbol'], row)
  }
  for (const { symbol, last } of catalog) {
    const own = onBoard.get(symbol)
    expect([symbol, own?.['last']]).toEqual([symbol, last])
    expect(screened.get(symbol)).toMatchObject({ last, change: own?.['change'], volume: own?.['volume'] })
  }
  const withPe = [...screened.values()].filter((row) => 'pe' in row)
  const cheap = { screen: { match: 'all', conditions: [{ field: 'pe', operator: 'lt', value: 6 }] } }
  expect((await run(cheap)).rows.map(({ symbol }) => symbol).toSorted()).toEqual(
    withPe
      .filter(({ pe }) => Number(pe) < 6)
      .map(({ symbol }) => symbol)
      .toSorted(),
  )

  // Prices, one in ten: the last close is on the board, and the indicators are those of the series.
  const symbols = catalog.filter((_, at) => at % 10 === 0).map(({ symbol }) => String(symbol))
  const hashes = new Set<string>()
  for (const symbol of symbols) {
    const of = `instruments/${encodeURIComponent(symbol)}`
    const { data } = await ask<{ data: { unit: string; points: Row[] } }>(`${of}/prices?days=20`)
    expect(data.points.at(-1)?.['close']).toBe(onBoard.get(symbol)?.['last'])
    const struck = (await ask<{ data: { seriesHash: string; indicators: Row } }>(`${of}/indicators`)).data
    hashes.add(struck.seriesHash)
    expect([symbol, struck.indicators['rsi']]).toEqual([symbol, screened.get(symbol)?.['rsi']])
    expect(Object.keys(struck.indicators).filter((key) => !screenerKeys.includes(key))).toEqual([])
  }
  expect(hashes.size).toBe(symbols.length)

  // Every key of the catalog is a reading that instruments have, whatever the key.
  const { data: keys } = await ask<{ data: { key: string }[] }>('screener/fields')
  const scope = { industry: 'فلزات اساسی' }
  const every = await run({ sortBy: 'market_cap', fields: keys.map(({ key }) => key), scope })
  const read = new Set(every.rows.flatMap((row) => Object.keys(row)))
  expect(screenerKeys.filter((key) => !read.has(key))).toEqual(['nav_gap'])
  const [richest] = every.rows
  const of = `instruments/${encodeURIComponent(String(richest?.['symbol']))}`
  const statements = await ask<{
    data: { quota: Row; periods: Row[]; rows: { key: string; values: number[] }[] }
  }>(`${of}/statements`)
  const yearly = statements.data.periods.findIndex(({ periodMonths }) => periodMonths === 12)
  if (yearly === 0) expect(statements.data.rows[0]?.values[yearly]).toBe(richest?.['revenue_ttm'])
  const owned = await ask<{ data: { summary: { holders: Row[] } } }>(`${of}/ownership`)
  expect(owned.data.summary.holders[0]?.['percent']).toBe(richest?.['largest_holder_percent'])

  // A valuation run is the same wherever it is read, and its two prices stand in the history.
  const { data: saved } = await ask<{ data: Row[] }>('valuations')
  expect(saved.length).toBeGreaterThan(1)
  for (const run of saved) {
    const { data } = await ask<{ data: Row[] }>(`instruments/${run['slug']}/valuations`)
    expect(data).toEqual([run])
    const closes = await closesOf(String(run['slug']), 365)
    const day = [...closes.keys()].findLast((each) => String(each) <= dateOf(run['savedAt']))
    // In later years the history begins after the day on which the runs were saved.
    if (day !== undefined) expect(run['priceAtSave']).toBe(closes.get(day))
    expect(run['priceNow']).toBe([...closes.values()].at(-1))
    for (const [gap, price] of [
      ['gapAtSave', 'priceAtSave'],
      ['gapNow', 'priceNow'],
    ] as const)
      expect(run[gap]).toBeCloseTo((Number(run['value']) / Number(run[price]) - 1) * 100, 1)
  }

  // An alert's price is the close of its day, and that of today stands on the board.
  const known = new Map<string, Map<unknown, unknown>>()
  const alerts = [...sandbox.rows, ...sandbox.fireMany(40)].filter(({ kind }) => kind === 'price')
  expect(alerts.length).toBeGreaterThan(30)
  for (const { symbol, firedAt, payload } of alerts) {
    const name = String(symbol)
    const points = known.get(name) ?? (await closesOf(name))
    known.set(name, points)
    // On a day without a session, the one before counts.
    let day = dateOf(firedAt)
    while (!points.has(day)) day = new Date(Date.parse(day) - dayMs).toISOString().slice(0, 10)
    expect([name, day, figure(payload[0])]).toEqual([name, day, points.get(day)])
    if (day === [...points.keys()].at(-1)) expect(figure(payload[0])).toBe(onBoard.get(name)?.['last'])
  }

  // An alert of a letter is about one that its instrument has.
  const filed = sandbox.rows.filter(({ kind }) => kind === 'filing')
  expect(filed.length).toBeGreaterThan(5)
  for (const symbol of new Set(filed.map((alert) => String(alert.symbol)))) {
    const letters = await all(`filings?symbol=${encodeURIComponent(symbol)}&`)
    const months = letters.map(({ periodMonths }) => periodMonths)
    for (const { payload } of filed.filter((alert) => alert.symbol === symbol))
      expect([symbol, months]).toEqual([symbol, expect.arrayContaining([figure(payload[0])])])
  }

  // An instrument that entered a screen now is one that a run of this screen shows.
  const entered = sandbox.fireMany(500).filter(({ kind, symbol }) => kind === 'screen' && symbol !== null)
  expect(entered.length).toBeGreaterThan(5)
  for (const [screenId, alerts] of Map.groupBy(entered, ({ payload }) => figure(payload[0]))) {
    const { rows } = await run({ screenId })
    const symbols = alerts.map(({ symbol }) => symbol)
    expect(rows.map(({ symbol }) => symbol)).toEqual(expect.arrayContaining(symbols))
  }

  async function closesOf(name: string, days = 40) {
    const prices = await ask<{ data: { points: Row[] } }>(
      `instruments/${encodeURIComponent(name)}/prices?days=${days}`,
    )
    return new Map(prices.data.points.map(({ date, close }) => [date, close]))
  }
}, 60_000)

it('each parameter of a list leaves the rows, or the order, that it names', async () => {
  const { ask, all, run } = await startMarket()
  const choices = (path: string, name: string) =>
    documented.find((each) => each.path === `/api/v1/${path}`)?.query.find((each) => each.name === name)
      ?.of ?? []
  const ids = (rows: readonly Row[]) => rows.map((row) => row['id'] ?? row['instrumentId'])
  const industries = ['فلزات اساسی', 'no such']
  for (const [path, name, field, values] of [
    ['board', 'group', 'group', choices('board', 'group')],
    ['board', 'exchange', 'exchange', choices('board', 'exchange')],
    ['board', 'industry', 'industry', industries],
    ['instruments', 'filter[board]', 'board', choices('instruments', 'filter[board]')],
    ['instruments', 'filter[market]', 'market', ['gold', 'currency', 'no such']],
  ] as const) {
    const whole = await all(`${path}?`)
    expect(values.length).toBeGreaterThan(1)
    for (const value of values) {
      const rows = await all(`${path}?${new URLSearchParams({ [name]: value })}&`)
      const wanted = whole.filter((row) => value === 'all' || row[field] === value)
      expect([name, value, ids(rows)]).toEqual([name, value, ids(wanted)])
    }
  }
  for (const sort of choices('board', 'sort'))
    for (const direction of choices('board', 'direction')) {
      const values = (await all(`board?sort=${sort}&direction=${direction}&`)).map((row) => Number(row[sort]))
      const sorted = values.toSorted((a, b) => (direction === 'asc' ? a - b : b - a))
      expect([sort, direction, values]).toEqual([sort, direction, sorted])
    }
  const byLast = async (sort: string) =>
    (await all(`instruments?sort=${sort}&`)).map(({ last }) => Number(last))
  expect(await byLast('last')).toEqual((await byLast('last')).toSorted((a, b) => a - b))
  expect(await byLast('-last')).toEqual((await byLast('last')).toReversed())
  const rules = (await all('alerts?')).map(({ id }) => Number(id))
  expect(rules).toEqual(rules.toSorted((a, b) => b - a))

  // A saved screen has the whole market, whatever else the run names.
  const saved = await run({ screenId: 31 })
  expect(await run({ screenId: 31, scope: { group: 'fund' } })).toEqual(saved)
  expect(await run({ screenId: 31, screen: 'none', scope: [] })).toEqual(saved)
  const { data } = await ask<{ data: { quota: Row; periods: Row[] } }>('instruments/foolad/statements')
  const filed = await all('filings?symbol=foolad&parsedOnly=true&')
  expect(data.quota).toEqual({ total: filed.length, shown: data.periods.length })
  expect(data.periods.length).toBeLessThan(filed.length)
  for (const slug of ['foolad', 'gold-18k', 'gold-ounce']) {
    const unitOf = async (what: string) =>
      (await ask<{ data: Row }>(`instruments/${slug}/${what}`)).data['unit']
    expect([slug, await unitOf('statements')]).toEqual([slug, await unitOf('prices')])
  }
}, 60_000)
