import { promises as dns } from 'node:dns'
import { createServer } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** The addresses of a name, at least one, in the order in which they are to be tried. */
type Addresses = (name: string) => Promise<readonly { readonly address: string }[]>

/**
 * Listens, and returns the address as people write it. `localhost` may have two addresses. For the second, the library would make a
 * server of its own, without the limits and answers of the first. So what comes there is given to the first. Where the second cannot be
 * opened, the first is enough.
 */
export async function listenAt(
  app: FastifyInstance,
  { host, port }: { readonly host: string; readonly port: number },
  addressesOf: Addresses = (name) => dns.lookup(name, { all: true }),
): Promise<string> {
  if (host !== 'localhost') return app.listen({ host, port })
  const [first = '127.0.0.1', ...others] = new Set((await addressesOf(host)).map(({ address }) => address))
  const doors = others.map((address) => ({
    address,
    // As the server of the library has it.
    door: createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      app.server.emit('connection', socket),
    ),
  }))
  app.addHook('preClose', async () => doors.forEach(({ door }) => void door.close()))
  const base = await app.listen({ host: first, port })
  const opened = Number(new URL(base).port)
  for (const { address, door } of doors)
    await new Promise((resolve) => {
      door.on('error', resolve).listen({ host: address, port: opened }, () => resolve(undefined))
    })
  return base
}
