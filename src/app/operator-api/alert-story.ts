import type { AlertStory } from '../../admin/delivery-view.ts'
import { alertKey, parseRow } from '../../alert/alert.ts'
import { headlineOf } from '../../alert/display.ts'
import { openReader } from '../../delivery/records/search.ts'
import { given } from '../../lib/given.ts'
import { auditMax } from '../../store/audit.ts'
import type { WithheldRecord } from '../../store/withheld.ts'
import type { ActiveConfig } from '../active-config.ts'
import { readerOptions } from './delivery-search.ts'
import { deliveryStoryOf, isoOf } from './views.ts'
import { withheldRecord, withheldView } from './withheld.ts'

/** The whole story of one alert: its deliveries, and the record of what was withheld. */
export async function alertStoryOf(
  config: ActiveConfig,
  source: string,
  id: number,
): Promise<AlertStory | undefined> {
  const [parts, record, done, reader] = await Promise.all([
    config.deliveryLog.historiesOf({ source, id }),
    withheldRecord(config, source, id),
    config.audit.list(auditMax),
    openReader(readerOptions(config)),
  ])
  const alert = parts[0]?.alert ?? alertOf(source, record)
  if (alert === undefined) return undefined
  const orders = new Set(parts.map(({ requestedAtMs }) => requestedAtMs))
  const actions = done.filter(
    ({ ids, order }) => ids.includes(`${source}.${id}`) || (order !== null && orders.has(Date.parse(order))),
  )
  // While a config is rolled out, another process may have the sink in its own.
  const isOurs = parts.every(({ sink }) => config.sinks.has(sink))
  const unserved = isOurs ? [] : await config.orphans.unserved()
  const seenAtMs = parts[0]?.seenAtMs ?? record?.seenAtMs
  return {
    ...alert,
    seenAt: seenAtMs === undefined ? null : new Date(seenAtMs).toISOString(),
    page: parts[0]?.page ?? null,
    deliveries: parts.map((part) => deliveryStoryOf(part, unserved)),
    held: record?.held.map(withheldView) ?? [],
    dropped: (await reader.dropped([alertKey({ source, id })])).map(({ sink, target, atMs }) => ({
      sink,
      ...given({ target }),
      at: isoOf(atMs),
    })),
    actions,
  }
}

function alertOf(source: string, record: WithheldRecord | undefined) {
  const parsed = record && parseRow(source, record.row)
  if (!parsed?.ok) return undefined
  const { id, kind, symbol, url, why, ruleIds, firedAt } = parsed.alert
  const headline = headlineOf(parsed.alert)
  return { source, id, kind, symbol, headline, url, why, ruleIds, firedAt }
}
