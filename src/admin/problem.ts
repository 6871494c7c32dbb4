import { STATUS_CODES } from 'node:http'
import type { FastifyReply } from 'fastify'

/** An error answer by RFC 9457. `detail` is one sentence that a person can act on; more members may follow. */
export interface Problem {
  readonly status: number
  readonly detail: string
  readonly [member: string]: unknown
}

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { status, detail, ...rest } = problem
  return reply
    .code(status)
    .type('application/problem+json')
    .send(
      JSON.stringify({
        type: 'about:blank',
        title: STATUS_CODES[status] ?? 'Error',
        status,
        detail,
        ...rest,
      }),
    )
}
