import type { AlertStory, DeliveryStory, SinkHold } from '../../admin/views/delivery-view.ts'
import type { SinkView } from '../../admin/views/status-view.ts'
import { alertKey, parseRow } from '../../alert/alert.ts'
import { summaryOf } from '../../delivery/records/job-view.ts'
import { openReader } from '../../delivery/records/search.ts'
import { given } from '../../lib/given.ts'
import { auditMax } from '../../store/operators/audit.ts'
import type { ActiveConfig } from '../active-config.ts'
import { readerOptions } from './delivery-search.ts'
import { deliveryStoryOf, isoOf, isoOrNull } from './views.ts'
import { lastingSilences, withheldRecord, withheldView } from './withheld.ts'

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
  const parsed = record && parseRow(source, record.row)
  const alert = parts[0]?.alert ?? (parsed?.ok ? summaryOf(parsed.alert) : undefined)
  if (alert === undefined) return undefined
  const orders = new Set(parts.map(({ requestedAtMs }) => requestedAtMs))
  const actions = done.filter(
    ({ ids, order }) => ids.includes(`${source}.${id}`) || (order !== null && orders.has(Date.parse(order))),
  )
  // While a config is rolled out, another process may have the sink in its own.
  const isOurs = parts.every(({ sink }) => config.sinks.has(sink))
  const unserved = isOurs ? [] : await config.orphans.unserved()
  const isLasting = await lastingSilences(config, [record])
  const seenAtMs = parts[0]?.seenAtMs ?? record?.seenAtMs
  return {
    ...alert,
    seenAt: isoOrNull(seenAtMs),
    page: parts[0]?.page ?? null,
    deliveries: parts.map((part) => deliveryStoryOf(part, unserved)),
    held: record?.held.map((entry) => withheldView(entry, isLasting)) ?? [],
    dropped: (await reader.dropped([alertKey({ source, id })])).map(({ sink, target, atMs }) => ({
      sink,
      ...given({ target }),
      at: isoOf(atMs),
    })),
    actions,
  }
}

/** Adds to each delivery that waits why its sink sends nothing, where it does not. */
export async function withHolds(
  story: AlertStory,
  sinks: () => Promise<readonly SinkView[]>,
): Promise<AlertStory> {
  const waits = ({ state }: DeliveryStory) => state === 'waiting' || state === 'delayed'
  if (!story.deliveries.some(waits)) return story
  const holds = new Map((await sinks()).flatMap((sink) => holdOf(sink)))
  const deliveries = story.deliveries.map((part) => {
    const heldUpBy = waits(part) ? holds.get(part.sink) : undefined
    return { ...part, ...given({ heldUpBy }) }
  })
  return { ...story, deliveries }
}

function holdOf(sink: SinkView): [string, SinkHold][] {
  const { name, state, reason, failingSince, nextProbeAt, heldUntil, pausedUntil } = sink
  if (state === 'active' && heldUntil === null) return []
  return [[name, { state, reason, failingSince, nextProbeAt, heldUntil, pausedUntil }]]
}
