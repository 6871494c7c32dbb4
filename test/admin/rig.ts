import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { buildAdmin } from '../../src/admin/admin.ts'
import type { AdminDeps, AdminPorts } from '../../src/admin/ports.ts'
import type { AuditRow } from '../../src/admin/views/audit-view.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Secret } from '../../src/lib/secret.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { letterGroups, nowMs, orphan, quarantined, row, sourceDay, status } from './views.ts'

export const token = 'correct horse battery staple'.replaceAll(' ', '-')
export const authorised = { authorization: `Bearer ${token}` }

export interface Rig {
  readonly app: FastifyInstance
  /** What the ports were asked to do, in order: name and arguments. */
  readonly calls: [string, ...unknown[]][]
  /** What was recorded for other operators. */
  readonly audited: AuditRow[]
  /** What was logged, one JSON object a line. */
  readonly logged: string[]
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<LightMyRequestResponse>
}

/** As a store that forgets at once. */
const keepsNothing: AdminPorts['idempotency'] = {
  begin: async (_key, _request, atMs) => ({ kind: 'begun', atMs, name: 'it', keep: async (value) => value }),
  finish: async () => {},
  release: async () => {},
  forget: async () => {},
}

const moved = { there: 1, busy: 0, unreadable: 0, gone: 0, looked: 5, total: 9, atMs: nowMs }
const portion = { gone: 1, looked: 4, total: 9, atMs: nowMs, missing: [] }

/** The admin server over a bridge that holds one alert, knows sink `ops-slack` and source `main`, and notes its orders. */
export function rig(changes: Partial<AdminPorts> = {}, deps: Partial<AdminDeps> = {}): Rig {
  const calls: Rig['calls'] = []
  const logged: string[] = []
  const audited: AuditRow[] = []
  const note =
    <A extends unknown[], R>(name: string, answer: (...args: A) => R) =>
    async (...args: A): Promise<R> => {
      calls.push([name, ...args])
      return answer(...args)
    }
  const ports: AdminPorts = {
    metricsText: async () => '# HELP alert_bridge_build_info The running build; always 1.\n',
    hung: () => undefined,
    status: async () => status(),
    reload: note('reload', () => ({ ok: true })),
    quarantine: {
      list: note('quarantine', () => [quarantined]),
      retry: note('retry rows', () => ({ retried: 1, unreadable: 2 })),
      drop: note('drop rows', () => 4),
    },
    deliveries: {
      search: note('search', ({ cursor }) => ({
        ...{ data: [row()], looked: 1 },
        ...(cursor === undefined ? { cursor: 'older' } : {}),
      })),
      changed: note('changed', () => [row()]),
      stored: note('stored', () => ({ data: [], dropped: [] })),
      explain: note('explain', (source: string, id: number, atMs: number) =>
        source === 'main' && id === 48_213 ? { ...explanation, at: new Date(atMs).toISOString() } : undefined,
      ),
      story: note('story', (source: string, id: number) => {
        if (source !== 'main' || id !== 48_213) return undefined
        const { sink: _, state: __, attempts: ___, updatedAt: ____, reason: _____, ...alert } = row()
        return {
          ...alert,
          why: null,
          ruleIds: [],
          page: null,
          deliveries: [],
          held: [],
          dropped: [],
          actions: [],
        }
      }),
    },
    deadLetters: {
      list: note('dead', () => ({
        data: [row({ state: 'dead', reason: 'gone' }) as never],
        total: 1_200,
        cursor: 'next',
      })),
      groups: async () => letterGroups,
      retry: note('retry', () => ({ ...portion, handled: 3, cursor: 'further' })),
      drop: note('drop', () => ({ ...portion, handled: 2 })),
    },
    replay: note('replay', () => ({ ...portion, handled: 2, missing: ['main.9'] })),
    audit: { add: async (row) => void audited.unshift(row), list: async (limit) => audited.slice(0, limit) },
    idempotency: keepsNothing,
    sinks: {
      pause: note('pause', (name: string) => (name === 'ops-slack' ? 'p1' : undefined)),
      activity: async () => [
        {
          sink: 'trading-system',
          hours: [
            { delivered: 8, dead: 0 },
            { delivered: 3, dead: 1 },
          ],
          quarters: [
            undefined,
            { queued: 4, sendMs: undefined },
            { queued: 340, sendMs: 1_600 },
            { queued: 0, sendMs: 20 },
          ],
        },
      ],
      probe: note('probe', (name: string) => name === 'ops-slack'),
      resume: note('resume', (name: string) => name === 'ops-slack'),
    },
    orphans: {
      list: note('orphans', () => [orphan]),
      deliveries: note('orphan', () => ({ data: [row({ state: 'waiting' })], looked: 1 })),
      move: note('move', () => ({ ...moved, handled: 4, cursor: 'further' })),
      drop: note('drop orphan', () => ({ ...moved, handled: 5 })),
    },
    sources: {
      hot: note('hot', (name: string) => name === 'main'),
      cool: note('cool', (name: string) => name === 'main'),
      day: note('day', (name: string) => (name === 'main' ? sourceDay : undefined)),
      seen: note('seen', (source: string, id: number) =>
        source === 'main'
          ? {
              source,
              id,
              seen: id === 47_000,
              forgets: false,
              leavesOut: true,
              leftOut: 1_234,
              dropped: false,
            }
          : undefined,
      ),
      plan: note('plan', (name: string) => ({
        source: name,
        budget: {},
        poll: {},
        unitsPerDay: 100,
        learned: null,
      })),
    },
    rules: note('rules', () => []),
    silences: {
      list: note('silences', () => []),
      add: note('add', ({ match, comment, startsAtMs, endsAtMs }) => ({
        id: 's1',
        match,
        comment,
        startsAt: new Date(startsAtMs).toISOString(),
        endsAt: new Date(endsAtMs).toISOString(),
        problem: null,
      })),
      preview: note('preview', () => ({ matching: 1, looked: 9, sample: [] })),
      expire: note('expire', (id: string) => id === 's1'),
    },
    ...changes,
  }
  const destination = { write: (line: string) => void logged.push(line) }
  const app = buildAdmin({
    ports,
    adminToken: () => new Secret(token),
    hosts: () => [],
    display: () => ({ timeZone: 'Asia/Tehran', calendar: 'jalali', language: 'en' }),
    clock: { ...systemClock, now: () => nowMs },
    log: createLogger({ level: 'info', destination }),
    ...deps,
  })
  const post: Rig['post'] = (path, body, headers = authorised) =>
    app.inject({
      method: 'POST',
      url: path,
      headers,
      ...(body === undefined ? {} : { payload: body as object }),
    })
  return { app, calls, logged, audited, post }
}

/** Fails unless the answer is a problem by RFC 9457 with this status; gives its detail. */
export function problemOf(response: LightMyRequestResponse, expectedStatus: number): string {
  const body = response.json()
  const ok =
    response.statusCode === expectedStatus &&
    String(response.headers['content-type']).startsWith('application/problem+json') &&
    body.status === expectedStatus &&
    body.type === 'about:blank' &&
    typeof body.title === 'string' &&
    typeof body.detail === 'string'
  if (!ok)
    throw new Error(`not a problem with status ${expectedStatus}: ${response.statusCode} ${response.body}`)
  return body.detail
}

const explanation = {
  alert: { source: 'main', id: 48_213, kind: 'price', symbol: null, ruleIds: ['12'] },
  sinks: ['trading-system'],
  decisions: [
    { index: 0, sinks: ['trading-system'], taken: true as const, reason: 'takes_everything' as const },
  ],
  text: 'main.48213: kind price\nsent to: trading-system\n',
}
