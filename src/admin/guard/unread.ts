import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What connections have asked for and not taken. */
export interface Unread {
  /** For every request, before it is looked at. */
  asked(request: IncomingMessage, response: ServerResponse): void
  /** Whether a request that has come whole on this connection is not answered yet, or its answer not taken. */
  isAsking(socket: Socket): boolean
  /** Whether more answers were to be taken on its connection, when it came, than a client asks for that takes them. */
  isTooMuch(request: IncomingMessage): boolean
  /** For an answer that begins: to be called with the bytes of each part of it. */
  answer(request: IncomingMessage, response: ServerResponse): (bytes: number) => void
}

/**
 * An answer is kept until it is taken, and some clients never take theirs: a machine that sleeps, or one that wants to fill the memory.
 * So of all answers only so much is kept. Beyond it those are disconnected who have not taken theirs for the longest, never the one
 * that is being answered: who reads is done before that.
 */
export function keepFewUnread(): Unread {
  const unanswered = new WeakMap<Socket, Set<IncomingMessage>>()
  const tooMuch = new WeakSet<IncomingMessage>()
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

  const answer: Unread['answer'] = ({ socket }, response) => {
    // An answer behind others on its connection is not told when that is lost.
    if (!known.has(socket)) socket.once('close', () => forget(socket))
    known.add(socket)
    let bytes = 0
    response.once('close', () => change(socket, -bytes))
    return (more) => {
      if (response.destroyed || socket.destroyed) return
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
  return {
    asked(request, response) {
      const { socket } = request
      const requests = unanswered.get(socket) ?? new Set()
      unanswered.set(socket, requests.add(request))
      response.once('close', () => requests.delete(request))
      if (requests.size <= unansweredMax) return
      tooMuch.add(request)
      // What is refused is kept, too, until those before it are taken.
      answer(request, response)(refusedBytes)
    },
    isAsking(socket) {
      for (const { complete } of unanswered.get(socket) ?? []) if (complete) return true
      return false
    },
    isTooMuch: (request) => tooMuch.has(request),
    answer,
  }
}

/** Some dozens of the longest lists. Of each connection the system keeps some megabytes besides. */
const unreadBytesMax = 32 * 1_024 * 1_024
/** Clients of HTTP/1.1 send one after the other, with few exceptions. */
const unansweredMax = 10
/** What a request and its answer take here, however short they are. */
const refusedBytes = 4_096
