import type { DeliveryRow } from '../../admin/delivery-view.ts'
import { parseRow } from '../../alert/alert.ts'
import { headlineOf } from '../../alert/display.ts'
import type { WithheldRecord } from '../../store/withheld.ts'
import { inList, iso } from './views.ts'
import { withheldView } from './withheld.ts'

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
      const seenAt = iso(seenAtMs)
      return { ...alert, sink, seenAt, updatedAt: seenAt, state: 'held', attempts: 0, reason: text }
    })
  })
}
