import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import * as z from 'zod'
import type { About } from './openapi/about.ts'
import { sendProblem } from './problem.ts'

type Read<S extends z.ZodRawShape> = Pick<About, 'says' | 'answer'> & { readonly parameters?: S }

/** Adds a route of the API that only reads. A parameter that it does not know is refused: a mistyped one would change the answer. */
export function registerRead<S extends z.ZodRawShape>(
  app: FastifyInstance,
  path: string,
  about: Read<S>,
  act: (query: z.output<z.ZodObject<S>>, request: FastifyRequest, reply: FastifyReply) => unknown,
): void {
  const { parameters = {} } = about
  const schema = z.strictObject(parameters)
  app.get(path, { config: { about } }, async (request, reply) => {
    const refusal = unknownParameter(request.query, Object.keys(parameters))
    if (refusal !== undefined) return sendProblem(reply, { status: 400, detail: refusal })
    return act(schema.parse(request.query) as z.output<z.ZodObject<S>>, request, reply)
  })
}

/** What is wrong with the names of the parameters; undefined when nothing is. */
export function unknownParameter(query: unknown, known: readonly string[]): string | undefined {
  const unknown = Object.keys(query ?? {}).find((name) => !known.includes(name))
  if (unknown === undefined) return undefined
  const there = known.length === 0 ? 'this address takes none' : `there is ${known.join(', ')}`
  return `There is no parameter ${unknown}: ${there}.`
}
