import { createServer } from 'node:net'

/** A TCP port that is free now, below the ephemeral range, where an outgoing connection could take it first. */
export async function freePort(): Promise<number> {
  const port = 20_000 + Math.floor(Math.random() * 12_000)
  const server = createServer()
  const free = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  await new Promise((resolve) => server.close(resolve))
  return free ? port : freePort()
}

/** The flags of a redis-server that listens on loopback. */
export function tcp(port: number): string[] {
  return ['--port', String(port), '--bind', '127.0.0.1']
}
