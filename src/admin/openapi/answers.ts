import * as z from 'zod'
import type { QuarantineRetry, SeenView, SilencePreview, SourceDayView, SourcePlanView } from '../ports.ts'
import type { AuditRow } from '../views/audit-view.ts'
import {
  type AlertStory,
  type DeadLetterRow,
  type DeliveryRow,
  deliveryStates,
  type ExplanationView,
  type LetterGroupsView,
  rowStates,
  type SilenceView,
  type StoredAlert,
} from '../views/delivery-view.ts'
import type { OrphanView } from '../views/orphan-view.ts'
import type { QuarantinedRow } from '../views/status-view.ts'
import { takes } from './takes.ts'

/** The JSON answers of the API, for its document. The compiler checks them against what the bridge answers. */

export const instant = z.iso.datetime({ offset: true })
export const maybe = instant.nullable()
export const count = z.int().min(0)
const text = z.string()

const alertFields = {
  source: text,
  id: z.int(),
  kind: text,
  symbol: text.nullable(),
  headline: text,
  url: text,
  firedAt: text.describe('As the API of the market has it.'),
  seenAt: maybe,
  why: text.nullable().optional(),
  ruleIds: z.array(text).optional(),
}

const rowFields = {
  ...alertFields,
  sink: text,
  target: text.optional(),
  attempts: count,
  updatedAt: maybe,
  nextAttemptAt: maybe.optional(),
}

const withheldCause = z.object({
  route: text.nullable(),
  reason: z.enum(['silenced', 'muted', 'throttled', 'unrouted']),
  until: maybe,
  silence: text.nullable(),
  comment: text.nullable(),
})

export const deliveryRow = takes<DeliveryRow>()(
  z.object({
    ...rowFields,
    state: z.enum(rowStates),
    reason: text.nullable(),
    withheld: withheldCause.optional().describe('The facts behind `reason`, where `state` is `held`.'),
  }),
)
export const deadLetter = takes<DeadLetterRow>()(
  z.object({ ...rowFields, state: z.literal('dead'), reason: text }),
)

export const auditRow = takes<AuditRow>()(
  z.object({
    at: instant,
    action: text,
    subject: text,
    ids: z.array(text),
    count: count.nullable(),
    comment: text,
    by: text,
    from: text,
    order: maybe,
  }),
)

const attempt = z.object({
  number: count,
  round: count,
  at: instant,
  durationSeconds: z.number(),
  outcome: z.enum(['delivered', 'retry', 'dead']),
  reason: text.nullable(),
  status: z.int().nullable(),
  text,
  skipped: z.array(z.object({ what: text, why: text })).optional(),
})

/** Why a sink does not send, and until when. */
export const sinkHoldFields = {
  reason: text.nullable(),
  failingSince: maybe,
  nextProbeAt: maybe,
  heldUntil: maybe,
  pausedUntil: maybe,
}

export const alertStory = takes<AlertStory>()(
  z.object({
    ...alertFields,
    page: count.nullable(),
    why: text.nullable(),
    ruleIds: z.array(text),
    deliveries: z.array(
      z.object({
        sink: text,
        target: text.optional(),
        routes: z.array(text).nullable(),
        state: z.enum(deliveryStates),
        orphaned: z.literal(true).optional(),
        heldUpBy: z
          .object({ state: z.enum(['active', 'paused', 'open', 'stuck']), ...sinkHoldFields })
          .optional(),
        reason: text.nullable(),
        nextAttemptAt: maybe,
        requestedAt: maybe,
        attempts: z.array(attempt),
      }),
    ),
    held: z.array(withheldCause.extend({ sinks: z.array(text), text })),
    dropped: z.array(z.object({ sink: text, target: text.optional(), at: instant })),
    actions: z.array(auditRow),
  }),
)

export const letterGroups = takes<LetterGroupsView>()(
  z.object({
    data: z.array(
      z.object({
        sink: text,
        reason: text,
        count,
        firstAt: instant,
        lastAt: instant,
        sample: text,
        sampleAlert: z.object({ source: text, id: z.int() }),
      }),
    ),
    looked: count,
    total: count,
  }),
)

const match = z.record(text, z.unknown())

export const silence = takes<SilenceView>()(
  z.object({ id: text, match, startsAt: instant, endsAt: instant, comment: text, problem: text.nullable() }),
)

export const silencePreview = takes<SilencePreview>()(
  z.object({
    matching: count,
    looked: count,
    partial: z.literal(true).optional(),
    sample: z.array(z.object({ source: text, id: z.int(), headline: text })),
  }),
)

export const quarantinedRow = takes<QuarantinedRow>()(
  z.object({ source: text, key: text, reason: text, seenAt: instant, raw: text }),
)
export const quarantineRetry = takes<QuarantineRetry>()(z.object({ retried: count, unreadable: count }))

export const orphan = takes<OrphanView>()(
  z.union([
    z.object({
      kind: z.literal('sink'),
      name: text,
      waiting: count,
      sending: count,
      delayed: count,
      dead: count,
    }),
    z.object({
      kind: z.literal('source'),
      name: text,
      lastPollAt: maybe,
      rows: count,
      held: count,
      quarantined: count,
    }),
  ]),
)

export const sourceDay = takes<SourceDayView>()(
  z.object({
    source: text,
    startedAt: instant,
    resetsAt: instant,
    sharers: count,
    hours: z.array(z.object({ startedAt: instant, planned: z.number(), units: count, alerts: count })),
  }),
)

const fields = z.record(text, z.unknown())
const storedAlert = takes<StoredAlert>()(
  z.object({
    source: text,
    id: z.int(),
    seenAt: instant,
    row: fields,
    sent: z.array(z.object({ sink: text, routes: z.array(text).nullable() })),
    held: z.array(
      z.object({
        route: text.nullable(),
        sinks: z.array(text),
        reason: z.enum(['silenced', 'muted', 'throttled', 'unrouted']),
      }),
    ),
  }),
)
export const explanation = takes<ExplanationView>()(
  z.object({
    alert: z.object({
      source: text,
      id: z.int(),
      kind: text,
      symbol: text.nullable(),
      ruleIds: z.array(text),
    }),
    at: instant,
    sinks: z.array(text),
    text,
    decisions: z.array(z.looseObject({ index: count, taken: z.boolean(), reason: text })),
  }),
)

export const sourcePlan = takes<SourcePlanView>()(
  z.object({
    source: text,
    budget: fields,
    poll: fields,
    unitsPerDay: count,
    unitsOfAccount: count.optional(),
    paces: z.array(z.number().nullable()).optional(),
    resetsAt: text.optional(),
    learned: z.unknown(),
  }),
)

export const seenRow = takes<SeenView>()(
  z.object({
    source: text,
    id: count,
    seen: z.boolean(),
    forgets: z.boolean(),
    leavesOut: z.boolean(),
    leftOut: count,
    dropped: z.boolean(),
  }),
)

export const rule = z
  .looseObject({ source: text, silent: text.nullable() })
  .describe('As the API of the market has it, with its source and why it may not fire.')

export const cursor = text.nullable().describe('Of the next page; null on the last one.')

export function pageAnswer<S extends z.ZodType>(row: S) {
  return z.object({ data: z.array(row), total: count, cursor })
}

/** Without a total, which would cost a look at everything. */
export const storedAnswer = searchAnswer(storedAlert).extend({
  dropped: z
    .array(text)
    .describe(
      '`SOURCE.ID` of those of which a dead letter was dropped: where else they had gone is not known.',
    ),
})

export function searchAnswer<S extends z.ZodType>(row: S) {
  return z.object({ data: z.array(row), looked: count.optional(), cursor })
}

export function oneAnswer<S extends z.ZodType>(row: S) {
  return z.object({ data: row })
}

export const problem = z.looseObject({
  type: text,
  title: text,
  status: z.int(),
  detail: text.describe('One sentence that a person can act on.'),
  mistakes: z.array(text).optional(),
})
