import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { given } from '../lib/given.ts'
import { auditMax } from '../store/operators/audit.ts'
import {
  deliveryFields,
  deliveryFilter,
  instantField,
  limitField,
  nameField,
  portionFields,
  stateField,
} from './fields.ts'
import {
  alertStory,
  auditRow,
  deadLetter,
  deliveryRow,
  explanation,
  letterGroups,
  oneAnswer,
  pageAnswer,
  quarantinedRow,
  rule,
  searchAnswer,
  seenRow,
  silence,
  sourceDay,
  sourcePlan,
  storedAnswer,
} from './openapi/answers.ts'
import { statusAnswer } from './openapi/status-answer.ts'
import { pageFields, pageOf } from './paging.ts'
import type { AdminDeps } from './ports.ts'
import { sendProblem } from './problem.ts'
import { registerRead } from './read.ts'
import type { AuditRow } from './views/audit-view.ts'

/** The part of the API that only reads. Lists are `{ data: […] }`, so that other fields can be added beside them. */
export function registerReads(app: FastifyInstance, { ports, clock }: AdminDeps): void {
  const notFound = (what: string) => ({ status: 404, detail: what })

  registerRead(
    app,
    '/api/v1/status',
    { says: 'What is wrong, sources, sinks, lag and budget', answer: statusAnswer },
    () => ports.status(),
  )

  registerRead(app, '/api/v1/deliveries', deliveriesAbout, async ({ limit, cursor, order, ...filter }) => {
    if (order === 'changed') {
      const { state, sink } = changedFilter.parse(given({ ...filter, cursor }))
      return { data: await ports.deliveries.changed({ limit, ...given({ state, sink }) }), cursor: null }
    }
    const query = { limit, isFull: true as const, ...deliveryFilter(filter), ...given({ cursor }) }
    const page = await ports.deliveries.search(query)
    return { ...page, cursor: page.cursor ?? null }
  })

  registerRead(app, '/api/v1/deliveries/:source/:id', storyAbout, async (_, { params }, reply) => {
    const { source, id } = z.object({ source: nameField, id: z.string() }).parse(params)
    const number = /^\d{1,16}$/.test(id) ? Number(id) : Number.NaN
    const story = Number.isSafeInteger(number) ? await ports.deliveries.story(source, number) : undefined
    if (story) return { data: story }
    return sendProblem(reply, notFound(`No delivery ${source}.${id} is known (any more).`))
  })

  registerRead(app, '/api/v1/alerts', alertsAbout, async ({ limit, cursor, since, until }) => {
    const span = given({ sinceMs: since, untilMs: until, cursor })
    const page = await ports.deliveries.stored({ limit, ...span })
    return { ...page, cursor: page.cursor ?? null }
  })

  registerRead(app, '/api/v1/alerts/:source/:id/routes', explainAbout, async ({ at }, { params }, reply) => {
    const { source, id } = alertParams.parse(params)
    const found = await ports.deliveries.explain(source, id, at ?? clock.now())
    return found
      ? { data: found }
      : sendProblem(reply, notFound(`No alert ${source}.${id} is kept (any more).`))
  })

  registerRead(app, '/api/v1/dead-letters', deadLettersAbout, async ({ sink, since, limit, cursor }) => {
    const page = await ports.deadLetters.list({ limit, ...given({ sink, sinceMs: since, cursor }) })
    return { ...page, cursor: page.cursor ?? null }
  })

  const groupsAbout = { says: 'Dead letters counted by sink and reason', answer: letterGroups }
  registerRead(app, '/api/v1/dead-letters/groups', groupsAbout, () => ports.deadLetters.groups())

  registerRead(app, '/api/v1/quarantine', quarantineAbout, async ({ source, ...page }) => {
    const rows = await ports.quarantine.list({ limit: quarantineMax, ...given({ source }) })
    return pageOf(rows, page, (row) => `${row.seenAt} ${row.source}.${row.key}`, 'down')
  })

  registerRead(app, '/api/v1/audit', auditAbout, async (page) => {
    const keys = auditKeys(await ports.audit.list(auditMax))
    return pageOf([...keys.keys()], page, (row) => keys.get(row) ?? '', 'down')
  })

  registerRead(app, '/api/v1/sources/:name/day', dayAbout, async (_, { params }, reply) => {
    const { name } = z.object({ name: nameField }).parse(params)
    const day = await ports.sources.day(name)
    return day ? { data: day } : sendProblem(reply, notFound(`There is no source ${name}.`))
  })

  registerRead(app, '/api/v1/sources/:name/plan', planAbout, async (_, { params }, reply) => {
    const { name } = z.object({ name: nameField }).parse(params)
    const plan = await ports.sources.plan(name)
    return plan ? { data: plan } : sendProblem(reply, notFound(`There is no source ${name}.`))
  })

  registerRead(app, '/api/v1/sources/:name/seen/:id', seenAbout, async (_, { params }, reply) => {
    const { name, id } = seenParams.parse(params)
    const row = await ports.sources.seen(name, id)
    return row ? { data: row } : sendProblem(reply, notFound(`There is no source ${name}.`))
  })

  registerRead(app, '/api/v1/silences', silencesAbout, async (page) =>
    pageOf(await ports.silences.list(), page, ({ endsAt, id }) => `${endsAt} ${id}`),
  )
  registerRead(app, '/api/v1/rules', rulesAbout, async (query) =>
    pageOf(
      await ports.rules(query.source),
      query,
      ({ source, id }) => `${source} ${String(id).padStart(16, '0')}`,
    ),
  )
}

const deliveriesAbout = {
  says: 'Deliveries of alerts, the last to fire first',
  parameters: {
    ...deliveryFields,
    order: z.enum(['fired', 'changed']).optional(),
    limit: limitField,
    cursor: portionFields.cursor,
  },
  answer: searchAnswer(deliveryRow),
}

const alertsAbout = {
  says: 'Alerts as the feed had them, with where they went, the last to fire first',
  parameters: {
    since: instantField.optional(),
    until: instantField.optional(),
    limit: z.coerce.number().int().min(1).max(200).default(100),
    cursor: portionFields.cursor,
  },
  answer: storedAnswer,
}

const storyAbout = { says: 'The whole story of one alert', answer: oneAnswer(alertStory) }
const dayAbout = { says: 'The budget day of a source by hours', answer: oneAnswer(sourceDay) }
const planAbout = { says: 'What the plan of a source is made from', answer: oneAnswer(sourcePlan) }
const seenAbout = { says: 'Whether the feed was seen to have an alert', answer: oneAnswer(seenRow) }
const explainAbout = {
  says: 'Which routes would take an alert, and why the others would not',
  parameters: { at: instantField.optional() },
  answer: oneAnswer(explanation),
}
const idWords = 'expected the id of an alert, such as 4711'
const idField = z
  .string()
  .regex(/^\d{1,16}$/, idWords)
  .transform(Number)
  .refine(Number.isSafeInteger, idWords)
const alertParams = z.object({ source: nameField, id: idField })
const seenParams = z.object({
  name: nameField,
  id: idField,
})
const silencesAbout = {
  says: 'The silences that have not ended',
  parameters: pageFields,
  answer: pageAnswer(silence),
}
const rulesAbout = {
  says: 'The alert rules as they were last read',
  parameters: { ...pageFields, source: nameField.optional() },
  answer: pageAnswer(rule),
}

/** `order=changed` reads what changed last in the queues, whenever it fired. Only the newest changes are known, so there are no pages. */
const changedFilter = z.strictObject(
  { state: stateField.optional(), sink: nameField.optional() },
  { error: 'order=changed goes with limit, sink and state only' },
)

const quarantineAbout = {
  says: 'Rows of the feed that could not be read, the newest first',
  parameters: { source: nameField.optional(), limit: limitField, cursor: portionFields.cursor },
  answer: pageAnswer(quarantinedRow),
}
/** More than all sources keep. */
const quarantineMax = 100_000

/** Without a limit, all that are kept. */
const auditAbout = {
  says: 'What operators did, the newest first',
  parameters: {
    limit: z.coerce.number().int().min(1).max(auditMax).default(auditMax),
    cursor: portionFields.cursor,
  },
  answer: pageAnswer(auditRow),
}

/** Actions of one millisecond stay in their order. */
function auditKeys(newestFirst: readonly AuditRow[]): Map<AuditRow, string> {
  const counts = new Map<string, number>()
  const keyOf = ({ at }: AuditRow) => {
    counts.set(at, (counts.get(at) ?? 0) + 1)
    return `${at} ${String(counts.get(at)).padStart(4, '0')}`
  }
  return new Map(newestFirst.toReversed().map((row) => [row, keyOf(row)]))
}

const deadLettersAbout = {
  says: 'What was given up on, the newest first',
  parameters: {
    sink: nameField.optional(),
    since: instantField.optional(),
    limit: limitField,
    cursor: portionFields.cursor,
  },
  answer: pageAnswer(deadLetter),
}
