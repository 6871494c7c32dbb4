import { setImmediate as untilOthersRan } from 'node:timers/promises'
import type { StoredAlert, StoredAlertPage, StoredAlertQuery } from '../../admin/views/delivery-view.ts'
import { alertOfKey, noticeSource } from '../../alert/alert.ts'
import { readCursor, searchPlace, writeCursor } from '../../delivery/records/cursor.ts'
import { type FoundAlert, openReader } from '../../delivery/records/search.ts'
import { given } from '../../lib/given.ts'
import type { ActiveConfig } from '../active-config.ts'
import { readerOptions } from './delivery-search.ts'
import { isoOf } from './views.ts'

/** Alerts as the feed had them, with where they went: for a program that decides anew. One answer is bounded in bytes. */
export async function storedAlerts(
  config: ActiveConfig,
  { limit, sinceMs, untilMs, cursor }: StoredAlertQuery,
): Promise<StoredAlertPage> {
  const range = { fromMs: sinceMs ?? -Infinity, throughMs: untilMs ?? Infinity }
  const place = cursor === undefined ? undefined : readCursor(searchPlace, cursor)
  const alerts = await config.fired.before(range, place, limit)
  const reader = await openReader(readerOptions(config))
  const droppedNames = new Set((await reader.dropped(alerts.map(({ name }) => name))).map(({ name }) => name))
  const dropped = alerts.map(({ name }) => name).filter((name) => droppedNames.has(name))
  const data: StoredAlert[] = []
  let bytes = 0
  for await (const part of reader.read(alerts, {}))
    for (const each of part) {
      // A row may have 50,000 numbers that are read one by one.
      await untilOthersRan()
      const stored = storedAlertOf(each)
      if (stored === undefined) continue
      bytes += JSON.stringify(stored.row).length
      data.push(stored)
      if (bytes > answerBytesMax) return { data, dropped, cursor: writeCursor(each.fired) }
    }
  const last = alerts.length < limit ? undefined : alerts.at(-1)
  return { data, dropped, ...given({ cursor: last && writeCursor(last) }) }
}

const answerBytesMax = 4 * 1_048_576

function storedAlertOf(found: FoundAlert): StoredAlert | undefined {
  const { fired, jobs, withheld } = found
  const { source, id } = alertOfKey(fired.name)
  const seenAtMs = jobs[0]?.seenAtMs ?? withheld?.seenAtMs
  if (seenAtMs === undefined || source === noticeSource) return undefined
  const row = found.row()
  if (row === undefined) return undefined
  const bySink = new Map(jobs.map((job) => [job.sink, job.routes ?? null]))
  return {
    source,
    id,
    seenAt: isoOf(seenAtMs),
    row,
    sent: [...bySink].map(([sink, routes]) => ({ sink, routes })),
    held: (withheld?.held ?? []).map(({ route, sinks, reason }) => ({ route, sinks, reason })),
  }
}
