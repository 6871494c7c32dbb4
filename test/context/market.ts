import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from '../support/finished.ts'

/** An API over real HTTP with a market of any size, and one behaviour a path. It counts what each call costs. */
export interface Market {
  readonly url: string
  /** Path and query of every call, decoded. */
  readonly calls: readonly string[]
  units(): number
  /** The most calls that were answered at the same time. */
  atOnce(): number
  /** For paths that contain `part`, until changed; undefined: as documented. */
  behave(part: string, how: Behaviour | undefined): void
  /** One more, at this place of the board. */
  put(instrument: MarketInstrument, place: number): void
}

type Behaviour =
  | { readonly delayMs: number }
  | {
      readonly status: number
      readonly code: string
      readonly retryAfter?: string
      readonly detail?: Readonly<Record<string, unknown>>
    }
  | { readonly body: string }
  | { readonly hang: true }

interface MarketInstrument {
  readonly symbol: string
  readonly slug: string
}

const perPage = 100

export function instrumentsOf(count: number): MarketInstrument[] {
  return Array.from({ length: count }, (_, index) => ({
    symbol: `نماد${index + 1}ی`,
    slug: `stock-${index + 1}`,
  }))
}

export async function startMarket(size: number): Promise<Market> {
  const instruments = instrumentsOf(size)
  const calls: string[] = []
  const behaviours = new Map<string, Behaviour>()
  let [open, most] = [0, 0]
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://market')
    const path = decodeURIComponent(`${url.pathname}${url.search}`)
    calls.push(path)
    open += 1
    most = Math.max(most, open)
    response.once('close', () => {
      open -= 1
    })
    const how = [...behaviours].find(([part]) => path.includes(part))?.[1]
    if (how && 'hang' in how) return
    if (how && 'delayMs' in how) await new Promise((resolve) => setTimeout(resolve, how.delayMs))
    if (how && 'status' in how) {
      const headers = how.retryAfter === undefined ? {} : { 'retry-after': how.retryAfter }
      response.writeHead(how.status, { 'content-type': 'application/json', ...headers })
      const { code, detail } = how
      response.end(JSON.stringify({ error: { code, message: 'so declared', detail } }))
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(how && 'body' in how ? how.body : JSON.stringify(bodyOf(url)))
  }

  function bodyOf(url: URL): unknown {
    const page = Number(url.searchParams.get('page') ?? 1)
    const paged = (all: readonly unknown[]) => ({
      data: all.slice((page - 1) * perPage, page * perPage),
      meta: { page, perPage, total: all.length, lastPage: Math.max(1, Math.ceil(all.length / perPage)) },
    })
    const name = decodeURIComponent(url.pathname.split('/')[4] ?? '')
    if (url.pathname === '/api/v1/board') {
      const search = url.searchParams.get('search') ?? ''
      const rows = instruments.map(({ symbol, slug }, index) => {
        return { symbol, slug, last: 1_000 + index, change: 1.5, unit: 'rial' }
      })
      return paged(rows.filter(({ symbol }) => symbol.includes(search)))
    }
    if (url.pathname === '/api/v1/filings') {
      const wanted = url.searchParams.get('symbol')
      const letters = instruments.map(({ symbol, slug }) => ({
        symbol,
        slug,
        title: 'letter',
        periodMonths: 12,
      }))
      return paged(
        letters.filter(({ slug, symbol }) => wanted === null || wanted === slug || wanted === symbol),
      )
    }
    if (url.pathname === '/api/v1/macro/series')
      return { data: [{ key: url.searchParams.get('keys[]'), points: [{ date: '2026-11-21', value: 7 }] }] }
    if (url.pathname.endsWith('/prices')) {
      const { symbol, slug } = instruments.find((each) => name === each.slug || name === each.symbol) ?? {}
      return { data: { symbol, slug, unit: 'rial', points: [{ close: 990 }, { close: 1_000 }] } }
    }
    return { data: { seriesHash: 'abc', rsi: 75 } }
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    put: (instrument, place) => void instruments.splice(place, 0, instrument),
    atOnce: () => most,
    units: () => calls.reduce((sum, path) => sum + unitsOf(path), 0),
    behave(part, how) {
      if (how === undefined) behaviours.delete(part)
      else behaviours.set(part, how)
    },
  }
}

function unitsOf(path: string): number {
  if (/\/(indicators|ownership)/.test(path)) return 5
  return /\/instruments\/[^?]/.test(path) ? 2 : 1
}
