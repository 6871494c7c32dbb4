import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Unread } from './unread.ts'

/**
 * Two limits of what comes in. The returned function is to be called for every request.
 *
 * A connection takes some thousand bytes here, also one on which no whole request comes. So of more than are kept, that is closed which
 * has been open for the longest and asks for nothing.
 *
 * The process reads in one turn what has come on all connections. Thousands of requests may come in one packet, so hundreds of packets
 * would keep it from polling and sending for half a minute, and fill its memory, whatever these requests are answered. So after some
 * in a turn nothing more is read until the next one. The system reports first what was read last: whoever always sends would be the
 * only one who is ever read. So who has asked in such a turn is read again when there was less in one, those first who ask for little.
 */
export function limitConnections(
  server: Server,
  { isAsking }: Pick<Unread, 'isAsking'>,
): (socket: Socket) => void {
  /** In the order in which they were opened. */
  const open = new Set<Socket>()
  /** Paused here, and not since what they send cannot be taken: that must stay so. */
  const held = new Set<Socket>()
  /** Those to be held, with how much they asked for in the turn in which they were read last. */
  const resting = new Map<Socket, number>()
  const close = (socket: Socket) => {
    for (const each of [open, held, resting]) each.delete(socket)
    socket.destroy()
  }
  const hold = (socket: Socket) => {
    if (socket.isPaused()) return
    held.add(socket)
    socket.pause()
  }
  const release = (socket: Socket) => {
    if (held.delete(socket)) socket.resume()
  }
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => close(socket))
    // Node.js resumes it after each answer.
    socket.on('resume', () => {
      if (resting.has(socket) || inTurn >= inTurnMax) hold(socket)
    })
    if (open.size <= openMax) return
    for (const each of open) if (!isAsking(each)) return close(each)
  })

  let inTurn = 0
  let asked = new Map<Socket, number>()
  let isPlanned = false
  const planEnd = () => {
    if (!isPlanned) setImmediate(turnEnds)
    isPlanned = true
  }
  const turnEnds = () => {
    isPlanned = false
    if (inTurn >= inTurnMax) {
      for (const [socket, count] of asked) resting.set(socket, count)
      for (const socket of held) if (!resting.has(socket)) release(socket)
    } else {
      let sum = 0
      for (const [socket, count] of [...resting].toSorted(([, one], [, other]) => one - other)) {
        resting.delete(socket)
        release(socket)
        sum += count
        if (sum >= inTurnMax) break
      }
    }
    inTurn = 0
    asked = new Map()
    if (resting.size > 0) planEnd()
  }
  return (socket) => {
    planEnd()
    inTurn += 1
    asked.set(socket, (asked.get(socket) ?? 0) + 1)
    if (inTurn === inTurnMax) for (const each of open) hold(each)
  }
}

/** Each takes 10 KB. */
const openMax = 2_000
/** Some dozens of milliseconds. */
const inTurnMax = 500
