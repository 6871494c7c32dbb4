import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { writtenMatchField } from '../alert/match/match-form.ts'
import { durationText } from '../lib/duration.ts'
import { durationWithin } from '../lib/fields.ts'
import { given } from '../lib/given.ts'
import { waits } from '../lib/waits.ts'
import { registerAction } from './action.ts'
import { instantField, nameField } from './fields.ts'
import { oneAnswer, silence, silencePreview } from './openapi/answers.ts'
import type { AdminDeps, SilencesPort } from './ports.ts'
import { sendProblem } from './problem.ts'

/** Adds the routes by which people add and end silences. */
export function registerSilenceActions(app: FastifyInstance, deps: AdminDeps, silences: SilencesPort): void {
  registerAction(app, deps, {
    method: 'POST',
    path: '/api/v1/silences',
    name: 'silence',
    says: 'Holds alerts back for a while',
    body: newSilence,
    answer: oneAnswer(silence),
    status: 201,
    takesKey: true,
    act: async (request, reply, keyed) => {
      const added = await silences.add({
        ...newSilenceOf(request.body, deps.clock.now()),
        ...given({ name: keyed?.name }),
      })
      reply.code(201)
      return { data: added }
    },
  })
  registerAction(app, deps, {
    method: 'POST',
    path: '/api/v1/silences/preview',
    says: 'How many alerts of the last day a match fits',
    body: preview,
    answer: silencePreview,
    act: (request) => silences.preview(preview.parse(request.body ?? {}).match),
  })
  registerAction(app, deps, {
    method: 'DELETE',
    path: '/api/v1/silences/:id',
    name: 'end silence',
    says: 'Ends a silence now',
    answer: z.object({ expired: z.string() }),
    act: async (request, reply) => {
      const { id } = z.object({ id: nameField }).parse(request.params)
      if (await silences.expire(id)) return { expired: id }
      return sendProblem(reply, { status: 404, detail: `There is no silence ${id}.` })
    },
  })
}

const preview = z.strictObject({ match: writtenMatchField })

const newSilence = z
  .strictObject({
    match: writtenMatchField,
    startsAt: instantField.optional(),
    endsAt: instantField.optional(),
    for: durationWithin(0, waits.silence.maxMs).optional(),
    comment: z.string().max(500).default(''),
  })
  .refine((silence) => (silence.endsAt === undefined) !== (silence.for === undefined), {
    error: 'say when it ends: either endsAt or for',
  })

const longestMs = waits.silence.maxMs

function newSilenceOf(body: unknown, nowMs: number) {
  return newSilence
    .transform(({ match, startsAt, endsAt, for: forMs, comment }) => {
      const startsAtMs = startsAt ?? nowMs
      return { match, startsAtMs, endsAtMs: endsAt ?? startsAtMs + (forMs ?? 0), comment }
    })
    .refine(({ startsAtMs, endsAtMs }) => endsAtMs > startsAtMs && endsAtMs > nowMs, {
      error: 'expected an end that lies ahead and after the start',
    })
    .refine(
      ({ startsAtMs, endsAtMs }) => startsAtMs - nowMs <= longestMs && endsAtMs - startsAtMs <= longestMs,
      { error: `expected a start within ${durationText(longestMs)}, and an end within as long after it` },
    )
    .parse(body ?? {})
}
