import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sharedNowMs } from './process.ts'
import { rowOf } from './stored.ts'

/** The feed of the API, newest first, page by page, without limits; shows what it is given. */
export interface PagedFeed {
  readonly url: string
  /** Shows so many more from now on. */
  add(count: number): void
  /** Called before each answer of the first page. */
  onHead: () => void
  /** By id: when the first page that shows it was answered, by `sharedNowMs`. */
  readonly answeredMs: ReadonlyMap<number, number>
  stop(): void
}

const pageRows = 100

export async function startPagedFeed(): Promise<PagedFeed> {
  const rows: ReturnType<typeof rowOf>[] = []
  const answeredMs = new Map<number, number>()
  const server = createServer((request, response) => {
    const page = Number(new URL(request.url ?? '', 'http://feed').searchParams.get('page') ?? 1)
    if (page === 1) feed.onHead()
    const end = Math.max(0, rows.length - (page - 1) * pageRows)
    const data = rows.slice(Math.max(0, end - pageRows), end).reverse()
    const lastPage = Math.max(1, Math.ceil(rows.length / pageRows))
    const meta = { page, perPage: pageRows, total: rows.length, lastPage }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data, meta }))
    const nowMs = sharedNowMs()
    for (const { id } of data) if (!answeredMs.has(id)) answeredMs.set(id, nowMs)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const feed: PagedFeed = {
    ...{ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, answeredMs },
    add(count) {
      for (let left = count; left > 0; left -= 1) rows.push(rowOf(rows.length + 1))
    },
    onHead() {},
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
  return feed
}
