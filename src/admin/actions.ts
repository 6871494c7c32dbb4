import type { FastifyInstance, FastifyReply } from 'fastify'
import * as z from 'zod'
import type { Order } from '../delivery/records/selection.ts'
import { durationWithin } from '../lib/fields.ts'
import { given } from '../lib/given.ts'
import { waits } from '../lib/waits.ts'
import type { KeyedRequest } from '../store/operators/idempotency.ts'
import { type Action, registerAction } from './action.ts'
import {
  alertIdsField,
  dryRunField,
  instantField,
  nameField,
  portionFields,
  portionOrder,
  portionView,
  rowIdsField,
} from './fields.ts'
import type { ActionHandler } from './guard/idempotency.ts'
import { count, instant, quarantineRetry } from './openapi/answers.ts'
import { portionAnswer } from './openapi/portion-answers.ts'
import type { AdminDeps } from './ports.ts'
import { sendProblem } from './problem.ts'
import { registerSilenceActions } from './silences.ts'

/** Adds the routes of the API that change something. */
export function registerActions(app: FastifyInstance, deps: AdminDeps): void {
  const { ports } = deps
  type ActionAbout = Pick<Action, 'says' | 'body' | 'answer' | 'takesKey'>
  const post = (name: string, path: string, about: ActionAbout, act: ActionHandler) =>
    registerAction(app, deps, { method: 'POST', path, name, act, ...about })

  post(
    'reload',
    '/-/reload',
    { says: 'Reads the config again', answer: z.object({ ok: z.literal(true) }) },
    async (_request, reply) => {
      const result = await ports.reload()
      if (result.ok) return { ok: true }
      const detail = 'The new config is not taken; the bridge goes on with the old one.'
      return sendProblem(reply, { status: 422, detail, mistakes: result.mistakes })
    },
  )

  post('retry dead letters', '/api/v1/dead-letters/retry', retryAbout, async (request, _reply, keyed) => {
    const { handled, missing, ...portion } = await ports.deadLetters.retry(deadLettersOf(request.body, keyed))
    return { retried: handled, unknown: missing, ...portionView(portion) }
  })
  post('drop dead letters', '/api/v1/dead-letters/drop', dropAbout, async (request, _reply, keyed) => {
    const { handled, missing, ...portion } = await ports.deadLetters.drop(deadLettersOf(request.body, keyed))
    return { dropped: handled, unknown: missing, ...portionView(portion) }
  })
  post('send again', '/api/v1/replay', replayAbout, async (request, _reply, keyed) => {
    const { handled, missing, ...portion } = await ports.replay(replayOf(request.body, keyed))
    return { queued: handled, unknown: missing, ...portionView(portion) }
  })

  post('retry unreadable rows', '/api/v1/quarantine/retry', retryRowsAbout, (request) =>
    ports.quarantine.retry(rowsOf(request.body)),
  )
  post('drop unreadable rows', '/api/v1/quarantine/drop', dropRowsAbout, async (request, _reply, keyed) => {
    const order = { ...rowsOf(request.body), ...given({ keepThrough: keyed?.keep }) }
    return { dropped: await ports.quarantine.drop(order) }
  })

  const noSink = (reply: FastifyReply, name: string) =>
    sendProblem(reply, { status: 404, detail: `There is no sink ${name}.` })
  post('pause sink', '/api/v1/sinks/:name/pause', pauseAbout, async (request, reply) => {
    const { name } = named.parse(request.params)
    const { for: forMs, comment, unlessPaused } = pause.parse(request.body ?? {})
    const untilMs = forMs === undefined ? undefined : deps.clock.now() + forMs
    const id = await ports.sinks.pause(name, { comment, ...given({ untilMs, unlessPaused }) })
    if (id === undefined) return noSink(reply, name)
    const until = untilMs === undefined ? {} : { until: new Date(untilMs).toISOString() }
    return { sink: name, state: 'paused', id, ...until }
  })
  post('resume sink', '/api/v1/sinks/:name/resume', resumeAbout, async (request, reply) => {
    const { name } = named.parse(request.params)
    const { id } = resume.parse(request.body ?? {})
    return (await ports.sinks.resume(name, id)) ? { sink: name, state: 'active' } : noSink(reply, name)
  })
  post('probe sink', '/api/v1/sinks/:name/probe', probeAbout, async (request, reply) => {
    const { name } = named.parse(request.params)
    return (await ports.sinks.probe(name)) ? { sink: name, state: 'probing' } : noSink(reply, name)
  })

  const noSource = (reply: FastifyReply, name: string) =>
    sendProblem(reply, { status: 404, detail: `There is no source ${name}.` })
  post('poll more often', '/api/v1/sources/:name/hot', hotAbout, async (request, reply) => {
    const { name } = named.parse(request.params)
    const untilMs = hotUntil(request.body, deps.clock.now())
    if (await ports.sources.hot(name, untilMs))
      return { source: name, until: new Date(untilMs).toISOString() }
    return noSource(reply, name)
  })
  post('poll as planned', '/api/v1/sources/:name/hot/end', coolAbout, async (request, reply) => {
    const { name } = named.parse(request.params)
    const { until } = cool.parse(request.body ?? {})
    return (await ports.sources.cool(name, until))
      ? { source: name, state: 'planned' }
      : noSource(reply, name)
  })

  registerSilenceActions(app, deps, ports.silences)
}

const named = z.object({ name: nameField })

const pause = z.strictObject({
  for: durationWithin(1_000, waits.silence.maxMs).optional(),
  comment: z.string().max(500).default(''),
  unlessPaused: z.literal(true).optional(),
})

const resume = z.strictObject({ id: nameField.optional() })

const deadLetters = z
  .strictObject({
    ids: alertIdsField.optional(),
    sink: nameField.optional(),
    reason: nameField.optional(),
    since: instantField.optional(),
    all: z.literal(true).optional(),
    dryRun: dryRunField,
    ...portionFields,
  })
  .refine(
    ({ ids, sink, reason, since, all }) => [ids, sink, reason, since, all].some((each) => each !== undefined),
    {
      error: 'say which: ids, sink, reason, since, or "all": true',
    },
  )

function deadLettersOf(body: unknown, keyed: KeyedRequest | undefined): Order {
  const { all: _, since: sinceMs, ...order } = deadLetters.parse(body ?? {})
  return portionOrder({ ...order, sinceMs }, keyed)
}

const rows = z
  .strictObject({
    ids: rowIdsField.optional(),
    source: nameField.optional(),
    all: z.literal(true).optional(),
  })
  .refine(({ ids, source, all }) => [ids, source, all].some((each) => each !== undefined), {
    error: 'say which: ids, source, or "all": true',
  })

function rowsOf(body: unknown) {
  const { ids, source } = rows.parse(body ?? {})
  return given({ ids, source })
}

const replay = z.union(
  [
    z.strictObject({
      ids: alertIdsField,
      sink: nameField.optional(),
      dryRun: dryRunField,
      ...portionFields,
    }),
    z.strictObject({
      since: instantField,
      until: instantField.optional(),
      sink: nameField.optional(),
      dryRun: dryRunField,
      ...portionFields,
    }),
  ],
  {
    error:
      'expected ids (SOURCE.ID), or since and perhaps until (ISO times with an offset), and optionally a sink',
  },
)

function replayOf(body: unknown, keyed: KeyedRequest | undefined): Order {
  const order = replay.parse(body ?? {})
  if ('ids' in order) return portionOrder(order, keyed)
  const { since: sinceMs, until: untilMs, ...rest } = order
  return portionOrder({ ...rest, sinceMs, untilMs }, keyed)
}

const hot = z.union(
  [z.strictObject({ until: instantField }), z.strictObject({ for: durationWithin(0, waits.hot.maxMs) })],
  {
    error: 'expected until (an ISO time with an offset) or for (a duration such as 30m)',
  },
)

const cool = z.strictObject({ until: instantField.optional() })

function hotUntil(body: unknown, nowMs: number): number {
  return hot
    .transform((order) => ('until' in order ? order.until : nowMs + order.for))
    .refine((untilMs) => untilMs > nowMs && untilMs <= nowMs + waits.hot.maxMs, {
      error: 'expected a time within the next 24 hours',
    })
    .parse(body ?? {})
}

const retryAbout = {
  says: 'Sends dead letters again',
  body: deadLetters,
  takesKey: true as const,
  answer: portionAnswer('retried'),
}
const dropAbout = {
  says: 'Deletes dead letters',
  body: deadLetters,
  takesKey: true as const,
  answer: portionAnswer('dropped'),
}
const replayAbout = {
  says: 'Sends alerts again on purpose',
  body: replay,
  takesKey: true as const,
  answer: portionAnswer('queued'),
}
const retryRowsAbout = {
  says: 'Reads rows again that could not be read',
  body: rows,
  takesKey: true as const,
  answer: quarantineRetry,
}
const dropRowsAbout = {
  says: 'Deletes rows that could not be read',
  body: rows,
  takesKey: true as const,
  answer: z.object({ dropped: count }),
}
const sinkState = (state: string) => z.object({ sink: z.string(), state: z.literal(state) })
const pauseAbout = {
  says: 'Pauses a sink: its alerts wait in the queue',
  body: pause,
  answer: sinkState('paused').extend({ id: z.string(), until: instant.optional() }),
}
const resumeAbout = {
  says: 'Resumes a paused sink; with the id of a pause, only where no other one has taken its place',
  body: resume,
  answer: sinkState('active'),
}
const probeAbout = {
  says: 'Sends one alert now to a sink whose breaker is open',
  answer: sinkState('probing'),
}
const hotAbout = {
  says: 'Polls a source more often for a while',
  body: hot,
  answer: z.object({ source: z.string(), until: instant }),
}
const coolAbout = {
  says: 'Ends that a source is polled more often',
  body: cool,
  answer: z.object({ source: z.string(), state: z.literal('planned') }),
}
