import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { registerAction } from './action.ts'
import { limitField, nameField, portionFields, portionOrder, portionView, stateField } from './fields.ts'
import { orphanKinds } from './orphan-view.ts'
import type { AdminDeps } from './ports.ts'

/** Adds the routes that list, move and drop what is left of sinks and sources that are not in the config (any more). */
export function registerOrphans(app: FastifyInstance, deps: AdminDeps): void {
  // `ports.orphans` is read at each request: it throws while the bridge is starting.
  const { ports } = deps

  app.get('/api/v1/orphans', async () => ({ data: await ports.orphans.list() }))

  app.get('/api/v1/orphans/:name', async (request) => {
    const { name } = named.parse(request.params)
    const { limit, state } = deliveriesQuery.parse(request.query)
    return { data: await ports.orphans.deliveries(name, { limit, ...(state ? { state } : {}) }) }
  })

  registerAction(app, deps, {
    method: 'POST',
    path: '/api/v1/orphans/:name/move',
    name: 'move orphan',
    async act(request) {
      const { to, retry = false, ...rest } = move.parse(request.body ?? {})
      const { handled, ...portion } = await ports.orphans.move({
        ...named.parse(request.params),
        ...{ to, retry },
        ...portionOrder(rest),
      })
      return { moved: handled, ...portionView(portion) }
    },
  })

  registerAction(app, deps, {
    method: 'POST',
    path: '/api/v1/orphans/:name/drop',
    name: 'drop orphan',
    async act(request) {
      const order = portionOrder(drop.parse(request.body ?? {}))
      const { handled, ...portion } = await ports.orphans.drop({ ...named.parse(request.params), ...order })
      return { dropped: handled, ...portionView(portion) }
    },
  })
}

const named = z.object({ name: nameField })
const deliveriesQuery = z.strictObject({ limit: limitField, state: stateField.optional() })

const kindField = z.enum(orphanKinds).optional()
const drop = z.strictObject({ kind: kindField, ...portionFields })
const move = z.strictObject({
  to: z.string({ error: 'say where: "to", the name of a sink or a source of the config' }).min(1).max(200),
  retry: z.boolean().optional(),
  kind: kindField,
  ...portionFields,
})
