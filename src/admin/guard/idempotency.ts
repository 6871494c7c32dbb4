import type { FastifyReply, FastifyRequest } from 'fastify'
import * as z from 'zod'
import { isMapping } from '../../alert/json/json.ts'
import { UserError } from '../../lib/errors.ts'
import type { Begun, IdempotencyStore, KeyedRequest } from '../../store/operators/idempotency.ts'
import { type Problem, sendProblem } from '../problem.ts'

/** `keyed`: given where the request has a key. It may have been begun before, and must then do nothing twice. */
export type ActionHandler = (
  request: FastifyRequest,
  reply: FastifyReply,
  keyed?: KeyedRequest,
) => Promise<unknown>

/**
 * Carries out a request that names a key (`Idempotency-Key`, as the draft of the IETF has it) once: sent again it gets the answer
 * of before. Only answers of what was done are kept: a request that is refused may be sent in another form. Without the header, or
 * for an action that takes no key, it is carried out each time.
 */
export async function once(
  { store, nowMs }: { store: IdempotencyStore; nowMs: number },
  request: FastifyRequest,
  reply: FastifyReply,
  act: ActionHandler,
): Promise<{ readonly answer: unknown; readonly isNew: boolean }> {
  const given = request.headers['idempotency-key']
  if (given === undefined) return { answer: await act(request, reply), isNew: true }
  const key = keyOf(given)
  if (key === undefined) return { answer: sendProblem(reply, noKey), isNew: false }
  const body = isMapping(request.body) ? request.body : {}
  const what = `${request.method} ${request.url} ${JSON.stringify(inOrder(body))}`
  const begun = await store.begin(key, what, nowMs)
  if (begun.kind !== 'begun') return { answer: answerOf(begun, reply), isNew: false }
  try {
    const answer = await act(request, reply, begun)
    const { statusCode: status } = reply
    if (status < 400) await store.finish(key, what, begun.atMs, { status, answer })
    else await store.forget(key)
    return { answer, isNew: true }
  } catch (thrown) {
    const isRefused = thrown instanceof z.ZodError || thrown instanceof UserError
    await (isRefused ? store.forget(key) : store.release(key, what, begun.atMs)).catch(() => {})
    throw thrown
  }
}

function answerOf(begun: Exclude<Begun, { kind: 'begun' }>, reply: FastifyReply): unknown {
  switch (begun.kind) {
    case 'done':
      return repeat(reply, storedAnswer.parse(begun.answer))
    case 'running':
      return sendProblem(reply.header('retry-after', '1'), {
        status: 409,
        detail:
          'The request with this Idempotency-Key is still being carried out: send it again in a moment.',
      })
    case 'other':
      return sendProblem(reply, {
        status: 422,
        detail: 'This Idempotency-Key was used for another request: each request needs a key of its own.',
      })
    default:
      return begun satisfies never
  }
}

function repeat(reply: FastifyReply, { status, answer }: z.infer<typeof storedAnswer>): unknown {
  reply.code(status).header('idempotent-replayed', 'true')
  return answer
}

const storedAnswer = z.object({ status: z.number(), answer: z.unknown() })

const noKey: Problem = {
  status: 400,
  detail: 'Idempotency-Key: expected one text of 1 to 255 visible characters, such as a UUID.',
}

/** A string of a structured field has quotes; many clients leave them out. */
function keyOf(given: string | string[]): string | undefined {
  const text = typeof given === 'string' ? given.trim() : ''
  const key = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1]?.replace(/\\(.)/g, '$1') ?? text
  return /^[\x20-\x7e]{1,255}$/.test(key) ? key : undefined
}

/** The order of fields is no difference. */
function inOrder(fields: Readonly<Record<string, unknown>>) {
  return Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1))
}
