import { createServer, type IncomingMessage } from 'node:http'
import { sharedNowMs } from './process.ts'

/**
 * Answers every POST with 204, and on request says when the n-th of them was answered. Started as a process of its own by those
 * who count sends. Reads bodies only for those who ask for what arrived: it shares the cores with what it measures.
 */
export interface Order {
  /** Requests until the end. */
  readonly count: number
  /** Says `half` when so much has arrived, and keeps which alerts did. */
  readonly isKill?: boolean
  /** Answers 503 until it is told to take. */
  readonly refuses?: boolean
  /** Keeps when each request came. */
  readonly isTimed?: boolean
}

/** A request: for which sink, of which alert, and when its headers had come, by `sharedNowMs`. */
export type Timed = readonly [path: string, id: string, atMs: number]

/** What arrived since the order. */
export interface Arrived {
  readonly different: number
  readonly requests: number
}

let times: number[] = []
let wanted = 0
let arrived: Set<string> | undefined
let timed: Timed[] | undefined
let refuses = false
const server = createServer({ keepAlive: true, keepAliveTimeout: 30_000 }, (request, response) => {
  const chunks: Buffer[] = []
  const atMs = timed === undefined ? 0 : sharedNowMs()
  if (arrived === undefined && timed === undefined) request.resume()
  else request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    if (refuses) return void response.writeHead(503).end()
    response.writeHead(204).end()
    times.push(performance.now())
    arrived?.add(`${request.url} ${idOf(request, chunks)}`)
    timed?.push([request.url ?? '', idOf(request, chunks), atMs])
    if (times.length === Math.floor(wanted / 10)) process.send?.({ warm: true })
    if (arrived !== undefined && times.length === Math.floor(wanted / 2)) process.send?.({ half: true })
    if (times.length === wanted) tell()
  })
})

process.on('message', (message: Order | { tell: 'arrived' | 'timed' } | { take: true }) => {
  if ('tell' in message) {
    if (message.tell === 'timed') process.send?.({ timed })
    else
      process.send?.({ arrived: { different: arrived?.size ?? 0, requests: times.length } satisfies Arrived })
    return
  }
  if ('take' in message) {
    refuses = false
    return
  }
  times = []
  wanted = message.count
  refuses = message.refuses === true
  arrived = message.isKill === true ? new Set() : undefined
  timed = message.isTimed === true ? [] : undefined
  process.send?.({ ready: true })
})

/** Over the last nine tenths: what has to start and to connect first is left out. */
function tell(): void {
  const first = Math.floor(wanted / 10)
  const seconds = ((times.at(-1) ?? 0) - (times[first] ?? 0)) / 1_000
  process.send?.({ perSecond: (wanted - first - 1) / seconds, sends: wanted - first })
}

/** Alertmanager has its alert in the body; the others' are `SOURCE.ID`. */
function idOf(request: IncomingMessage, chunks: readonly Buffer[]): string {
  const id = request.headers['webhook-id']
  if (id !== undefined) return String(id)
  const { alerts } = JSON.parse(Buffer.concat(chunks).toString()) as { alerts: { labels: { id: string } }[] }
  return alerts.map(({ labels }) => labels.id).join(' ')
}

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as { port: number }).port }))
