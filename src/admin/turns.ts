import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * The process reads in one turn what has come on all connections. Thousands of requests may come in one packet, so hundreds of packets
 * would keep it from polling and sending for half a minute, and fill its memory, whatever these requests are answered. So after some
 * in a turn nothing more is read until the next one. To be called for every request.
 */
export function readFewInATurn({ server }: Pick<FastifyInstance, 'server'>): () => void {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  let inTurn = 0
  const next = () => {
    if (inTurn >= inTurnMax) for (const socket of open) socket.resume()
    inTurn = 0
  }
  return () => {
    inTurn += 1
    if (inTurn === 1) setImmediate(next)
    if (inTurn === inTurnMax) for (const socket of open) socket.pause()
  }
}

/** Some dozens of milliseconds. */
const inTurnMax = 500
