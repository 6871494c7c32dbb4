import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Unread } from './unread.ts'

/**
 * Two limits of what comes in. The returned function is to be called for every request.
 *
 * The process reads in one turn what has come on all connections. Thousands of requests may come in one packet, so hundreds of packets
 * would keep it from polling and sending for half a minute, and fill its memory, whatever these requests are answered. So after some
 * in a turn nothing more is read until the next one.
 *
 * A connection takes some thousand bytes here, also one on which no whole request comes. So of more than are kept, that is closed which
 * has been open for the longest and asks for nothing.
 */
export function limitConnections(
  { server }: Pick<FastifyInstance, 'server'>,
  { isAsking }: Pick<Unread, 'isAsking'>,
): () => void {
  /** In the order in which they were opened. */
  const open = new Set<Socket>()
  const close = (socket: Socket) => {
    open.delete(socket)
    socket.destroy()
  }
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    if (open.size <= openMax) return
    for (const each of open) if (!isAsking(each)) return close(each)
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

/** Each takes 10 KB. */
const openMax = 2_000
/** Some dozens of milliseconds. */
const inTurnMax = 500
