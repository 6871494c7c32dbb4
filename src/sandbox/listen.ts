import type { Server } from 'node:http'
import { errorCode, toError, UserError } from '../lib/errors.ts'

/** Listens and returns the port; throws a UserError where the port cannot be used. */
export function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const taken =
        errorCode(error) === 'EADDRINUSE' ? 'something else listens there' : toError(error).message
      reject(new UserError(`cannot listen on ${host}:${port}: ${taken}`))
    })
    server.listen(port, host, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
}

/** Stops the server and ends every connection, also those that wait for an answer. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
