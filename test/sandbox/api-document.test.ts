import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { type SandboxOptions, sandboxToken } from '../../src/sandbox/sandbox.ts'
import { limits } from '../conformance/document.ts'
import { type StartedSandbox, startSandbox } from '../support/sandbox.ts'

/** The documented API, sentence by sentence, as far as it concerns the two alert endpoints; over plain HTTP. */

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: {
    readonly data: Record<string, unknown>[]
    readonly meta: Record<string, unknown>
    readonly error: {
      readonly code: string
      readonly message: string
      readonly detail?: Record<string, unknown>
    }
  }
}

const deliveries = '/api/v1/alerts/deliveries'
const rules = '/api/v1/alerts'
const both = [deliveries, rules]

async function ask(
  sandbox: StartedSandbox,
  path = deliveries,
  options: { method?: string; authorization?: string | null } = {},
): Promise<Answer> {
  const { method = 'GET', authorization = `Bearer ${sandboxToken}` } = options
  const headers = authorization === null ? {} : { authorization }
  const response = await fetch(`${sandbox.url}${path}`, { method, headers })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Answer['body'],
  }
}

/** A sandbox whose clock stands until `advance` moves it. */
async function startWithClock(options: SandboxOptions, startMs = Date.UTC(2026, 4, 3, 9, 0, 0)) {
  let nowMs = startMs
  const sandbox = await startSandbox({ ...options, clock: { ...systemClock, now: () => nowMs } })
  return {
    sandbox,
    advance: (ms: number) => {
      nowMs += ms
    },
  }
}

const isText = (value: unknown) => typeof value === 'string'
const isTextOrNull = (value: unknown) => value === null || isText(value)
const isListOfText = (value: unknown) => Array.isArray(value) && value.every(isText)
const isFlag = (value: unknown) => typeof value === 'boolean'
const isWhole = Number.isInteger
const isWholeOrNull = (value: unknown) => value === null || isWhole(value)

describe('1, 2.1: rules and envelopes', () => {
  it.each(both)('%s answers JSON: data, and meta with four integers', async (path) => {
    const { status, headers, body } = await ask(await startSandbox({ history: 250 }), path)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(Object.keys(body)).toEqual(['data', 'meta'])
    expect(Object.keys(body.meta).sort()).toEqual(['lastPage', 'page', 'perPage', 'total'])
    expect(Object.values(body.meta).every(isWhole)).toBe(true)
  })

  it('pages have 100 rows, counted from page 1', async () => {
    const sandbox = await startSandbox({ history: 250 })
    for (const [page, rows] of [
      [1, 100],
      [2, 100],
      [3, 50],
    ] as const) {
      const { body } = await ask(sandbox, `${deliveries}?page=${page}`)
      expect(body.meta).toEqual({ page, perPage: 100, total: 250, lastPage: 3 })
      expect(body.data).toHaveLength(rows)
    }
  })

  it('page is optional and the first one by default', async () => {
    const sandbox = await startSandbox({ history: 150 })
    expect((await ask(sandbox)).body).toEqual((await ask(sandbox, `${deliveries}?page=1`)).body)
  })

  it('perPage is not settable', async () => {
    const { body } = await ask(await startSandbox({ history: 150 }), `${deliveries}?perPage=10&per_page=10`)
    expect(body.data).toHaveLength(100)
    expect(body.meta['perPage']).toBe(100)
  })

  it('a full last page is the last page', async () => {
    expect((await ask(await startSandbox({ history: 200 }))).body.meta['lastPage']).toBe(2)
  })

  it('an empty feed is an empty first page', async () => {
    const { body } = await ask(await startSandbox())
    expect(body).toEqual({ data: [], meta: { page: 1, perPage: 100, total: 0, lastPage: 1 } })
  })

  it('a page beyond the last one is empty', async () => {
    const { status, body } = await ask(await startSandbox({ history: 150 }), `${deliveries}?page=9`)
    expect(status).toBe(200)
    expect(body).toEqual({ data: [], meta: { page: 9, perPage: 100, total: 150, lastPage: 2 } })
  })

  it.each(['POST', 'PUT', 'DELETE', 'PATCH'])(
    'the endpoints are GET only: %s finds nothing',
    async (method) => {
      const { status, body } = await ask(await startSandbox(), rules, { method })
      expect([status, body.error.code]).toEqual([404, 'not_found'])
    },
  )
})

describe('2.16, 4.16: alert rules', () => {
  it('have the documented fields and types', async () => {
    const { body } = await ask(await startSandbox({ history: 50 }), rules)
    const types: Record<string, (value: unknown) => boolean> = {
      id: isWhole,
      kind: isText,
      name: isTextOrNull,
      instrumentId: isWholeOrNull,
      symbol: isTextOrNull,
      slug: isTextOrNull,
      screenId: isWholeOrNull,
      screen: isTextOrNull,
      config: isListOfText,
      channels: isListOfText,
      isActive: isFlag,
      disabledReason: isTextOrNull,
      lastEvaluatedAt: isTextOrNull,
      nextEvaluationAt: isTextOrNull,
      lastFiredAt: isTextOrNull,
      isArmed: isFlag,
      mine: isFlag,
      isPrivate: isFlag,
      owner: isTextOrNull,
      unit: isTextOrNull,
    }
    expectTypes(body.data, types)
  })

  it('are listed newest first', async () => {
    const ids = (await ask(await startSandbox(), rules)).body.data.map(({ id }) => Number(id))
    expect(ids).toEqual(ids.toSorted((a, b) => b - a))
  })
})

describe('2.17, 4.17: alert deliveries', () => {
  it('have the documented fields and types', async () => {
    const { body } = await ask(await startSandbox({ history: 100 }))
    expectTypes(body.data, {
      id: isWhole,
      kind: isText,
      symbol: isTextOrNull,
      slug: isTextOrNull,
      payload: isListOfText,
      headline: isText,
      url: isText,
      why: isTextOrNull,
      ruleIds: isListOfText,
      firedAt: isText,
      notifiedAt: isTextOrNull,
      channels: isListOfText,
      isRead: isFlag,
    })
  })

  it('are listed newest first, over all pages', async () => {
    const sandbox = await startSandbox({ history: 150, ids: 'shuffled' })
    const [first, second] = [await ask(sandbox), await ask(sandbox, `${deliveries}?page=2`)]
    const times = [...first.body.data, ...second.body.data].map(({ firedAt }) => Date.parse(String(firedAt)))
    expect(times).toHaveLength(150)
    expect(times).toEqual(times.toSorted((a, b) => b - a))
  })

  it('show an alert as soon as it fired, at the head', async () => {
    const sandbox = await startSandbox({ history: 3 })
    const row = sandbox.fire({ headline: 'فولاد از ۵٬۲۰۰ گذشت' })
    const { body } = await ask(sandbox)
    expect(body.data[0]).toEqual(row)
    expect(body.meta['total']).toBe(4)
  })

  it('come from the rules that the account has', async () => {
    const sandbox = await startSandbox({ history: 100 })
    const known = new Map((await ask(sandbox, rules)).body.data.map((rule) => [String(rule['id']), rule]))
    for (const { ruleIds, kind, symbol } of sandbox.rows) {
      expect(ruleIds.length).toBeGreaterThan(0)
      const rule = known.get(ruleIds[0] ?? '')
      expect(rule?.['kind']).toBe(kind)
      if (rule?.['symbol'] !== null) expect(rule?.['symbol']).toBe(symbol)
    }
  })
})

describe('5: authentication', () => {
  it.each<[string, string | null]>([
    ['no token', null],
    ['an empty token', 'Bearer '],
    ['another scheme', `Basic ${sandboxToken}`],
    ['a bare token', sandboxToken],
    ['an unknown token', 'Bearer somebody-else'],
    ['a longer token', `Bearer ${sandboxToken}x`],
  ])('%s gets 401 unauthenticated, on every path', async (_what, authorization) => {
    const sandbox = await startSandbox()
    for (const path of [...both, '/api/v1/nothing']) {
      const { status, body } = await ask(sandbox, path, { authorization })
      expect([status, body.error.code]).toEqual([401, 'unauthenticated'])
    }
  })

  it.each(['expired', 'revoked', 'other_integration'] as const)(
    'a token that is %s gets 401',
    async (state) => {
      const sandbox = await startSandbox({ tokens: [{ value: sandboxToken, state }] })
      expect((await ask(sandbox)).body.error.code).toBe('unauthenticated')
    },
  )

  it.each([[['api:filings']], [[]], [['api:*']], [['api:alert']], [['API:ALERTS']]])(
    'a token with the scopes %j gets 403 scope_required: the comparison is literal',
    async (scopes) => {
      const sandbox = await startSandbox({ tokens: [{ value: sandboxToken, scopes }] })
      for (const path of both) {
        const { status, body } = await ask(sandbox, path)
        expect([status, body.error.code]).toEqual([403, 'scope_required'])
      }
    },
  )

  it('the one scope is enough', async () => {
    const sandbox = await startSandbox({ tokens: [{ value: sandboxToken, scopes: ['api:alerts'] }] })
    expect((await ask(sandbox)).status).toBe(200)
  })

  it.each([[['api:alerts']], [[]]])(
    'without a plan, 403 plan_required, with the scopes %j',
    async (scopes) => {
      const sandbox = await startSandbox({ hasPlan: false, tokens: [{ value: sandboxToken, scopes }] })
      const { status, body } = await ask(sandbox)
      expect([status, body.error.code]).toEqual([403, 'plan_required'])
    },
  )
})

describe('7: errors', () => {
  it('have a code, a message, and detail only where it says something', async () => {
    const { headers, body } = await ask(await startSandbox(), deliveries, { authorization: null })
    expect(headers.get('content-type')).toBe('application/json')
    expect(body).toEqual({ error: { code: 'unauthenticated', message: expect.any(String) } })
  })

  it.each(['0', '-1', 'abc', '1.5', '', '1e2', '9007199254740993', ' 1'])(
    'page=%s is an invalid request that names page',
    async (page) => {
      const sandbox = await startSandbox({ history: 3 })
      for (const path of both) {
        const { status, body } = await ask(sandbox, `${path}?page=${encodeURIComponent(page)}`)
        expect([status, body.error.code, body.error.detail]).toEqual([
          422,
          'invalid_request',
          { fields: ['page'] },
        ])
      }
    },
  )

  it.each([
    ['instruments/foolad/prices?days[]=30', 'days'],
    ['instruments/foolad/prices?days[a]=30', 'days'],
    ['filings?symbol[]=foolad', 'symbol'],
    ['instruments?filter[market][]=gold', 'filter[market]'],
    ['alerts?page[]=2', 'page'],
  ])('%s is an invalid request: a list in the place of one value', async (path, field) => {
    const { status, body } = await ask(await startSandbox(), `/api/v1/${path}`)
    expect([status, body.error?.detail]).toEqual([422, { fields: [field] }])
  })

  it.each([
    '/',
    '/api',
    '/api/v1',
    '/api/v1/alerts/7',
    '/api/v1/alerts/deliveries/7',
    '/api/v2/alerts',
    '/api/v1/__proto__',
  ])('%s is not found', async (path) => {
    const { status, body } = await ask(await startSandbox(), path)
    expect([status, body.error.code]).toEqual([404, 'not_found'])
  })

  it('a server fault is 500 server_error', async () => {
    const sandbox = await startSandbox()
    sandbox.fault({ kind: 'status', status: 500 })
    const { status, body } = await ask(sandbox)
    expect([status, body.error.code]).toEqual([500, 'server_error'])
  })
})

describe('8: limits', () => {
  it('240 requests a minute, by default', async () => {
    const { sandbox } = await startWithClock({})
    for (let n = 0; n < limits.requestsPerMinute; n += 1) expect((await ask(sandbox)).status).toBe(200)
    expect((await ask(sandbox)).status).toBe(429)
  })

  it('the ceiling of a minute is 429 rate_limited with Retry-After alone', async () => {
    const { sandbox, advance } = await startWithClock({ requestsPerMinute: 2 })
    await ask(sandbox)
    advance(10_000)
    await ask(sandbox)
    const { status, headers, body } = await ask(sandbox)
    expect([status, body.error.code, headers.get('retry-after')]).toEqual([429, 'rate_limited', '50'])
    expect(body.error).not.toHaveProperty('detail')
    advance(50_000)
    expect((await ask(sandbox)).status).toBe(200)
    expect((await ask(sandbox)).headers.get('retry-after')).toBe('10')
  })

  it('the minute may be fixed: it ends on the minute', async () => {
    const { sandbox, advance } = await startWithClock({ requestsPerMinute: 1, minuteWindow: 'fixed' })
    advance(45_000)
    await ask(sandbox)
    expect((await ask(sandbox)).headers.get('retry-after')).toBe('15')
    advance(15_000)
    expect((await ask(sandbox)).status).toBe(200)
  })

  it('the ceiling is the account’s, whichever token and endpoint', async () => {
    const { sandbox } = await startWithClock({
      requestsPerMinute: 2,
      tokens: [{ value: 'one' }, { value: 'two' }],
    })
    await ask(sandbox, deliveries, { authorization: 'Bearer one' })
    await ask(sandbox, rules, { authorization: 'Bearer two' })
    expect((await ask(sandbox, deliveries, { authorization: 'Bearer two' })).status).toBe(429)
  })

  it('the day’s budget is 429 rate_limited with Retry-After and detail.retryAfter, until midnight in Tehran', async () => {
    // 20:00 UTC is 23:30 in Tehran.
    const { sandbox, advance } = await startWithClock({ unitsPerDay: 2 }, Date.UTC(2026, 4, 3, 20, 0, 0))
    await ask(sandbox)
    await ask(sandbox, rules)
    const { status, headers, body } = await ask(sandbox)
    expect([status, body.error.code, headers.get('retry-after')]).toEqual([429, 'rate_limited', '1800'])
    expect(body.error.detail).toEqual({ retryAfter: 1_800 })
    advance(1_799_000)
    expect((await ask(sandbox)).status).toBe(429)
    advance(1_000)
    expect((await ask(sandbox)).status).toBe(200)
    expect(sandbox.unitsUsed).toBe(1)
  })

  it('the day may end elsewhere', async () => {
    const { sandbox } = await startWithClock({ unitsPerDay: 0, resets: 'UTC' })
    expect((await ask(sandbox)).body.error.detail).toEqual({ retryAfter: 15 * 3_600 })
    const hourly = await startWithClock({ unitsPerDay: 0, resets: (nowMs) => nowMs + 3_600_000 })
    expect((await ask(hourly.sandbox)).body.error.detail).toEqual({ retryAfter: 3_600 })
  })

  it('a call costs one unit whatever comes of it, but nothing when it is 401, 404 or 429', async () => {
    const { sandbox } = await startWithClock({ unitsPerDay: 6 })
    const cost = async (path?: string, options?: Parameters<typeof ask>[2]) => {
      const before = sandbox.unitsUsed
      await ask(sandbox, path, options)
      return sandbox.unitsUsed - before
    }
    expect(await cost()).toBe(1)
    expect(await cost(rules)).toBe(1)
    expect(await cost(`${deliveries}?page=0`)).toBe(1)
    sandbox.fault({ kind: 'status', status: 500 })
    expect(await cost()).toBe(1)
    expect(await cost(deliveries, { authorization: null })).toBe(0)
    expect(await cost('/api/v1/nothing')).toBe(0)
    expect([await cost(), await cost()]).toEqual([1, 1])
    expect(await cost()).toBe(0)
    expect(sandbox.requests.map(({ status, units }) => [status, units])).toEqual([
      [200, 1],
      [200, 1],
      [422, 1],
      [500, 1],
      [401, 0],
      [404, 0],
      [200, 1],
      [200, 1],
      [429, 0],
    ])
  })
})

function expectTypes(rows: Record<string, unknown>[], types: Record<string, (value: unknown) => boolean>) {
  expect(rows.length).toBeGreaterThan(20)
  for (const row of rows) {
    expect(Object.keys(row).sort()).toEqual(Object.keys(types).sort())
    const wrong = Object.entries(types).filter(([name, holds]) => !holds(row[name]))
    expect(wrong.map(([name]) => [name, row[name]])).toEqual([])
  }
}
