import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { given } from '../lib/given.ts'
import { registerAction } from './action.ts'
import {
  dryRunField,
  limitField,
  nameField,
  portionFields,
  portionOrder,
  portionView,
  stateField,
} from './fields.ts'
import { deliveryRow, orphan, pageAnswer, searchAnswer } from './openapi/answers.ts'
import { orphanPortionAnswer } from './openapi/portion-answers.ts'
import { pageFields, pageOf } from './paging.ts'
import type { AdminDeps } from './ports.ts'
import { registerRead } from './read.ts'
import { orphanKinds } from './views/orphan-view.ts'

/** Adds the routes that list, move and drop what is left of sinks and sources that are not in the config (any more). */
export function registerOrphans(app: FastifyInstance, deps: AdminDeps): void {
  // `ports.orphans` is read at each request: it throws while the bridge is starting.
  const { ports } = deps

  registerRead(app, '/api/v1/orphans', listAbout, async (page) => {
    return pageOf(await ports.orphans.list(), page, ({ kind, name }) => `${kind} ${name}`)
  })

  registerRead(
    app,
    '/api/v1/orphans/:name',
    deliveriesAbout,
    async ({ limit, state, cursor }, { params }) => {
      const { name } = named.parse(params)
      const page = await ports.orphans.deliveries(name, { limit, ...given({ state, cursor }) })
      return { ...page, cursor: page.cursor ?? null }
    },
  )

  registerAction(app, deps, {
    method: 'POST',
    path: '/api/v1/orphans/:name/move',
    name: 'move orphan',
    says: 'Moves what is left of a name to a sink or a source of the config',
    body: move,
    answer: orphanPortionAnswer('moved'),
    takesKey: true,
    async act(request, _reply, keyed) {
      const { to, retry = false, ...rest } = move.parse(request.body ?? {})
      const { handled, ...portion } = await ports.orphans.move({
        ...named.parse(request.params),
        to,
        retry,
        ...portionOrder(rest, keyed),
      })
      return { moved: handled, ...portionView(portion) }
    },
  })

  registerAction(app, deps, {
    method: 'POST',
    path: '/api/v1/orphans/:name/drop',
    name: 'drop orphan',
    says: 'Deletes what is left of a name',
    body: drop,
    answer: orphanPortionAnswer('dropped'),
    takesKey: true,
    async act(request, _reply, keyed) {
      const order = portionOrder(drop.parse(request.body ?? {}), keyed)
      const { handled, ...portion } = await ports.orphans.drop({ ...named.parse(request.params), ...order })
      return { dropped: handled, ...portionView(portion) }
    },
  })
}

const named = z.object({ name: nameField })
const listAbout = {
  says: 'What is left of sinks and sources that are not in the config',
  parameters: pageFields,
  answer: pageAnswer(orphan),
}
const deliveriesAbout = {
  says: 'The alerts of a sink that is not in the config, the last to fire first',
  parameters: { limit: limitField, state: stateField.optional(), cursor: portionFields.cursor },
  answer: searchAnswer(deliveryRow),
}

const kindField = z.enum(orphanKinds).optional()
const drop = z.strictObject({ kind: kindField, dryRun: dryRunField, ...portionFields })
const move = z.strictObject({
  to: z.string({ error: 'say where: "to", the name of a sink or a source of the config' }).min(1).max(200),
  retry: z.boolean().optional(),
  kind: kindField,
  dryRun: dryRunField,
  ...portionFields,
})
