import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FeedError } from '../../src/feed/errors.ts'
import { documented, errors } from '../conformance/document.ts'
import { connect } from '../support/sandbox.ts'

interface Seen {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly type: string | undefined
  readonly body: string
}

/** An API that answers with what `reply` makes of the call. */
async function startApi(reply: (request: IncomingMessage) => { status?: number; body: unknown }) {
  const seen: Seen[] = []
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request
    seen.push({ method, url, type: headers['content-type'], body: await text(request) })
    const { status = 200, body } = reply(request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const client = connect({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  return { client, seen }
}

const pricesPath = '/api/v1/instruments/{instrument}/prices'

async function failureOf(call: Promise<unknown>): Promise<FeedError> {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (thrown instanceof FeedError) return thrown
  throw new Error(`expected a FeedError, got ${String(thrown)}`)
}

describe('a call of any endpoint', () => {
  it('brings the record with every field, those that are not documented too', async () => {
    const body = { data: { unit: 'rial', points: [{ close: 5_230 }] }, meta: { asOf: 'today' } }
    const { client, seen } = await startApi(() => ({ body }))
    expect(await client.ask(pricesPath, { instrument: 'فولاد', query: { days: 30 } })).toEqual(body)
    const url = '/api/v1/instruments/%D9%81%D9%88%D9%84%D8%A7%D8%AF/prices?days=30'
    expect(seen).toEqual([{ method: 'GET', url, type: undefined, body: '' }])
  })

  it('posts the body of a screener run as JSON', async () => {
    const body = { data: { matched: 1, shown: 1, rowCap: null, rows: [] } }
    const { client, seen } = await startApi(() => ({ body }))
    const run = { screenId: 31, sortBy: 'pe' }
    expect((await client.ask('/api/v1/screener/run', { body: run })).data.rowCap).toBe(null)
    const sent = { type: 'application/json', body: JSON.stringify(run) }
    expect(seen).toEqual([{ method: 'POST', url: '/api/v1/screener/run', ...sent }])
  })

  it('is not made where a parameter is wrong', async () => {
    const { client, seen } = await startApi(() => ({ body: {} }))
    const error = await failureOf(client.ask(pricesPath, { instrument: 'foolad', query: { days: 400 } }))
    expect(error).toMatchObject({ code: 'invalid_request', status: undefined, fields: ['days'] })
    expect(error.message).toBe(
      `nothing was sent to ${pricesPath}: days: expected a whole number from 20 to 365, found 400`,
    )
    expect(seen).toEqual([])
  })

  it('is refused where the answer is not the documented one, with the place', async () => {
    const { client } = await startApi(() => ({ body: { data: { unit: 10 } } }))
    const error = await failureOf(client.ask(pricesPath, { instrument: 7 }))
    expect(error).toMatchObject({ code: 'bad_shape', status: 200 })
    expect(error.message).toContain('data.unit: expected string, found 10')
  })

  it.each(documented)('names the scope of $path where the token lacks it', async ({ path, scope }) => {
    const { client } = await startApi(() => ({
      status: 403,
      body: { error: { code: 'scope_required', message: 'No.' } },
    }))
    const query = path === '/api/v1/macro/series' ? { 'keys[]': ['usd'] } : {}
    const instrument = path.includes('{') ? { instrument: 'foolad' } : {}
    const error = await failureOf(client.ask(path as typeof pricesPath, { ...instrument, query } as never))
    expect(error).toMatchObject({ code: 'scope_required', status: 403 })
    expect(error.message).toContain(`the token lacks the scope ${scope},`)
  })

  it.each(errors)('ends in $code where the API says so', async ({ code, status }) => {
    const detail = { fields: ['days'], retryAfter: 7 }
    const { client } = await startApi(() => ({ status, body: { error: { code, message: 'No.', detail } } }))
    const error = await failureOf(client.ask(pricesPath, { instrument: 7 }))
    expect(error).toMatchObject({ name: 'FeedError', code, status })
    expect(error.fields).toEqual(code === 'invalid_request' ? ['days'] : undefined)
    expect(error.limit).toBe(code === 'rate_limited' ? 'budget' : undefined)
  })
})

describe('the pages of a list', () => {
  const three = (request: IncomingMessage) => {
    const page = Number(new URL(request.url ?? '', 'http://x').searchParams.get('page'))
    const rows = Array.from({ length: page === 3 ? 20 : 100 }, (_, index) => ({ id: page * 1_000 + index }))
    const odd = page === 2 ? [...rows.slice(0, 99), 'no row'] : rows
    return { body: { data: odd, meta: { page, perPage: 100, total: 220, lastPage: 3 } } }
  }

  it('come one by one, each paid for before it is asked for', async () => {
    const { client, seen } = await startApi(three)
    const paid: number[] = []
    const pay = async (page: number) => {
      expect(seen).toHaveLength(paid.length)
      paid.push(page)
    }
    const pages = []
    for await (const page of client.pages('/api/v1/board', { query: { group: 'equity' } }, { pay }))
      pages.push(page)
    expect(paid).toEqual([1, 2, 3])
    expect(seen.map(({ url }) => url)).toEqual(
      [1, 2, 3].map((page) => `/api/v1/board?group=equity&page=${page}`),
    )
    expect(pages.map(({ rows, skipped }) => [rows.length, skipped])).toEqual([
      [100, []],
      [99, ['body: expected object, found "no row"']],
      [20, []],
    ])
  })

  it('end where nobody takes more, where they cannot be paid for, and at a limit', async () => {
    const { client, seen } = await startApi(three)
    for await (const page of client.pages('/api/v1/board', {})) if (page.page === 1) break
    expect(seen).toHaveLength(1)
    const pay = async (page: number) => {
      if (page === 2) throw new Error('no unit is left')
    }
    const list = client.pages('/api/v1/board', {}, { pay })
    expect((await list.next()).value?.page).toBe(1)
    await expect(list.next()).rejects.toThrow('no unit is left')
    expect(seen).toHaveLength(2)
    let count = 0
    for await (const _page of client.pages('/api/v1/filings', {}, { pagesMax: 2 })) count += 1
    expect(count).toBe(2)
  })
})
