import type { DeliveryStory } from '../../admin/delivery-view.ts'
import { parseRow } from '../../alert/alert.ts'
import { headlineOf } from '../../alert/display.ts'
import type { WithheldRecord } from '../../store/withheld.ts'
import type { InForce } from '../in-force.ts'
import { heldRecord, heldView } from './held.ts'
import { historyOf } from './views.ts'

/** One alert's whole way: from the sinks that were given it, and from the record of what was held back. */
export async function storyOf(
  config: InForce,
  source: string,
  id: number,
): Promise<DeliveryStory | undefined> {
  const [parts, record] = await Promise.all([
    config.deliveryLog.historiesOf({ source, id }),
    heldRecord(config, source, id),
  ])
  const alert = parts[0]?.alert ?? alertOf(source, record)
  if (alert === undefined) return undefined
  const seenAtMs = parts[0]?.seenAtMs ?? record?.seenAtMs
  return {
    ...alert,
    seenAt: seenAtMs === undefined ? null : new Date(seenAtMs).toISOString(),
    deliveries: parts.map(historyOf),
    held: record?.held.map(heldView) ?? [],
  }
}

function alertOf(source: string, record: WithheldRecord | undefined) {
  const parsed = record && parseRow(source, record.row)
  if (!parsed?.ok) return undefined
  const { id, kind, symbol, url, why, ruleIds, firedAt } = parsed.alert
  const headline = headlineOf(parsed.alert)
  return { source, id, kind, symbol, headline, url, why, ruleIds, firedAt }
}
