import { pipeline, Readable, Transform } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { sendProblem } from '../problem.ts'
import type { Unread } from './unread.ts'

/**
 * Who reads needs no token, and must not keep the process from polling and sending, however much is asked for at once: some
 * milliseconds a request are a minute where thousands come in one packet. So a few are answered at a time, with a turn of the process
 * in between, and what a connection asks for without taking the answers is refused. A request waits with its body read, which may
 * come slowly. Orders, which have shown the token, wait behind other orders alone.
 */
export function answerFewAtOnce(app: FastifyInstance, exempt: ReadonlySet<string>, unread: Unread): void {
  const lanes = { orders: createLane(), others: createLane() }
  const laneOf = ({ routeOptions }: FastifyRequest) =>
    routeOptions.config.about?.needsToken ? lanes.orders : lanes.others
  const leave = (request: FastifyRequest) => laneOf(request).leave(request)

  app.addHook('preHandler', async (request, reply) => {
    const { socket } = request.raw
    const lane = laneOf(request)
    if (exempt.has(request.routeOptions.url ?? '')) return
    if (unread.isTooMuch(request.raw))
      return sendProblem(reply, {
        status: 429,
        detail: 'Too much on one connection: wait for answers before you send more.',
      })
    if (lane.isFull())
      return sendProblem(reply.header('retry-after', '1'), {
        status: 503,
        detail: `${waitingMax} requests wait for their turn already: try again in a second.`,
      })
    await lane.enter(request)
    // Nobody reads the answer any more. An order is carried out all the same.
    if (socket.destroyed && reads.has(request.method)) reply.hijack()
    // Nobody works on it any more, so that nobody would say when it is done.
    if (reply.sent) lane.leave(request)
    // What was begun for a client that leaves goes on to its end, of which nobody may hear.
    const leaveLater = () => {
      if (lane.has(request)) setTimeout(() => lane.leave(request), goneMs).unref()
    }
    if (socket.destroyed) leaveLater()
    else reply.raw.once('close', leaveLater)
  })
  // And not when the answer was taken: some clients never take it. So a page that is sent while it is made is made to its end ahead
  // of who reads it.
  app.addHook('onSend', async (request, reply, payload) => {
    const add = unread.answer(request.raw, reply.raw)
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

/** The few that are answered at a time, and those that wait for it. */
function createLane() {
  const waiting: (() => void)[] = []
  const placed = new WeakSet<FastifyRequest>()
  let running = 0
  return {
    isFull: () => running >= atOnceMax && waiting.length >= waitingMax,
    has: (request: FastifyRequest) => placed.has(request),
    async enter(request: FastifyRequest) {
      if (running < atOnceMax) running += 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
      placed.add(request)
    },
    leave(request: FastifyRequest) {
      if (!placed.delete(request)) return
      const next = waiting.shift()
      if (next) setImmediate(next)
      else running -= 1
    },
  }
}

const reads: ReadonlySet<string> = new Set(['GET', 'HEAD'])
/** As long as a handler may take. */
const goneMs = 15_000
/** Much more than a page has. */
const aheadBytesMax = 16 * 1_024 * 1_024
const atOnceMax = 10
/** A hundred pages that hear of a change read it at the same moment. */
const waitingMax = 300
