import type { SourceDayView } from '../../src/admin/ports.ts'
import { findingsText, verdictOf } from '../../src/admin/verdict.ts'
import type { DeliveryRow, LetterGroupsView, SilenceView } from '../../src/admin/views/delivery-view.ts'
import type { OrphanView } from '../../src/admin/views/orphan-view.ts'
import type {
  QuarantinedRow,
  SinkView,
  SourceView,
  StatusFacts,
  StatusView,
} from '../../src/admin/views/status-view.ts'

/** A bridge in the middle of a trading day, as the ports of the admin server would tell it. */
export const nowMs = Date.parse('2026-11-21T08:33:10Z')

export function ago(seconds: number): string {
  return new Date(nowMs - seconds * 1_000).toISOString()
}

export function source(changes: Partial<SourceView> = {}): SourceView {
  return {
    name: 'main',
    state: 'running',
    reason: null,
    here: true,
    fault: null,
    polledBy: 'web-1, process 7, running since 2026-11-18T04:26:30.000Z',
    overdueSeconds: 0,
    lastPollAt: ago(12),
    nextPollAt: ago(-9),
    nextReason: 'expected',
    budget: {
      unitsUsed: 1_240,
      spentFor: [
        { purpose: 'poll', units: 1_150 },
        { purpose: 'context', units: 61 },
        { purpose: 'rules', units: 20 },
        { purpose: 'walk', units: 6 },
        { purpose: 'api', units: 3 },
      ],
      unitsPerDay: 2_000,
      startedAt: '2026-11-20T20:30:00Z',
      resetsAt: '2026-11-21T20:30:00Z',
      note: null,
      tooThin: [],
    },
    rules: null,
    plan: { learnedFrom: 1_240, firing: 'at any time, as far as seen', announced: null, hotUntil: null },
    notes: [],
    behind: false,
    lastCompleteWalkAt: ago(12),
    lag: { p50: 8.4, p95: 21 },
    ...changes,
  }
}

/** A process that polls with another config than the one that is asked. */
export const otherPoller: StatusFacts['processes'][number] = {
  name: 'web-2, process 9',
  role: 'poller',
  configHash: 5,
  hasOurConfig: false,
  refusedReload: false,
}

/** Twelve hours of it are over; the thirteenth has begun. */
export const sourceDay: SourceDayView = {
  source: 'main',
  startedAt: '2026-11-20T20:30:00Z',
  resetsAt: '2026-11-21T20:30:00Z',
  sharers: 1,
  hours: Array.from({ length: 24 }, (_, hour) => ({
    startedAt: new Date(Date.parse('2026-11-20T20:30:00Z') + hour * 3_600_000).toISOString(),
    planned: hour >= 8 && hour <= 12 ? 200 : 40,
    units: hour > 12 ? 0 : hour >= 8 ? 190 : 42,
    alerts: hour >= 9 && hour <= 12 ? 7 * (hour - 8) : 0,
  })),
}

export function sink(changes: Partial<SinkView> = {}): SinkView {
  return {
    name: 'trading-system',
    type: 'webhook',
    state: 'active',
    reason: null,
    failingSince: null,
    nextProbeAt: null,
    heldUntil: null,
    pausedUntil: null,
    waiting: 0,
    active: 1,
    delayed: 0,
    dead: 0,
    deliveredToday: 412,
    lag: { p50: 8.9, p95: 22.5 },
    lastResult: { at: ago(31), kind: 'delivered', text: '204' },
    oldestWaitingAt: null,
    putOffSince: null,
    drainSeconds: null,
    refusedInARow: 0,
    ...changes,
  }
}

export function status(changes: Partial<StatusFacts> = {}): StatusView {
  const all = { ...facts(), ...changes }
  const verdict = verdictOf(all, nowMs)
  return { ...all, ready: { ok: verdict.ready, reason: findingsText(verdict) }, verdict }
}

function facts(): StatusFacts {
  return {
    version: '0.1.0',
    startedAt: ago(274_000),
    uptimeSeconds: 274_000,
    role: 'all',
    draining: false,
    redis: { ok: true },
    sources: [source()],
    sinks: [
      sink(),
      sink({ name: 'ops-slack', type: 'slack', active: 0, deliveredToday: 97, lag: { p50: 9.6, p95: 24.1 } }),
    ],
    unrouted: 0,
    orphans: [],
    processes: [
      {
        name: 'web-1, process 7, running since 2026-11-18T04:26:30.000Z',
        role: 'all',
        configHash: 171,
        hasOurConfig: true,
        refusedReload: false,
      },
    ],
    refusedReload: null,
    quarantined: 0,
    quarantineFellOut: 0,
  }
}

export const orphan: OrphanView = {
  kind: 'sink',
  name: 'old-slack',
  waiting: 250,
  sending: 0,
  delayed: 10,
  dead: 3,
}

export const letterGroups: LetterGroupsView = {
  data: [
    {
      ...{ sink: 'ops-slack', reason: 'rejected', count: 1_200, firstAt: ago(86_400), lastAt: ago(60) },
      ...{ sample: 'rejected: 400 <b>no such channel</b>', sampleAlert: { source: 'main', id: 4_711 } },
    },
  ],
  looked: 1_200,
  total: 3_000,
}

export const quarantined: QuarantinedRow = {
  source: 'main',
  key: 'raw-0123',
  reason: 'id: expected a whole number',
  seenAt: ago(60),
  raw: '{"kind":"price"}',
}

export function row(changes: Partial<DeliveryRow> = {}): DeliveryRow {
  return {
    source: 'main',
    id: 48_213,
    kind: 'price',
    symbol: 'فولاد',
    headline: 'فولاد از ۵٬۲۰۰ ریال گذشت',
    url: 'https://example.com/alerts/48213',
    firedAt: ago(39),
    seenAt: ago(31),
    sink: 'trading-system',
    state: 'delivered',
    attempts: 1,
    updatedAt: ago(31),
    reason: null,
    ...changes,
  }
}

export function silence(changes: Partial<SilenceView> = {}): SilenceView {
  return {
    ...{ id: '1a', match: { symbol: 'فولاد' }, startsAt: ago(60), endsAt: ago(-3_600) },
    ...{ comment: '', problem: null },
    ...changes,
  }
}
