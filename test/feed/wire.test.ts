import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseDeliveriesPage, parseRulesPage } from '../../src/feed/wire.ts'
import { rawCharactersMax } from '../../src/store/walk/quarantine.ts'
import type { FeedPage } from '../../src/walk/page.ts'

function makeRow(fields: Record<string, unknown> = {}) {
  return {
    id: 1,
    kind: 'price',
    symbol: 'فولاد',
    slug: 'foolad',
    payload: ['last=5230'],
    headline: 'فولاد از ۵٬۲۰۰ ریال گذشت',
    url: 'https://market.example.com/instruments/foolad',
    why: null,
    ruleIds: ['12'],
    firedAt: '2026-05-03T09:00:00Z',
    notifiedAt: null,
    channels: ['push'],
    isRead: false,
    ...fields,
  }
}

function makeRows(count: number): object[] {
  return Array.from({ length: count }, (_, index) => makeRow({ id: index + 1 }))
}

function makeBody(data: unknown, meta: Record<string, unknown> = {}) {
  return { data, meta: { page: 1, perPage: 100, total: 1, lastPage: 1, ...meta } }
}

function parse(body: unknown, asked = 1): FeedPage {
  const parsed = parseDeliveriesPage('main', asked, body)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.page
}

/** JSON as it comes over the wire: `__proto__` is an own key there. */
const wire = (text: string): unknown => JSON.parse(text)

describe('a page of deliveries', () => {
  it('keeps every field of a good row untouched, also those that are not documented', () => {
    const row = makeRow({ score: { value: 7 }, payload: ['a', 'b'] })
    const page = parse(makeBody([row]))
    expect(page).toMatchObject({ page: 1, perPage: 100, total: 1, lastPage: 1 })
    expect(page.rows).toEqual([
      { ok: true, key: '1', alert: expect.objectContaining({ source: 'main', id: 1, row }) },
    ])
  })

  it.each([
    ['no object', 'text'],
    ['null', null],
    ['a list', [makeRow()]],
    ['no meta', { data: [] }],
    ['no data', { meta: { page: 1, perPage: 100, total: 0, lastPage: 1 } }],
    ['data that is an object', makeBody({ 0: makeRow() })],
    ['figures as strings', makeBody([makeRow()], { total: '1' })],
    ['a total that is no whole number', makeBody([makeRow()], { total: 1.5 })],
    ['a negative total', makeBody([makeRow()], { total: -1 })],
    ['a total beyond what can be counted', makeBody([makeRow()], { total: 2 ** 53 })],
    ['another perPage', makeBody([makeRow()], { perPage: 50 })],
    ['lastPage 0 with rows', makeBody([makeRow()], { lastPage: 0, total: 0 })],
    ['lastPage 0 with a total', makeBody([], { lastPage: 0, total: 7 })],
    ['another page than the one asked for', makeBody([makeRow()], { page: 2 })],
    ['more rows than a page has', makeBody(makeRows(101))],
    ['no rows where the total says there are some', makeBody([], { total: 250, lastPage: 3 })],
    ['far fewer rows than the total says', makeBody(makeRows(49), { total: 250, lastPage: 3 })],
  ])('is refused with %s', (_what, body) => {
    expect(parseDeliveriesPage('main', 1, body)).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/./),
    })
  })

  it.each([0, 1])('may be empty, with lastPage %i', (lastPage) => {
    expect(parse(makeBody([], { total: 0, lastPage }))).toMatchObject({ total: 0, lastPage: 1, rows: [] })
  })

  it('may lie beyond the end', () => {
    expect(parse(makeBody([], { page: 9, total: 250, lastPage: 3 }), 9).rows).toEqual([])
  })

  it('takes the greater of lastPage and what the total says, so that nobody stops too early', () => {
    expect(parse(makeBody(makeRows(100), { total: 250, lastPage: 1 })).lastPage).toBe(3)
    expect(parse(makeBody(makeRows(100), { total: 100, lastPage: 4 })).lastPage).toBe(4)
  })

  it('may miss rows that went between counting and reading', () => {
    expect(parse(makeBody(makeRows(97), { total: 250, lastPage: 3 })).rows).toHaveLength(97)
    expect(
      parse({ ...makeBody(makeRows(49)), meta: { page: 3, perPage: 100, total: 250, lastPage: 3 } }, 3).rows,
    ).toHaveLength(49)
  })

  it('keeps the first of two rows with one id', () => {
    const page = parse(makeBody([makeRow({ kind: 'first' }), makeRow({ kind: 'second' })]))
    expect(page.rows.map((row) => row.ok && row.alert.kind)).toEqual(['first'])
  })
})

describe('a row that does not parse', () => {
  it('never stops the rows around it', () => {
    const page = parse(makeBody([makeRow({ id: 3 }), makeRow({ id: 2.5 }), makeRow({ id: 1 })]))
    expect(page.rows.map(({ ok }) => ok)).toEqual([true, false, true])
    expect(page.rows[1]).toMatchObject({
      raw: { id: 2.5 },
      reason: 'id: expected a whole number from 1 to 2^53 - 1, found 2.5',
    })
  })

  it.each([
    ['text', '7'],
    ['a fraction', 7.5],
    ['negative', -7],
    ['zero', 0],
    ['null', null],
    ['missing', undefined],
    ['no safe integer', 2 ** 53],
    ['infinite', Number.POSITIVE_INFINITY],
  ])('has a key made of its content when its id is %s', (_what, id) => {
    const [row] = parse(makeBody([makeRow({ id })])).rows
    expect(row).toMatchObject({ ok: false, key: expect.stringMatching(/^raw-[0-9a-f]{32}$/) })
  })

  it.each([null, 'text', 7, true, [], [makeRow()], {}])('may be %j', (raw) => {
    expect(parse(makeBody([raw])).rows).toMatchObject([
      { ok: false, raw, key: expect.stringMatching(/^raw-/) },
    ])
  })

  it('has the same key whatever the order of its fields, and another for other content', () => {
    const [a, b, c] = [
      { x: 1, y: { p: 1, q: 2 } },
      { y: { q: 2, p: 1 }, x: 1 },
      { x: 1, y: { p: 1, q: 3 } },
    ].map((raw) => parse(makeBody([raw])).rows[0]?.key)
    expect(a).toBe(b)
    expect(a).not.toBe(c)
  })
})

describe('hostile JSON', () => {
  it('cannot reach a prototype', () => {
    const row = JSON.stringify(makeRow()).replace(
      '{',
      '{"__proto__":{"polluted":1},"deep":{"__proto__":{"polluted":1}},',
    )
    const page = parse(makeBody([wire(row)]))
    const [parsed] = page.rows
    expect(parsed?.ok).toBe(true)
    const copy = parsed?.ok
      ? Object.assign({}, parsed.alert.row, { deep: Object.assign({}, parsed.alert.row['deep']) })
      : {}
    expect(copy).not.toHaveProperty('polluted')
    expect(copy).not.toHaveProperty('deep.polluted')
    expect({}).not.toHaveProperty('polluted')
  })

  it('is cut where it is nested too deeply, so that it can be stored and sent', () => {
    const deep = wire(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)
    const page = parse(makeBody([makeRow({ id: 2 }), makeRow({ id: 1, payload: [deep] })]))
    expect(page.rows.map(({ ok, key }) => [ok, key])).toEqual([
      [true, '2'],
      [true, '1'],
    ])
    expect(JSON.stringify(page.rows[1])).toContain('[nested too deeply]')
  })

  it('is left alone where it is nested 32 levels deep', () => {
    // The row itself is the first level.
    const nested = wire(`${'['.repeat(31)}${']'.repeat(31)}`)
    const shown = (extra: unknown) => JSON.stringify(parse(makeBody([makeRow({ extra })])).rows[0])
    expect(shown(nested)).not.toContain('too deeply')
    expect(shown([nested])).toContain('too deeply')
  })

  it('of more values than a row can have is quarantined under its id, and cut', () => {
    const wide = (count: number) => makeRow({ id: 2, payload: Array.from({ length: count }, () => 1.5) })
    const [kept, cut] = [49_000, 1_000_000].map((count) => parse(makeBody([wide(count), makeRow()])).rows)
    expect(kept?.map(({ ok }) => ok)).toEqual([true, true])
    expect(cut).toMatchObject([
      { ok: false, key: '2', reason: 'row: 1000015 values, more than 50000' },
      { ok: true },
    ])
    const raw = cut?.[0]?.ok === false ? JSON.stringify(cut[0].raw) : ''
    expect(raw.length).toBeLessThan(300_000)
    // So that what is stored of it is no row any more.
    expect(raw.length).toBeGreaterThan(rawCharactersMax)
    const many = wire(`{${Array.from({ length: 60_000 }, (_, index) => `"k${index}":[]`).join(',')}}`)
    expect(parse(makeBody([many])).rows[0]).toMatchObject({ ok: false, key: expect.stringMatching(/^raw-/) })
  })

  it('of no kind makes the parser throw, or lose a row without a trace', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 20 }), (data) => {
        const { rows } = parse(makeBody(data, { total: data.length }))
        expect(rows.length).toBeLessThanOrEqual(data.length)
        expect(rows.length > 0).toBe(data.length > 0)
        expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length)
      }),
    )
    fc.assert(fc.property(fc.jsonValue(), (body) => void parseDeliveriesPage('main', 1, body)))
  })
})

describe('a page of rules', () => {
  const rule = {
    id: 12,
    kind: 'price',
    symbol: null,
    config: [],
    channels: [],
    isActive: true,
    isArmed: false,
  }

  it('takes a rule by its id, whatever its other fields hold', () => {
    const odd = { id: 13, kind: null, isActive: 'yes', symbol: [1] }
    expect(parseRulesPage(1, makeBody([odd]))).toMatchObject({ ok: true, page: { rules: [odd], skipped: 0 } })
  })

  it('has the rules that parse and counts the others', () => {
    const parsed = parseRulesPage(1, makeBody([rule, { ...rule, id: 'x' }, null], { total: 3 }))
    expect(parsed).toEqual({
      ok: true,
      page: { page: 1, perPage: 100, total: 3, lastPage: 1, rules: [rule], skipped: 2 },
    })
  })

  it('is refused by the same rules as a page of deliveries', () => {
    expect(parseRulesPage(2, makeBody([rule]))).toMatchObject({ ok: false })
  })
})
