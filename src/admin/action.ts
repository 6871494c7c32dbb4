import type { FastifyInstance, FastifyRequest } from 'fastify'
import { toError } from '../lib/errors.ts'
import { given } from '../lib/given.ts'
import { within } from '../lib/time-limit.ts'
import { auditRowOf } from './audit.ts'
import { createTries, refuseChange, type Tries, triesToken } from './guard/guard.ts'
import { type ActionHandler, once } from './guard/idempotency.ts'
import type { About } from './openapi/about.ts'
import type { AdminDeps } from './ports.ts'
import { sendProblem } from './problem.ts'
import { unknownParameter } from './read.ts'

export interface Action extends Pick<About, 'says' | 'body' | 'answer' | 'status'> {
  readonly method: 'POST' | 'DELETE'
  readonly path: string
  /** As the audit list shows it; without a name nothing is recorded, since it changes nothing. */
  readonly name?: string
  readonly act: ActionHandler
  /** A request with an `Idempotency-Key` is carried out once. */
  readonly takesKey?: true
}

/**
 * Adds a route that changes something: never by GET, only with the token. Each call is logged in one line, and what was carried out
 * is recorded for other operators.
 */
export function registerAction(app: FastifyInstance, deps: AdminDeps, action: Action): void {
  const { adminToken, hosts, clock, log, ports } = deps
  const { method, path, name, act } = action
  const tries = triesOf(deps)
  app.route({
    method,
    url: path,
    config: { about: aboutOf(action) },
    // Runs before the body is read, so without the token no body is accepted.
    onRequest: async (request, reply) => {
      addresses.set(request, request.ip)
      const refusal = refuseChange(request, adminToken(), hosts())
      if (!refusal) return
      if (refusal.status !== 401) return sendProblem(reply, refusal)
      if (triesToken(request)) {
        const waitMs = tries.waitMs(request.ip)
        if (waitMs > 0) {
          reply.header('retry-after', String(Math.ceil(waitMs / 1_000)))
          return sendProblem(reply, tooManyTries)
        }
        tries.failed(request.ip)
      }
      reply.header('www-authenticate', 'Bearer realm="alert-bridge"')
      return sendProblem(reply, refusal)
    },
    handler: async (request, reply) => {
      const refusal = unknownParameter(request.query, []) ?? unknownField(request.body, action.body)
      if (refusal !== undefined) return sendProblem(reply, { status: 400, detail: refusal })
      const { answer, isNew } = action.takesKey
        ? await once({ store: ports.idempotency, nowMs: clock.now() }, request, reply, act)
        : { answer: await act(request, reply), isNew: true }
      const ip = addresses.get(request) ?? ''
      log.info({ path: request.url, status: reply.statusCode, remote: ip }, 'admin action')
      const { params, body } = request
      const row =
        name && isNew && reply.statusCode < 400
          ? auditRowOf(name, { params, body, ip }, answer, clock.now())
          : undefined
      if (row) await record(deps, row)
      return answer
    },
  })
  if (method === 'POST' && !app.hasRoute({ method: 'GET', url: path }))
    app.get(path, { config: { about: null } }, async (_request, reply) => {
      reply.header('allow', 'POST')
      return sendProblem(reply, { status: 405, detail: 'This changes something: use POST.' })
    })
}

/** Of an action that takes no body: a field that it would pass over may have been meant to change what it does. */
function unknownField(body: unknown, schema: Action['body']): string | undefined {
  if (schema !== undefined || body === undefined || body === null) return undefined
  const [name] = typeof body === 'object' ? Object.keys(body) : ['']
  return name === undefined ? undefined : `There is no field ${name}: this address takes none.`
}

function aboutOf({ takesKey, says, body, answer, status }: Action): About {
  return { says, answer, needsToken: true, takesKey: takesKey !== undefined, ...given({ body, status }) }
}

/** From where each request came, read as it came: a socket does not know it any more once who asked has hung up. */
const addresses = new WeakMap<FastifyRequest, string>()

const tooManyTries = { status: 429, detail: 'Too many wrong tokens came from this address: wait a minute.' }
const recordTimeoutMs = 2_000

/** It was carried out: that its record is lost, without Redis, is no reason to say otherwise. */
async function record({ ports, log }: AdminDeps, row: Parameters<AdminDeps['ports']['audit']['add']>[0]) {
  await within(recordTimeoutMs, 'recording an action', ports.audit.add(row)).catch((thrown: unknown) =>
    log.warn({ err: toError(thrown), action: row.action }, 'an action was not recorded'),
  )
}

/** One count for all actions of a server. */
const counts = new WeakMap<AdminDeps, Tries>()

function triesOf(deps: AdminDeps): Tries {
  const tries = counts.get(deps) ?? createTries(() => deps.clock.monotonicMs())
  counts.set(deps, tries)
  return tries
}
