import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * An answer is kept until it is taken, and some clients never take theirs: a machine that sleeps, or one that wants to fill the memory.
 * So of all answers only so much is kept. Beyond it those are disconnected who have not taken theirs for the longest, never the one
 * that is being answered: who reads is done before that.
 */
export function keepFewUnread() {
  /** In the order in which they began to have something. */
  const bytesOf = new Map<Socket, number>()
  const known = new WeakSet<Socket>()
  let sum = 0
  const change = (socket: Socket, by: number) => {
    const before = bytesOf.get(socket)
    // Its connection was lost meanwhile.
    if (before === undefined && by <= 0) return
    const now = (before ?? 0) + by
    if (now > 0) bytesOf.set(socket, now)
    else bytesOf.delete(socket)
    sum += by
  }
  const forget = (socket: Socket) => change(socket, -(bytesOf.get(socket) ?? 0))

  /** For an answer that begins: to be called with the bytes of each part of it. */
  return ({ raw: { socket } }: FastifyRequest, { raw }: FastifyReply) => {
    // An answer behind others on its connection is not told when that is lost.
    if (!known.has(socket)) socket.once('close', () => forget(socket))
    known.add(socket)
    let bytes = 0
    raw.once('close', () => change(socket, -bytes))
    return (more: number) => {
      if (raw.destroyed || socket.destroyed) return
      bytes += more
      change(socket, more)
      for (const other of bytesOf.keys()) {
        if (sum <= unreadBytesMax) break
        if (other === socket) continue
        other.destroy()
        forget(other)
      }
    }
  }
}

/** Some dozens of the longest lists. Of each connection the system keeps some megabytes besides. */
const unreadBytesMax = 32 * 1_024 * 1_024
