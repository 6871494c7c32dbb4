import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { refuseChange } from './guard.ts'
import type { AdminDeps } from './ports.ts'
import { sendProblem } from './problem.ts'

export type ActionHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

/** Adds a route that changes something: never by GET, only with the token. Each call is logged in one line. */
export function registerAction(
  app: FastifyInstance,
  { adminToken, log }: Pick<AdminDeps, 'adminToken' | 'log'>,
  { method, path, act }: { method: 'POST' | 'DELETE'; path: string; act: ActionHandler },
): void {
  app.route({
    method,
    url: path,
    // Runs before the body is read, so without the token no body is accepted.
    onRequest: async (request, reply) => {
      const refusal = refuseChange(request, adminToken())
      if (!refusal) return
      if (refusal.status === 401) reply.header('www-authenticate', 'Bearer realm="alert-bridge"')
      return sendProblem(reply, refusal)
    },
    handler: async (request, reply) => {
      const answer = await act(request, reply)
      log.info({ path: request.url, status: reply.statusCode, remote: request.ip }, 'admin action')
      return answer
    },
  })
  if (method === 'POST' && !app.hasRoute({ method: 'GET', url: path }))
    app.get(path, async (_request, reply) => {
      reply.header('allow', 'POST')
      return sendProblem(reply, { status: 405, detail: 'This changes something: use POST.' })
    })
}
