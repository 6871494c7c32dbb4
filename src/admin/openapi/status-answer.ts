import * as z from 'zod'
import { lagSecondsMax } from '../../telemetry/lag-buckets.ts'
import { findingCodes } from '../finding.ts'
import type { StatusView } from '../views/status-view.ts'
import { count, instant, maybe, orphan, sinkHoldFields } from './answers.ts'
import { takes } from './takes.ts'

const text = z.string()
const lag = z
  .object({ p50: z.number(), p95: z.number() })
  .nullable()
  .describe(`In seconds, since this process started; ${lagSecondsMax} is that or more.`)

const budget = z.object({
  unitsUsed: z.number(),
  spentFor: z.array(z.object({ purpose: text, units: z.number() })),
  unitsPerDay: z.number(),
  startedAt: instant,
  resetsAt: instant,
  note: text.nullable(),
  tooThin: z.array(text),
})

const plan = z.object({
  learnedFrom: z.number(),
  firing: text,
  announced: z
    .object({
      follows: z.boolean(),
      ruleCount: count,
      rules: z.array(z.object({ id: text, name: text })),
    })
    .nullable(),
  hotUntil: maybe,
})

const source = z.object({
  name: text,
  state: z.enum([
    ...(['starting', 'running', 'catching_up', 'retrying', 'failing'] as const),
    ...(['budget_spent', 'queues_full', 'standby', 'stopped'] as const),
  ]),
  reason: text.nullable(),
  here: z.boolean(),
  fault: z.object({ why: text, reason: text }).nullable(),
  polledBy: text.nullable(),
  overdueSeconds: z.number(),
  lastPollAt: maybe,
  nextPollAt: maybe,
  nextReason: text.nullable(),
  budget: budget.nullable(),
  plan: plan.nullable(),
  rules: z
    .object({
      readAt: instant,
      count,
      unread: count.describe(
        'How many more there are: the newest were read, as many as an hour and poll.rulesShare buy.',
      ),
      silentCount: count,
      silent: z.array(z.object({ id: text, name: text, text })),
    })
    .nullable(),
  notes: z.array(text),
  behind: z.boolean(),
  lastCompleteWalkAt: maybe,
  lag,
})

const sink = z.object({
  name: text,
  type: text,
  state: z.enum(['active', 'paused', 'open', 'stuck']),
  ...sinkHoldFields,
  waiting: count.nullable(),
  active: count.nullable(),
  delayed: count.nullable(),
  dead: count.nullable(),
  deliveredToday: count.nullable(),
  lag,
  lastResult: z.object({ at: instant, kind: z.enum(['delivered', 'retry', 'dead']), text }).nullable(),
  oldestWaitingAt: maybe,
  drainSeconds: z.number().nullable(),
  refusedInARow: count.nullable(),
  putOffSince: maybe,
})

const verdict = z.object({
  ready: z.boolean(),
  level: z.enum(['ok', 'warning', 'failed']),
  headline: text,
  findings: z.array(
    z.object({
      level: z.enum(['warning', 'failed']),
      code: z.enum(findingCodes),
      data: z.record(text, z.unknown()).describe('What the text is made of, such as the name of the sink.'),
      text,
      href: text,
      blocks: z.boolean(),
      trouble: text.optional(),
    }),
  ),
})

export const statusAnswer = takes<StatusView>()(
  z.object({
    ready: z.object({ ok: z.boolean(), reason: text.optional() }),
    verdict,
    version: text,
    startedAt: instant,
    uptimeSeconds: count,
    role: text,
    draining: z.boolean(),
    redis: z.object({ ok: z.boolean(), error: text.optional(), trouble: text.optional() }),
    sources: z.array(source),
    sinks: z.array(sink),
    unrouted: count.nullable(),
    quarantined: count.nullable(),
    quarantineFellOut: count.nullable(),
    orphans: z.array(orphan).nullable(),
    processes: z.array(
      z.object({
        name: text,
        role: text,
        configHash: z.number(),
        hasOurConfig: z.boolean(),
        refusedReload: z.boolean(),
      }),
    ),
    refusedReload: z.object({ at: instant, mistakes: z.array(text) }).nullable(),
  }),
)
