import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorCode } from '../../lib/errors.ts'
import { problemAnswer, sendProblem } from '../problem.ts'
import { safeHeaders } from './headers.ts'
import type { Unread } from './unread.ts'

/**
 * Answers to requests that reach no route and no hook: an address that cannot be decoded, a part of it that is too long,
 * and data that is not HTTP. They have the headers of every answer, by which a command recognises the bridge.
 */
export function malformedAnswers(asked: Unread['asked']) {
  return {
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      asked(request.raw, reply.raw)
      answerAddress(error, reply)
    },
    clientErrorHandler: answerSocket,
  }
}

/** The server handles `Expect: 100-continue` itself; every other expectation is refused. */
export function refuseExpectations(app: FastifyInstance, asked: Unread['asked']): void {
  app.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    asked(request, response)
    const { status, type, text } = problemAnswer({
      status: 417,
      detail: 'Only 100-continue can be expected.',
    })
    response.writeHead(status, { ...safeHeaders, 'content-type': type }).end(text)
  })
}

function answerAddress(error: FastifyError, reply: FastifyReply): void {
  const status = error.statusCode ?? 400
  const detail =
    status === 414 ? 'A part of this address is too long.' : 'This is no address that could be read.'
  sendProblem(reply.headers(safeHeaders), { status, detail })
}

function answerSocket(error: Error, socket: Socket): void {
  const problem = problemAnswer(
    refusals.get(errorCode(error) ?? '') ?? { status: 400, detail: 'This is no HTTP/1.1.' },
  )
  const headers = {
    ...safeHeaders,
    'content-type': problem.type,
    'content-length': Buffer.byteLength(problem.text),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const { status, title } = problem
  if (socket.writable) socket.write(`HTTP/1.1 ${status} ${title}\r\n${lines.join('')}\r\n${problem.text}`)
  socket.destroy()
}

const refusals = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', { status: 408, detail: 'The request did not come within the time limit.' }],
  ['HPE_HEADER_OVERFLOW', { status: 431, detail: 'The headers of the request are too long.' }],
])
