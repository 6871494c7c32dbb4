import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { given } from '../lib/given.ts'
import {
  deliveryFields,
  deliveryFilter,
  instantField,
  limitField,
  nameField,
  portionFields,
  stateField,
} from './fields.ts'
import type { AdminDeps } from './ports.ts'
import { sendProblem } from './problem.ts'

/** The part of the API that only reads. Lists are `{ data: […] }`, so that other fields can be added beside them. */
export function registerReads(app: FastifyInstance, { ports }: AdminDeps): void {
  app.get('/api/v1/status', () => ports.status())

  app.get('/api/v1/deliveries', async (request) => {
    if (isByChange(request.query)) {
      const { limit, state, sink } = changedQuery.parse(request.query)
      return { data: await ports.deliveries.changed({ limit, ...given({ state, sink }) }) }
    }
    const { limit, cursor, order: _, ...filter } = deliveriesQuery.parse(request.query)
    const page = await ports.deliveries.search({ limit, ...deliveryFilter(filter), ...given({ cursor }) })
    return { ...page, cursor: page.cursor ?? null }
  })

  app.get('/api/v1/deliveries/:source/:id', async (request, reply) => {
    const { source, id } = z.object({ source: nameField, id: z.string() }).parse(request.params)
    const number = /^\d{1,16}$/.test(id) ? Number(id) : Number.NaN
    const history = Number.isSafeInteger(number) ? await ports.deliveries.history(source, number) : undefined
    if (history) return { data: history }
    return sendProblem(reply, { status: 404, detail: `No delivery ${source}.${id} is known (any more).` })
  })

  app.get('/api/v1/dead-letters', async (request) => {
    const { sink, since, limit, cursor } = deadLettersQuery.parse(request.query)
    const page = await ports.deadLetters.list({
      limit,
      ...(sink ? { sink } : {}),
      ...(since === undefined ? {} : { sinceMs: since }),
      ...(cursor ? { cursor } : {}),
    })
    return { ...page, cursor: page.cursor ?? null }
  })

  app.get('/api/v1/dead-letters/groups', () => ports.deadLetters.groups())

  app.get('/api/v1/quarantine', async (request) => ({
    data: await ports.quarantine.list(quarantineQuery(request.query)),
  }))

  app.get('/api/v1/audit', async (request) => {
    const { limit } = auditQuery.parse(request.query)
    return { data: await ports.audit.list(limit) }
  })

  app.get('/api/v1/sources/:name/day', async (request, reply) => {
    const { name } = z.object({ name: nameField }).parse(request.params)
    const day = await ports.sources.day(name)
    if (day) return { data: day }
    return sendProblem(reply, { status: 404, detail: `There is no source ${name}.` })
  })

  const { silences, rules } = ports
  if (silences) app.get('/api/v1/silences', async () => ({ data: await silences.list() }))
  if (rules) app.get('/api/v1/rules', async () => ({ data: await rules() }))
}

/** As many as are kept. */
const auditMax = 1_000
const auditQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(auditMax).default(auditMax),
})
const deliveriesQuery = z.strictObject({
  ...deliveryFields,
  order: z.literal('fired').optional(),
  limit: limitField,
  cursor: portionFields.cursor,
})

/** What changed last is known of the queues, whatever fired when: only the newest changes, without pages. */
const changedQuery = z.strictObject({
  order: z.literal('changed'),
  state: stateField.optional(),
  sink: nameField.optional(),
  limit: limitField,
})

function isByChange(query: unknown): boolean {
  return typeof query === 'object' && query !== null && 'order' in query && query.order === 'changed'
}

function quarantineQuery(query: unknown) {
  const { limit, source } = z.strictObject({ limit: limitField, source: nameField.optional() }).parse(query)
  return { limit, ...(source === undefined ? {} : { source }) }
}
const deadLettersQuery = z.strictObject({
  sink: nameField.optional(),
  since: instantField.optional(),
  limit: limitField,
  cursor: portionFields.cursor,
})
