import type { Alert } from '../../src/alert/alert.ts'
import { parseRow } from '../../src/alert/alert.ts'
import { type DeliveryJob, jobId } from '../../src/alert/job.ts'
import type { IntakeDeps } from '../../src/intake/intake.ts'
import type { PageAnswer, PollDeps } from '../../src/intake/poll-types.ts'
import type { WalkState } from '../../src/store/walk/walk-state.ts'
import { createLogger } from '../../src/telemetry/log.ts'
import { createMetrics, type Metrics, type Purpose } from '../../src/telemetry/metrics.ts'
import type { FeedPage, FeedRow } from '../../src/walk/page.ts'
import { clockAt } from '../support/clock.ts'

/** A feed in memory, newest first; what a test does to `rows` is what the next page shows. */
export interface MemoryRow {
  readonly key: string
  readonly id: number
  /** null: a row that cannot be read. */
  readonly firedAt: string | null
}

export class MemoryFeed {
  rows: MemoryRow[] = []
  readonly perPage: number
  #lastId = 0

  constructor(perPage = 100) {
    this.perPage = perPage
  }

  /** Adds rows on top, the last one newest. */
  add(count: number, firedAtMs: number | ((index: number) => number)): MemoryRow[] {
    const added = Array.from({ length: count }, (_, index) =>
      this.row(typeof firedAtMs === 'number' ? firedAtMs : firedAtMs(index)),
    )
    this.rows.unshift(...added.toReversed())
    return added
  }

  /** A row of its own, not yet on the feed. */
  row(firedAtMs: number, id?: number): MemoryRow {
    this.#lastId = Math.max(this.#lastId + 1, id ?? 0)
    const own = id ?? this.#lastId
    return { key: String(own), id: own, firedAt: new Date(firedAtMs).toISOString() }
  }

  bad(): MemoryRow {
    this.#lastId += 1
    return { key: `raw-${this.#lastId}`, id: this.#lastId, firedAt: null }
  }

  page(page: number): FeedPage {
    const { perPage, rows } = this
    const shown = rows.slice((page - 1) * perPage, page * perPage)
    const lastPage = Math.max(1, Math.ceil(rows.length / perPage))
    return { page, perPage, total: rows.length, lastPage, rows: shown.map(toFeedRow) }
  }
}

export function toFeedRow(row: MemoryRow): FeedRow {
  if (row.firedAt === null)
    return { ok: false, key: row.key, raw: { id: row.key }, reason: 'id: not a number' }
  const parsed = parseRow('main', {
    id: row.id,
    kind: 'price',
    payload: [],
    headline: `alert ${row.id}`,
    url: `https://example.com/${row.id}`,
    ruleIds: ['1'],
    firedAt: row.firedAt,
    channels: [],
    isRead: false,
  })
  if (!parsed.ok) throw new Error(parsed.reason)
  return { ok: true, key: row.key, alert: parsed.alert }
}

/** Queues that keep what they are given, by job id, like those of BullMQ while they remember a job. */
class MemoryQueues {
  readonly jobs = new Map<string, DeliveryJob>()
  readonly order: number[] = []
  repeats = 0

  async enqueue(jobs: readonly DeliveryJob[]): Promise<void> {
    for (const job of jobs) {
      const id = `${job.sink}/${jobId(job.alert, job.target)}`
      if (this.jobs.has(id)) {
        this.repeats += 1
        continue
      }
      this.jobs.set(id, job)
      this.order.push(job.alert.id)
    }
  }

  ids(): number[] {
    return [...new Set([...this.jobs.values()].map(({ alert }) => alert.id))].toSorted((a, b) => a - b)
  }
}

export interface MemoryRig {
  readonly feed: MemoryFeed
  readonly queues: MemoryQueues
  readonly metrics: Metrics
  readonly deps: PollDeps
  /** Every page that was asked for. */
  readonly asked: { readonly page: number; readonly purpose: Purpose }[]
  nowMs: number
  /** Answers instead of the feed, when it returns something. */
  answer: (page: number, purpose: Purpose) => PageAnswer | undefined
}

export const rigStartMs = Date.parse('2026-11-21T09:00:00Z')

export interface MemoryRigOptions {
  readonly feed?: MemoryFeed
  readonly route?: (alert: Alert) => readonly string[]
  /** To be shared by those who make many: every catalogue watches the process. */
  readonly metrics?: Metrics
}

export function memoryRig(state: WalkState, options: MemoryRigOptions = {}): MemoryRig {
  const { feed = new MemoryFeed(), route = () => ['desk'] } = options
  const queues = new MemoryQueues()
  const metrics = options.metrics ?? createMetrics({ version: 'test', node: 'test' })
  const asked: MemoryRig['asked'] = []
  const intake: IntakeDeps = {
    queues,
    prepareAssign: async () => async (alerts) =>
      alerts.map((alert) => ({
        sinks: route(alert).map((sink) => ({ sink, routes: ['routes[0]'] })),
        withheld: [],
      })),
    targets: new Map([['mail', ['a@example.com', 'b@example.com']]]),
    onHandled: () => {},
  }
  const rig: MemoryRig = {
    feed,
    queues,
    metrics,
    asked,
    nowMs: rigStartMs,
    answer: () => undefined,
    deps: {
      async readPage(page, purpose) {
        asked.push({ page, purpose })
        return rig.answer(page, purpose) ?? { kind: 'page', page: feed.page(page) }
      },
      state,
      inForce: { intake },
      clock: clockAt(() => rig.nowMs),
      log: createLogger({ level: 'silent' }),
      metrics,
    },
  }
  return rig
}
