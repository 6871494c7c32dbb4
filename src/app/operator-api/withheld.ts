import type { DeliveryRow, WithheldCause, WithheldView } from '../../admin/views/delivery-view.ts'
import { alertOfKey, parseRow } from '../../alert/alert.ts'
import { type DeliveryJob, forTargets } from '../../alert/job.ts'
import { summaryOf } from '../../delivery/records/job-view.ts'
import type { WithheldEntry, WithheldRecord } from '../../store/walk/withheld.ts'
import type { ActiveConfig } from '../active-config.ts'
import { inList, isoOrNull } from './views.ts'

/** What was withheld, as the API shows it. */
export function withheldView(entry: WithheldEntry, isLasting: IsLasting): WithheldView {
  const { sinks } = entry
  const cause = causeOf(entry, isLasting)
  return { ...cause, sinks, text: textOf(cause) }
}

/** Of a silence: an operator may have ended it before the time that is in the record of what it held back. */
export type IsLasting = (silenceId: string) => boolean

/** Asks for the silences only where one of these records needs it. */
export async function lastingSilences(
  { routing }: ActiveConfig,
  records: readonly (WithheldRecord | undefined)[],
): Promise<IsLasting> {
  const nowMs = Date.now()
  const mayLast = ({ silenceId, untilMs = 0 }: WithheldEntry) => silenceId !== undefined && untilMs > nowMs
  if (!records.some((record) => record?.held.some(mayLast))) return () => true
  const lasting = new Set((await routing.silences.list(nowMs)).map(({ id }) => id))
  return (id) => lasting.has(id)
}

function causeOf(
  { route, reason, untilMs, silenceId, comment }: WithheldEntry,
  isLasting: IsLasting,
): WithheldCause {
  const isOver = silenceId !== undefined && (untilMs ?? 0) > Date.now() && !isLasting(silenceId)
  const until = isOver ? null : isoOrNull(untilMs)
  return { route, reason, until, silence: silenceId ?? null, comment: comment || null }
}

/** What was withheld of one alert as rows of the list: one a sink that did not get it. */
export function withheldRowsOf(
  source: string,
  { row, seenAtMs, held }: WithheldRecord,
  isLasting: IsLasting,
): DeliveryRow[] {
  const parsed = parseRow(source, row)
  if (!parsed.ok) return []
  const alert = inList(summaryOf(parsed.alert))
  return held.flatMap((entry) => {
    const { sinks: _, text, ...cause } = withheldView(entry, isLasting)
    const sinks = entry.sinks.length > 0 ? entry.sinks : ['no sink']
    return sinks.map((sink): DeliveryRow => {
      const seenAt = isoOrNull(seenAtMs)
      return {
        ...alert,
        sink,
        seenAt,
        updatedAt: seenAt,
        state: 'held',
        attempts: 0,
        reason: text,
        withheld: cause,
      }
    })
  })
}

export async function withheldRecord(
  config: ActiveConfig,
  source: string,
  id: number,
): Promise<WithheldRecord | undefined> {
  return config.routing.withheldIn(source).of(id)
}

/**
 * Queues those of these alerts (`SOURCE.ID`) that were withheld, for a sink that has no delivery of them. Returns the jobs, which
 * a dry run does not queue.
 */
export async function sendWithheld(
  config: ActiveConfig,
  order: {
    readonly ids: readonly string[]
    readonly sink: string
    readonly atMs: number
    readonly dryRun: boolean
  },
): Promise<DeliveryJob[]> {
  const { ids, sink, atMs, dryRun } = order
  const queued: DeliveryJob[] = []
  for (const name of ids) {
    const { source, id } = alertOfKey(name)
    const record = await withheldRecord(config, source, id)
    if (record === undefined) continue
    const jobs = jobsOf(config, record, { source, sink, nowMs: atMs })
    if (!dryRun) await config.queues.enqueue(jobs)
    queued.push(...jobs)
  }
  return queued
}

function jobsOf(
  config: ActiveConfig,
  { row, seenAtMs }: WithheldRecord,
  { source, sink, nowMs }: { source: string; sink: string; nowMs: number },
): DeliveryJob[] {
  const parsed = parseRow(source, row)
  if (!parsed.ok) return []
  const job = { sink, alert: parsed.alert, seenAtMs, requestedAtMs: nowMs }
  return forTargets(job, config.targets.get(sink))
}

function textOf({ route, reason, silence, until, comment }: WithheldCause): string {
  switch (reason) {
    case 'unrouted':
      return 'no route names a sink for it'
    case 'muted':
      return `held back by route ${route}: muted until ${until}`
    case 'silenced': {
      const end = until === null ? ', which was ended early' : ` until ${until}`
      return `held back from route ${route}: silenced by ${silence}${end}${comment === null ? '' : ` (${comment})`}`
    }
    case 'throttled':
      return `held back by route ${route}: throttled until ${until}`
  }
}
