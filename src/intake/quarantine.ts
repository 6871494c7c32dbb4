import { type Alert, parseRow } from '../alert/alert.ts'
import { parseJson } from '../alert/json/json-number.ts'
import type { Clock } from '../lib/clock.ts'
import type { Quarantined, QuarantineStore } from '../store/walk/quarantine.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { type IntakeDeps, isUnrouted, jobsOf } from './intake.ts'

/** Reads rows again that were quarantined, because an operator asked for it: what this version can read is sent by the present routes. */
interface RetryDeps {
  readonly source: string
  readonly store: Pick<QuarantineStore, 'replace'>
  readonly intake: IntakeDeps
  readonly clock: Clock
  readonly metrics: Metrics
}

export interface Retried {
  readonly sent: number
  /** Rows that still cannot be read, and stay. */
  readonly unreadable: number
}

const batchMax = 100

/** Rejects when Redis is away; what was sent until then is removed from the quarantine, the rest is still there. */
export async function retryQuarantined(deps: RetryDeps, rows: readonly Quarantined[]): Promise<Retried> {
  const readable = rows.flatMap((row) => {
    const alert = alertIn(deps.source, row)
    return alert === undefined ? [] : [{ key: row.key, alert }]
  })
  // The oldest first, as they would have come.
  const inOrder = readable.reverse()
  for (let from = 0; from < inOrder.length; from += batchMax)
    await send(deps, inOrder.slice(from, from + batchMax))
  return { sent: readable.length, unreadable: rows.length - readable.length }
}

/**
 * Removes the rows only when every job is stored, and the record of each alert that is withheld; after a crash the same job ids are
 * added again, which changes nothing.
 */
async function send(
  { source, store, intake, clock, metrics }: RetryDeps,
  batch: readonly { readonly key: string; readonly alert: Alert }[],
): Promise<void> {
  const nowMs = clock.now()
  const alerts = batch.map(({ alert }) => alert)
  const assignments = await store.replace(
    batch.map(({ key }) => key),
    async () => {
      const assign = await intake.prepareAssign()
      const made = await assign(alerts, nowMs)
      await intake.queues.enqueue(jobsOf(alerts, made, intake.targets, { seenAtMs: nowMs }))
      return made
    },
  )
  metrics.alertsSeen.inc({ source }, alerts.length)
  metrics.alertsUnrouted.inc({ source }, assignments.filter(isUnrouted).length)
  intake.onHandled(alerts)
}

function alertIn(source: string, { raw }: Quarantined): Alert | undefined {
  try {
    const parsed = parseRow(source, parseJson(raw))
    return parsed.ok ? parsed.alert : undefined
  } catch {
    // It was cut.
    return undefined
  }
}
