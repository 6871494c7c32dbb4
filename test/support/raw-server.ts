import { type AddressInfo, createServer, type Socket } from 'node:net'

/** A TCP server that behaves as badly as it is told, whatever protocol is spoken to it. */
interface RawServer {
  readonly port: number
  /** Connections accepted so far. */
  connections(): number
  /** Those that are open now. */
  open(): number
  stop(): Promise<void>
}

export type RawBehaviour =
  /** Accepts and never says a word. */
  | { readonly kind: 'hang' }
  /** Closes with a reset at the first byte, or at once where the server speaks first. */
  | { readonly kind: 'reset'; readonly after: 'connect' | 'request' }
  /** Says this at the first byte, or at once, and then repeats `more` every so often (0: without a pause). */
  | {
      readonly kind: 'say'
      readonly after: 'connect' | 'request'
      readonly first: string
      readonly more?: { readonly text: string; readonly everyMs: number }
    }

export async function startRawServer(behaviour: RawBehaviour): Promise<RawServer> {
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.resume()
    if (behaviour.kind === 'hang') return
    if (behaviour.after === 'connect') act(socket, behaviour)
    else socket.once('data', () => act(socket, behaviour))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    open: () => sockets.size,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** A port of this machine where nobody listens. */
export async function unusedPort(): Promise<number> {
  const server = await startRawServer({ kind: 'hang' })
  await server.stop()
  return server.port
}

function act(socket: Socket, behaviour: Exclude<RawBehaviour, { kind: 'hang' }>): void {
  if (behaviour.kind === 'reset') {
    socket.resetAndDestroy()
    return
  }
  socket.write(behaviour.first)
  const { more } = behaviour
  if (more === undefined) socket.end()
  else if (more.everyMs > 0) {
    const timer = setInterval(() => socket.write(more.text), more.everyMs)
    socket.on('close', () => clearInterval(timer))
  } else {
    const pour = () => {
      while (!socket.destroyed && socket.write(more.text));
    }
    socket.on('drain', pour)
    pour()
  }
}
