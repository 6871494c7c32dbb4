import { createServer, request as forward, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'

/** A forward proxy that notes what it is asked: method, address, login. */
export interface ForwardProxy {
  /** `http://127.0.0.1:…`, or https where it speaks TLS. */
  readonly url: string
  readonly seen: readonly string[]
  /** From the next request on: 407 for requests and tunnels; `say` writes the body from the login that came. */
  refuse(say?: (login: string) => string): void
  stop(): Promise<void>
}

export async function startProxy(
  options: { host?: string; tls?: { key: string; cert: string } } = {},
): Promise<ForwardProxy> {
  const { host = '127.0.0.1' } = options
  const seen: string[] = []
  let refusal: ((login: string) => string) | undefined
  const note = ({ method, url, headers }: IncomingMessage) => {
    const login = headers['proxy-authorization']
    seen.push(`${method} ${url} ${login}`)
    return refusal?.(login ?? '')
  }
  const server = options.tls ? createTlsServer(options.tls) : createServer()
  server.on('request', (incoming, response) => {
    const refused = note(incoming)
    if (refused !== undefined) {
      response.writeHead(407, { 'proxy-authenticate': 'Basic realm="proxy"' }).end(refused)
      return
    }
    const onward = forward(incoming.url ?? '', { method: incoming.method }, (answer) => {
      response.writeHead(answer.statusCode ?? 502)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    incoming.pipe(onward)
  })
  server.on('connect', (incoming, socket) => {
    const refused = note(incoming)
    socket.on('error', () => {})
    if (refused !== undefined) {
      const length = Buffer.byteLength(refused)
      socket.end(`HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: ${length}\r\n\r\n${refused}`)
      return
    }
    const onward = connect(Number(incoming.url?.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    onward.on('error', () => socket.destroy())
    socket.on('close', () => onward.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `${options.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`,
    seen,
    refuse(say = () => '') {
      refusal = say
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
