import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { type Arrivals, createArrivals } from './arrivals.ts'
import { until } from './until.ts'

/** A request as it came over the wire. */
export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The raw bytes as UTF-8. */
  readonly body: string
  readonly atMs: number
}

/** How a receiver answers one request. */
export type ReceiverAnswer =
  | {
      readonly kind?: 'answer'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
      /** Thinks about it first. */
      readonly afterMs?: number
      /** Waits for this first. */
      readonly after?: Promise<unknown>
    }
  /** Takes the request and never says a word. */
  | { readonly kind: 'hang' }
  /** Headers, then a byte now and then, for ever. */
  | { readonly kind: 'drip'; readonly status: number; readonly everyMs: number }
  /** Headers, then megabytes without end. */
  | { readonly kind: 'flood'; readonly status: number }
  /** Closes the connection instead of answering. */
  | { readonly kind: 'reset' }
  /** Promises a body and breaks off within it. */
  | { readonly kind: 'broken'; readonly status: number }
  /** Bytes that are no HTTP. */
  | { readonly kind: 'garbage' }

export interface WebhookReceiver {
  readonly url: string
  readonly port: number
  readonly requests: readonly ReceivedRequest[]
  /** From the next request on; a function decides for each request. */
  answerWith(answer: ReceiverAnswer | ((request: ReceivedRequest) => ReceiverAnswer)): void
  readonly received: Arrivals<ReceivedRequest>['received']
  /** Connections accepted so far, also those that never sent a request. */
  connections(): number
  /** Whoever was connected has gone, and what they had sent before has come. */
  untilAlone(): Promise<void>
  stop(): Promise<void>
}

export interface ReceiverOptions {
  readonly answer?: ReceiverAnswer
  readonly path?: string
  readonly host?: string
  /** A free one when left out. */
  readonly port?: number
  /** PEM: speaks HTTPS. */
  readonly tls?: { readonly key: string; readonly cert: string }
}

export async function startWebhookReceiver(options: ReceiverOptions = {}): Promise<WebhookReceiver> {
  const { host = '127.0.0.1', path = '/hook', tls } = options
  const requests = createArrivals<ReceivedRequest>('requests')
  let answer: ReceiverAnswer | ((request: ReceivedRequest) => ReceiverAnswer) = options.answer ?? {
    status: 204,
  }
  let connections = 0

  const server = tls ? createTlsServer(tls) : createServer()
  server.on('connection', () => {
    connections += 1
  })
  server.on('request', (incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('error', () => {})
    incoming.on('end', () => {
      const request: ReceivedRequest = {
        method: incoming.method ?? '',
        path: incoming.url ?? '',
        headers: incoming.headers,
        body: Buffer.concat(chunks).toString('utf8'),
        atMs: Date.now(),
      }
      requests.add(request)
      give(response, typeof answer === 'function' ? answer(request) : answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, host, resolve))
  const { port } = server.address() as AddressInfo
  const open = promisify(server.getConnections.bind(server)) as () => Promise<number>

  return {
    url: `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`,
    port,
    requests: requests.all,
    answerWith(next) {
      answer = next
    },
    received: requests.received,
    connections: () => connections,
    untilAlone: () => until('no connection is open', async () => (await open()) === 0),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Answers one request so. */
export function give(response: ServerResponse, answer: ReceiverAnswer): void {
  response.on('error', () => {})
  switch (answer.kind) {
    case 'hang':
      return
    case 'reset':
      response.socket?.resetAndDestroy()
      return
    case 'garbage':
      response.socket?.end('this is no HTTP\r\n\r\n')
      return
    case 'broken':
      response.writeHead(answer.status, { 'content-length': '1000' })
      response.write('half of it')
      setImmediate(() => response.socket?.destroy())
      return
    case 'drip':
      drip(response, answer.status, answer.everyMs)
      return
    case 'flood':
      flood(response, answer.status)
      return
    default: {
      const say = () => response.writeHead(answer.status, answer.headers).end(answer.body ?? '')
      if (answer.after !== undefined) void answer.after.then(say)
      else if (answer.afterMs === undefined) say()
      else setTimeout(say, answer.afterMs)
    }
  }
}

function drip(response: ServerResponse, status: number, everyMs: number): void {
  response.writeHead(status)
  const timer = setInterval(() => response.write('.'), everyMs)
  response.on('close', () => clearInterval(timer))
}

function flood(response: ServerResponse, status: number): void {
  const chunk = Buffer.alloc(65_536, 'x')
  response.writeHead(status)
  const pour = () => {
    while (!response.destroyed && response.write(chunk));
  }
  response.on('drain', pour)
  pour()
}
