import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Unread } from './unread.ts'

interface Connection {
  readonly socket: Socket
  /** Requests in the turn in which it was read last; undefined before. */
  asked?: number
  /** Grows from one that was opened, or could be read, to the next. */
  order: number
}

/**
 * Two limits of what comes in. The returned function is to be called for every request.
 *
 * A connection takes some thousand bytes here, also one on which no whole request comes. So of more than are kept, that is closed which
 * has been open for the longest and asks for nothing.
 *
 * The process reads in one turn what has come on all connections. Thousands of requests may come in one packet, so hundreds of packets
 * would keep it from polling and sending for half a minute, and fill its memory, whatever these requests are answered. So after some
 * in a turn nothing more is read until the next one. The system reports in an order of its own what can be read: who always sends could
 * be the only one who is ever read. So after such a turn all connections wait, and only some are read in each that follows: those that
 * asked for little when they were read last, of new ones the last that came; and in every second one those that have waited for the longest,
 * too, as hundreds may ask for little, or come anew, without end. Each of the two has a limit of its own, so that neither keeps the other from
 * being read. Node.js accepts one connection in a turn: so nobody is let through in those in which some come, up to a limit.
 */
export function limitConnections(
  server: Server,
  { isAsking }: Pick<Unread, 'isAsking'>,
): (socket: Socket) => void {
  /** In the order in which they were opened. */
  const open = new Map<Socket, Connection>()
  /** Those that are not to be read in this turn. */
  const waiting = new Set<Connection>()
  /** Those that had waited for the longest, until each could be read: the next ones only then, since they may be reported first. */
  let patient = new Set<Connection>()
  /** Paused here, and not since what they send cannot be taken: that must stay so. */
  const held = new Set<Socket>()
  let orders = 0
  const close = (connection: Connection) => {
    const { socket } = connection
    open.delete(socket)
    waiting.delete(connection)
    patient.delete(connection)
    held.delete(socket)
    socket.destroy()
  }
  const hold = (socket: Socket) => {
    if (socket.isPaused()) return
    held.add(socket)
    socket.pause()
  }
  server.on('connection', (socket: Socket) => {
    const connection = { socket, order: ++orders }
    open.set(socket, connection)
    if (waiting.size > 0) {
      isAccepting = true
      waiting.add(connection)
    }
    socket.once('close', () => close(connection))
    // Node.js does so where it begins to read, and after each answer.
    socket.on('resume', () => {
      if (waiting.has(connection) || inTurn[kindOf(connection)] >= inTurnMax) hold(socket)
    })
    if (open.size <= openMax) return
    for (const each of open.values()) if (!isAsking(each.socket)) return close(each)
  })

  const kindOf = (connection: Connection) => (patient.has(connection) ? 'patient' : 'others')
  const none = { patient: 0, others: 0 }
  let inTurn = { ...none }
  let asked = new Map<Connection, number>()
  let isPlanned = false
  let isForPatient = false
  let isAccepting = false
  let acceptingTurns = 0
  const planEnd = () => {
    if (!isPlanned) setImmediate(turnEnds)
    isPlanned = true
  }
  const turnEnds = () => {
    isPlanned = false
    for (const [connection, count] of asked) connection.asked = count
    for (const connection of new Set([...patient, ...asked.keys()])) {
      if (!asked.has(connection) && held.has(connection.socket)) continue
      connection.order = ++orders
      patient.delete(connection)
    }
    asked = new Map()
    if (Math.max(inTurn.patient, inTurn.others) >= inTurnMax)
      for (const each of open.values()) waiting.add(each)
    inTurn = { ...none }
    if (waiting.size > 0 && isAccepting && acceptingTurns < acceptingTurnsMax) {
      isAccepting = false
      acceptingTurns += 1
      return planEnd()
    }
    acceptingTurns = 0
    isForPatient = !isForPatient
    if (isForPatient && patient.size === 0)
      patient = new Set([...waiting].toSorted(byWait).slice(0, inTurnMax))
    if (isForPatient) for (const each of patient) letThrough(each)
    let sum = 0
    for (const each of [...waiting].toSorted(byAsks)) {
      sum += asksOf(each)
      if (sum > inTurnMax && sum > asksOf(each)) break
      letThrough(each)
    }
    if (waiting.size > 0) planEnd()
  }
  const letThrough = (connection: Connection) => {
    waiting.delete(connection)
    if (held.delete(connection.socket)) connection.socket.resume()
  }
  return (socket) => {
    const connection = open.get(socket)
    if (connection === undefined) return
    planEnd()
    const kind = kindOf(connection)
    inTurn[kind] += 1
    asked.set(connection, (asked.get(connection) ?? 0) + 1)
    if (inTurn[kind] !== inTurnMax) return
    for (const each of open.values()) if (kindOf(each) === kind) hold(each.socket)
  }
}

function byAsks(one: Connection, other: Connection): number {
  const areNew = one.asked === undefined && other.asked === undefined
  return asksOf(one) - asksOf(other) || (areNew ? byWait(other, one) : byWait(one, other))
}

function asksOf({ asked = unknownAsks }: Connection): number {
  return asked
}

function byWait(one: Connection, other: Connection): number {
  return one.order - other.order
}

/** Each takes 10 KB. */
const openMax = 2_000
/** Of each of the two; both take some dozens of milliseconds. */
const inTurnMax = 250
/** Of turns in a row, each far shorter than one in which requests are read. */
const acceptingTurnsMax = 500
/** Of who was not read yet: more than a client asks for that waits for answers, so that new ones hold up none that is known for little. */
const unknownAsks = 50
