import type { DeliveryRow, WithheldCause, WithheldView } from '../../admin/delivery-view.ts'
import { alertOfKey, parseRow } from '../../alert/alert.ts'
import { headlineOf } from '../../alert/display.ts'
import type { DeliveryJob } from '../../alert/job.ts'
import type { WithheldEntry, WithheldRecord } from '../../store/withheld.ts'
import type { ActiveConfig } from '../active-config.ts'
import { inList, isoOrNull } from './views.ts'

/** What was withheld, as the API shows it. */
export function withheldView(entry: WithheldEntry): WithheldView {
  const { sinks, comment } = entry
  const cause = causeOf(entry)
  return { ...cause, sinks, text: textOf(entry, cause.until, comment) }
}

function causeOf({ route, reason, untilMs, silenceId, comment }: WithheldEntry): WithheldCause {
  return { route, reason, until: isoOrNull(untilMs), silence: silenceId ?? null, comment: comment || null }
}

/** What was withheld of one alert as rows of the list: one a sink that did not get it. */
export function withheldRowsOf(source: string, { row, seenAtMs, held }: WithheldRecord): DeliveryRow[] {
  const parsed = parseRow(source, row)
  if (!parsed.ok) return []
  const { id, kind, symbol, url, why, ruleIds, firedAt } = parsed.alert
  const headline = headlineOf(parsed.alert)
  const alert = inList({ source, id, kind, symbol, headline, url, why, ruleIds, firedAt })
  return held.flatMap((entry) => {
    const { text } = withheldView(entry)
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
        withheld: causeOf(entry),
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
  const { alert } = parsed
  return (config.targets.get(sink) ?? [undefined]).map((target) => ({
    sink,
    alert,
    seenAtMs,
    requestedAtMs: nowMs,
    ...(target === undefined ? {} : { target }),
  }))
}

function textOf({ route, reason, silenceId }: WithheldEntry, until: string | null, comment = ''): string {
  switch (reason) {
    case 'unrouted':
      return 'no route names a sink for it'
    case 'muted':
      return `held back by route ${route}: muted until ${until}`
    case 'silenced':
      return `held back from route ${route}: silenced by ${silenceId} until ${until}${comment && ` (${comment})`}`
    case 'throttled':
      return `held back by route ${route}: throttled until ${until}`
  }
}
