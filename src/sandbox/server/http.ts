import type { IncomingMessage, Server } from 'node:http'
import { errorCode, toError, UserError } from '../../lib/errors.ts'

export const loopback = '127.0.0.1'

/** Listens on loopback and returns the port; throws a UserError where the port cannot be used. */
export function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const taken =
        errorCode(error) === 'EADDRINUSE' ? 'something else listens there' : toError(error).message
      reject(new UserError(`cannot listen on ${loopback}:${port}: ${taken}`))
    })
    server.listen(port, loopback, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
}

/** Of one request. */
export const bodyBytesMax = 1_048_576

/** The body of a request as text; undefined where it is too long: read to its end, so that an answer can be sent all the same. */
export async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= bodyBytesMax) chunks.push(chunk)
  }
  return bytes <= bodyBytesMax ? Buffer.concat(chunks).toString('utf8') : undefined
}

/** Stops the server and ends every connection, also those that wait for an answer. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
