import type { DeliveryPage, DeliveryQuery, DeliveryRow } from '../../admin/views/delivery-view.ts'
import { type Alert, alertOfKey, noticeSource, parseRow } from '../../alert/alert.ts'
import { type Match, matchAlert } from '../../alert/match/match.ts'
import { parseMatch, patternSizeIn } from '../../alert/match/match-form.ts'
import { inTurns } from '../../alert/match/turns.ts'
import { readCursor, searchPlace, writeCursor } from '../../delivery/records/cursor.ts'
import { type FoundAlert, openReader, type ReaderOptions } from '../../delivery/records/search.ts'
import { MalformedError, NotFoundError } from '../../lib/errors.ts'
import { given } from '../../lib/given.ts'
import type { TimeRange } from '../../store/by-time.ts'
import type { FiredAlert } from '../../store/fired-alerts.ts'
import type { WithheldRecord } from '../../store/walk/withheld.ts'
import type { ActiveConfig } from '../active-config.ts'
import { deliveryRowOf, jobStateOf } from './views.ts'
import { type IsLasting, lastingSilences, withheldRowsOf } from './withheld.ts'

/**
 * One page of the deliveries, in the order in which their alerts fired. The work of a page is bounded in alerts and in time: one that
 * finds little ends with a cursor all the same, and the next goes on behind what this one looked at.
 */
export async function searchDeliveries(config: ActiveConfig, query: DeliveryQuery): Promise<DeliveryPage> {
  const { limit, sink, state } = query
  if (query.source !== undefined) checkSource(config, query.source)
  const reader = await openReader(readerOptions(config), sink)
  const wanted = given({
    isWanted: wantedAlert(query),
    state: state === undefined || state === 'held' ? state : jobStateOf(state),
  })
  const range = { fromMs: query.sinceMs ?? -Infinity, throughMs: query.untilMs ?? Infinity }
  const isMeant = (row: DeliveryRow) =>
    (sink === undefined || row.sink === sink) && (state === undefined || row.state === state)
  const narrow = wanted.isWanted !== undefined || state !== undefined || sink !== undefined
  const count = narrow ? batchMax : Math.min(limit, batchMax)
  const start = query.cursor === undefined ? undefined : readCursor(searchPlace, query.cursor)
  const data: DeliveryRow[] = []
  const endMs = performance.now() + searchMs
  // Of the alert at which the page before ended, some rows may be left: then it is read again.
  let next: Parameters<typeof config.fired.before>[1] =
    start?.after === undefined ? start : { ...start, isAgain: true }
  for (let looked = 0; ; ) {
    const alerts =
      query.id === undefined
        ? await config.fired.before(range, next, count)
        : await alertsById(config, query, range, start?.name)
    looked += alerts.length
    const own = alerts.filter(
      ({ name }) => query.source === undefined || alertOfKey(name).source === query.source,
    )
    for await (const part of reader.read(own, wanted)) {
      const isLasting = await lastingSilences(
        config,
        part.map(({ withheld }) => withheld),
      )
      for (const found of part) {
        const { name, atMs } = found.fired
        const before = (name === start?.name ? start.after : undefined) ?? ''
        const rows = rowsOf(found, isLasting).filter(({ row, key }) => isMeant(row) && key > before)
        const left = limit - data.length
        const isLater = query.isFull !== true && rows.length > left && data.length > 0
        const shown = isLater ? [] : rows.slice(0, left)
        data.push(...shown.map(({ row }) => row))
        if (rows.length > shown.length)
          return { data, looked, cursor: writeCursor({ atMs, name, after: shown.at(-1)?.key ?? before }) }
      }
    }
    const last = alerts.at(-1)
    if (last === undefined || alerts.length < count || query.id !== undefined) return { data, looked }
    next = last
    if (data.length >= limit || looked >= lookedMax || performance.now() > endMs)
      return { data, looked, cursor: writeCursor(last) }
  }
}

/** What the reader of alerts needs of the config in force. */
export function readerOptions(config: ActiveConfig): ReaderOptions {
  return {
    queues: config.queues,
    targets: config.targets,
    orphans: () => config.orphans.names(),
    withheldOf: (names) => withheldOf(config, names),
    alertOf: (source, { row }) => {
      const parsed = parseRow(source, row)
      return parsed.ok ? parsed.alert : undefined
    },
  }
}

/** Alerts that one page looks at, at most, and for how long. */
const lookedMax = 20_000
const searchMs = 1_500
/** As `patternSizeIn` counts. */
const queryPatternSizeMax = 1_000
/** Read together. */
const batchMax = 250

/** In the order of their keys. A row keeps its key whatever becomes of it and of the others: a cursor names the key of the last one. */
function rowsOf(
  { jobs, sinks, withheld, fired }: FoundAlert,
  isLasting: IsLasting,
): { key: string; row: DeliveryRow }[] {
  const { source } = alertOfKey(fired.name)
  const keyed = (row: DeliveryRow, nth = '') => ({ key: `${row.sink} ${row.target ?? ''} ${nth}`, row })
  const held = withheld ? withheldRowsOf(source, withheld, isLasting) : []
  // What an operator has sent since is not held back from that sink any more.
  const isSent = ({ sink, withheld }: DeliveryRow) =>
    withheld?.reason === 'unrouted' ? sinks.size > 0 : sinks.has(sink)
  const rows = [
    ...jobs.map((job) => keyed(deliveryRowOf(job))),
    ...held.map((row, nth) => keyed(row, String(nth))).filter(({ row }) => !isSent(row)),
  ]
  return rows.sort((a, b) => (a.key < b.key ? -1 : 1))
}

/** An alert of which only the id is known may be that of any source. From the one named `from` on, where that is given. */
async function alertsById(
  { config, fired }: ActiveConfig,
  { id = '', source }: DeliveryQuery,
  { fromMs, throughMs }: TimeRange,
  from: string | undefined,
): Promise<FiredAlert[]> {
  const sources = source === undefined ? Object.keys(config.sources) : [source]
  const names = id.includes('.') ? [id] : sources.map((each) => `${each}.${id}`)
  const times = await fired.timesOf(names)
  const dated = names.map((name, at) => ({ name, atMs: times[at] ?? 0 }))
  const inRange = dated.filter(({ atMs }, at) => times[at] == null || (atMs >= fromMs && atMs <= throughMs))
  return inRange.slice(
    Math.max(
      0,
      inRange.findIndex(({ name }) => name === from),
    ),
  )
}

async function withheldOf(
  { routing }: ActiveConfig,
  names: readonly string[],
): Promise<(WithheldRecord | undefined)[]> {
  const found = new Map<string, WithheldRecord | undefined>()
  for (const [source, own] of Map.groupBy(names, (name) => alertOfKey(name).source)) {
    const ids = own.map((name) => alertOfKey(name).id)
    const records = await routing.withheldIn(source).ofAll(ids)
    for (const [at, name] of own.entries()) found.set(name, records[at])
  }
  return names.map((name) => found.get(name))
}

function checkSource({ config }: ActiveConfig, source: string): void {
  if (source !== noticeSource && !Object.hasOwn(config.sources, source))
    throw new NotFoundError(`There is no source ${source}.`)
}

/** undefined where every alert is wanted. Compared as routes compare. */
function wantedAlert({
  symbol,
  kind,
  rule,
}: DeliveryQuery): ((alert: Alert) => Promise<boolean>) | undefined {
  const written = given({
    symbol: writtenOf(symbol),
    kind: writtenOf(kind),
    ruleId: writtenOf(rule),
  })
  if (Object.keys(written).length === 0) return undefined
  const match: Match | undefined =
    patternSizeIn(written) > queryPatternSizeMax ? undefined : parseMatch(written)
  if (match === undefined) throw new MalformedError('This cannot be searched for: the pattern is too large.')
  return async (alert) =>
    (
      await inTurns(
        matchAlert(alert, match, () => undefined),
        { readers: true },
      )
    ).kind === 'matches'
}

function writtenOf(texts: readonly string[] | undefined) {
  return texts?.map((text) => (/[*?]/.test(text) ? { glob: text } : text))
}
