import type { Alert } from '../alert/alert.ts'
import type { Assign, Assignment } from '../alert/assignment.ts'
import { doubtOf } from '../alert/fired-at.ts'
import { type DeliveryJob, firedMsOf, forTargets } from '../alert/job.ts'
import { type Quarantined, rawOf } from '../store/walk/quarantine.ts'
import type { RowLookup } from '../store/walk/walk-state.ts'
import type { FeedPage, FeedRow } from '../walk/page.ts'
import { firedAtText, type RowScope } from '../walk/scope.ts'

/**
 * From a page to jobs. Nothing is marked here: the caller marks the rows once every job is stored, so that a crash at any
 * point leaves rows that are handled again, and never one that is marked without its jobs.
 */
export interface IntakeDeps {
  readonly queues: DeliveryQueues
  /** Called before a page is read: reads what the routes need to know of now. Never rejects. */
  readonly prepareAssign: () => Promise<Assign>
  /** The targets of each sink, each a job of its own (email: its recipients); `[undefined]` for a sink with a single one. */
  readonly targets: ReadonlyMap<string, readonly (string | undefined)[]>
  /** Called with alerts that were handled for the first time, once they are marked. */
  readonly onHandled: (alerts: readonly Alert[]) => void
}

/** A page as it was read: its rows, what was known of them then, and which of them count. */
export interface ExaminedPage {
  readonly page: FeedPage
  /** When it was read. */
  readonly nowMs: number
  readonly looked: RowLookup
  readonly rowScopes: readonly RowScope[]
}

export interface SortedRows {
  /** Alerts that count and were never sent: not shown before, or quarantined until now. Oldest first. */
  readonly alerts: readonly Alert[]
  readonly quarantine: readonly Quarantined[]
  /** Keys of rows that were quarantined and can be read now. */
  readonly readable: readonly string[]
  /** Rows never shown before that do not count, and are marked. */
  readonly passedOver: number
  readonly fired: readonly FiringTime[]
  /** Why the date of one of them is not plausible, if there is one, for people. */
  readonly doubt: string | null
  /** Keys of the rows never shown before, and of the others. */
  readonly mark: readonly string[]
  readonly shown: readonly string[]
}

export interface FiringTime {
  readonly firedAtMs: number
  readonly passedOver: boolean
  /** The rules that the alert names; left out where it cannot be read. */
  readonly ruleIds?: readonly string[]
}

/**
 * What the page's rows become; pure. Rows that do not count are marked only where the page's place is known (`proven`):
 * known history rows deep in the feed would make the unknown rows above them look like late ones.
 */
export function sortRows(examined: ExaminedPage, proven: boolean): SortedRows {
  const { page, nowMs, looked, rowScopes } = examined
  const rows = page.rows.map((row, index) => ({
    row,
    mark: looked.marks[index],
    rowScope: rowScopes[index],
    // Only rows that count were ever quarantined, so one that can be read now needs no other reason to be sent.
    isReadable: looked.quarantined[index] === true && row.ok,
  }))
  const fresh = rows.filter(({ mark, rowScope }) => mark === 'new' && (proven || rowScope?.inScope)).reverse()
  const counting = fresh.filter(({ rowScope, isReadable }) => rowScope?.inScope || isReadable)
  const undated = fresh.find(({ row, rowScope }) => row.ok && rowScope?.firedAtMs === null)
  const toSend = new Set(counting)
  for (const each of rows) if (each.isReadable) toSend.add(each)
  return {
    alerts: rows.toReversed().flatMap((each) => (toSend.has(each) && each.row.ok ? [each.row.alert] : [])),
    quarantine: counting.flatMap(({ row }) =>
      row.ok ? [] : [{ key: row.key, reason: row.reason, raw: rawOf(row.raw), atMs: nowMs }],
    ),
    readable: rows.flatMap(({ row, isReadable }) => (isReadable ? [row.key] : [])),
    passedOver: fresh.length - counting.length,
    fired: fresh.flatMap(({ row, rowScope }) => (rowScope ? firingTimeOf(row, rowScope, examined) : [])),
    doubt: undated === undefined ? null : doubtOf(firedAtText(undated.row), nowMs),
    mark: fresh.map(({ row }) => row.key),
    shown: rows.filter(({ mark }) => mark !== 'new').map(({ row }) => row.key),
  }
}

/** The jobs of these alerts, in their order; pure. */
export function jobsOf(
  alerts: readonly Alert[],
  assignments: readonly Assignment[],
  targets: IntakeDeps['targets'],
  {
    createdMs = 0,
    ...seen
  }: Pick<DeliveryJob, 'seenAtMs' | 'page'> & {
    /** When the source was set up. */
    readonly createdMs?: number
  },
): DeliveryJob[] {
  return alerts.flatMap((alert, index) =>
    (assignments[index]?.sinks ?? []).flatMap(({ sink, routes, heldBack }) =>
      forTargets(
        {
          sink,
          alert,
          routes,
          ...seen,
          ...(firedMsOf({ alert, ...seen }) < createdMs - historyMsMin ? { isHistory: true } : {}),
          ...(heldBack === undefined ? {} : { heldBack }),
        },
        targets.get(sink),
      ),
    ),
  )
}

/** By the feed's dates, which are whole seconds of another clock: what fired so shortly before the source was set up is no history. */
const historyMsMin = 60_000

/** No route wanted it. */
export function isUnrouted({ sinks, withheld }: Assignment): boolean {
  return sinks.length === 0 && withheld.length === 0
}

/** A row without a date was fired about now, if it is not one of the first that were ever read. */
function firingTimeOf(
  row: FeedRow,
  { firedAtMs, inScope }: RowScope,
  { looked, nowMs }: ExaminedPage,
): FiringTime[] {
  const rules = row.ok ? { ruleIds: row.alert.ruleIds } : {}
  if (firedAtMs !== null) return [{ firedAtMs, passedOver: !inScope, ...rules }]
  return inScope && looked.facts.lastCompleteMs !== null
    ? [{ firedAtMs: nowMs, passedOver: false, ...rules }]
    : []
}

/** Where intake puts its jobs. */
interface DeliveryQueues {
  /**
   * Resolves once every job is stored in its sink's queue. Job ids are fixed, so adding one that is there already
   * changes nothing. After any throw some may be stored and some not: add all of them again.
   */
  enqueue(jobs: readonly DeliveryJob[]): Promise<void>
}
