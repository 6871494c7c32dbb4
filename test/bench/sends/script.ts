import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { rowOf } from './stored.ts'
import { sinks } from './work.ts'

/**
 * What somebody could write in an hour instead of a bridge: it asks the feed for its newest page, reads on down to the last id it knows,
 * and posts a page of alerts at a time to each sink, with one HMAC. It remembers only that id, in a variable, and skips what the feed
 * shows at its start. It neither retries nor counts.
 */
const [feed = '', receiver = '', everyMs = '1000'] = process.argv.slice(2)
const atOnce = 100
type Row = ReturnType<typeof rowOf>
let last: number | undefined

for (;;) {
  const news = await readNews()
  for (let from = 0; from < news.length; from += atOnce)
    await Promise.all(news.slice(from, from + atOnce).flatMap((row) => sinks.map((sink) => post(row, sink))))
  await sleep(Number(everyMs))
}

/** Newest first; nothing the first time. */
async function readNews(): Promise<Row[]> {
  const news: Row[] = []
  for (let page = 1; ; page += 1) {
    const response = await fetch(`${feed}/api/v1/alerts/deliveries?page=${page}`)
    const { data, meta } = (await response.json()) as { data: Row[]; meta: { lastPage: number } }
    last ??= data[0]?.id ?? 0
    const known = last
    const fresh = data.filter(({ id }) => id > known)
    news.push(...fresh)
    if (fresh.length < data.length || page >= meta.lastPage) break
  }
  last = news[0]?.id ?? last
  return news
}

async function post(row: Row, sink: string): Promise<void> {
  const id = `main.${row.id}`
  const body = JSON.stringify({
    type: 'alert.fired',
    timestamp: row.firedAt,
    data: { source: 'main', delivery: row },
  })
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const signature = createHmac('sha256', 'a secret of thirty-two bytes, ok')
    .update(`${id}.${timestamp}.${body}`)
    .digest('base64')
  try {
    const response = await fetch(`${receiver}/${sink}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${signature}`,
      },
      body,
    })
    await response.arrayBuffer()
  } catch {
    // Lost.
  }
}
