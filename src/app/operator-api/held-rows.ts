import type { DeliveryRow } from '../../admin/delivery-view.ts'
import { parseRow } from '../../alert/alert.ts'
import { headlineOf } from '../../alert/display.ts'
import { NotFoundError } from '../../lib/errors.ts'
import type { WithheldRecord } from '../../store/withheld.ts'
import type { ActiveConfig } from '../active-config.ts'
import { inList, iso } from './views.ts'
import { withheldView } from './withheld.ts'

/** What was withheld as rows of the list: one a sink that did not get it, the newest first. */
export async function heldRows(
  config: ActiveConfig,
  { limit, sink }: { readonly limit: number; readonly sink?: string },
): Promise<DeliveryRow[]> {
  if (sink !== undefined && !config.sinks.has(sink)) throw new NotFoundError(`There is no sink ${sink}.`)
  const sources = Object.keys(config.config.sources).map(async (source) => {
    const records = (await config.routing.withheldIn(source)?.newest(limit)) ?? []
    return records.flatMap((record) => rowsOf(source, record))
  })
  return (await Promise.all(sources))
    .flat()
    .filter((row) => sink === undefined || row.sink === sink)
    .sort((a, b) => (b.seenAt ?? '').localeCompare(a.seenAt ?? ''))
    .slice(0, limit)
}

function rowsOf(source: string, { row, seenAtMs, held }: WithheldRecord): DeliveryRow[] {
  const parsed = parseRow(source, row)
  if (!parsed.ok) return []
  const { id, kind, symbol, url, why, ruleIds, firedAt } = parsed.alert
  const headline = headlineOf(parsed.alert)
  const alert = inList({ source, id, kind, symbol, headline, url, why, ruleIds, firedAt })
  return held.flatMap((entry) => {
    const { text } = withheldView(entry)
    const sinks = entry.sinks.length > 0 ? entry.sinks : ['no sink']
    return sinks.map((sink): DeliveryRow => {
      const seenAt = iso(seenAtMs)
      return { ...alert, sink, seenAt, updatedAt: seenAt, state: 'held', attempts: 0, reason: text }
    })
  })
}
