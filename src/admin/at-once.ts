import { pipeline, Readable, Transform } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from './problem.ts'
import { keepFewUnread } from './unread.ts'

/**
 * Who reads needs no token, and must not keep the process from polling and sending, however much is asked for at once: some
 * milliseconds a request are a minute where thousands come in one packet. So a few are answered at a time, with a turn of the process
 * in between, and what a connection asks for without taking the answers is refused. A request waits with its body read, which may
 * come slowly.
 */
export function answerFewAtOnce(app: FastifyInstance, exempt: ReadonlySet<string>): void {
  const waiting: (() => void)[] = []
  const placed = new WeakSet<FastifyRequest>()
  const unanswered = new WeakMap<object, number>()
  let running = 0

  const leave = (request: FastifyRequest) => {
    if (!placed.delete(request)) return
    const next = waiting.shift()
    if (next) setImmediate(next)
    else running -= 1
  }
  const countOf = (connection: object) => unanswered.get(connection) ?? 0
  const count = ({ raw: { socket } }: FastifyRequest, { raw }: FastifyReply) => {
    unanswered.set(socket, countOf(socket) + 1)
    raw.once('close', () => unanswered.set(socket, countOf(socket) - 1))
  }

  app.addHook('preHandler', async (request, reply) => {
    const { socket } = request.raw
    if (exempt.has(request.routeOptions.url ?? '')) return
    if (countOf(socket) >= unansweredMax)
      return sendProblem(reply, {
        status: 429,
        detail: 'Too much on one connection: wait for answers before you send more.',
      })
    if (running >= atOnceMax && waiting.length >= waitingMax)
      return sendProblem(reply.header('retry-after', '1'), {
        status: 503,
        detail: `${waitingMax} requests wait for their turn already: try again in a second.`,
      })
    count(request, reply)
    if (running < atOnceMax) running += 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    placed.add(request)
    // Nobody reads the answer any more. An order is carried out all the same.
    if (socket.destroyed && reads.has(request.method)) reply.hijack()
    // Nobody works on it any more, so that nobody would say when it is done.
    if (reply.sent) leave(request)
    // What was begun for a client that leaves goes on to its end, of which nobody may hear.
    const leaveLater = () => {
      if (placed.has(request)) setTimeout(() => leave(request), goneMs).unref()
    }
    if (socket.destroyed) leaveLater()
    else reply.raw.once('close', leaveLater)
  })
  // And not when the answer was taken: some clients never take it. So a page that is sent while it is made is made to its end ahead
  // of who reads it.
  const answer = keepFewUnread()
  app.addHook('onSend', async (request, reply, payload) => {
    const add = answer(request, reply)
    if (!(payload instanceof Readable)) {
      if (typeof payload === 'string' || Buffer.isBuffer(payload)) add(Buffer.byteLength(payload))
      return void leave(request)
    }
    payload.once('close', () => leave(request))
    const ahead = new Transform({
      highWaterMark: aheadBytesMax,
      transform(chunk: Buffer, _encoding, done) {
        add(chunk.length)
        done(null, chunk)
      },
    })
    return pipeline(payload, ahead, () => {})
  })
}

const reads: ReadonlySet<string> = new Set(['GET', 'HEAD'])
/** As long as a handler may take. */
const goneMs = 15_000
/** Much more than a page has. */
const aheadBytesMax = 16 * 1_024 * 1_024
const atOnceMax = 10
/** A hundred pages that hear of a change read it at the same moment. */
const waitingMax = 300
/** Clients of HTTP/1.1 send one after the other, with few exceptions. */
const unansweredMax = 10
