import { believedAt, datedAt } from '../alert/fired-at.ts'
import type { FeedPage, FeedRow } from './page.ts'
import type { Mark } from './walk.ts'

/** Which of the history counts on the first start, as the config says. */
export type StartFrom = 'now' | 'beginning' | { readonly sinceMs: number }

/**
 * Which rows count. Decided once, when a source is set up (or its stored walk was lost), and stored: a restart does not
 * change it. A row that is left out is counted, never just dropped.
 *
 * - `all`: everything.
 * - `since`: rows fired at or after an instant. A row without a plausible firing time counts: better sent than lost.
 * - `from`: what appears from an instant on (`startFrom: now`, and what follows a loss). A date alone cannot show that,
 *   because late rows have old dates; so three kinds of evidence count, and one is enough: its date, or its place among the
 *   rows that the feed has gained since, or a known row beneath it.
 *
 * Place and neighbours are evidence within a walk only, which passes every row from the head down to a covered one. On a
 * page outside of one (the look for late rows, the sweep), and beneath the known rows of a page where a walk ends, a row
 * that is not known may be history that was never read, or one that was handled, was removed from `seen` and has moved up;
 * there only its date can show that it is neither.
 */
export type Scope =
  | { readonly kind: 'all' }
  | { readonly kind: 'since'; readonly sinceMs: number }
  | {
      readonly kind: 'from'
      readonly sinceMs: number
      /** How many rows of the feed were history at that instant; null until the first page was read. */
      readonly history: number | null
      /** After a loss: how many of these were history at the first start, and never counted; left out where that is not known. */
      readonly beneath?: number | undefined
    }

export interface ScopeFacts {
  readonly scope: Scope
  /** When everything that the feed showed was last known to be handled; null before the first time. */
  readonly lastCompleteMs: number | null
  /** `meta.total` at that time. */
  readonly total: number | null
  /** Rows that fired before this instant may have been handled and removed from `seen`: 0 when none was. */
  readonly forgottenMs: number
}

export interface RowScope {
  /** Counts, if it is new. */
  readonly inScope: boolean
  /**
   * Is older than the scope, so that nothing counts beneath a page that ends in such rows; null: left out, but without a
   * date.
   */
  readonly old: boolean | null
  /** Null where the row has no plausible date. */
  readonly firedAtMs: number | null
}

export function scopeOfRows(
  page: FeedPage,
  marks: readonly Mark[],
  facts: ScopeFacts,
  { nowMs, aside }: { readonly nowMs: number; readonly aside: boolean },
): readonly RowScope[] {
  const lastKnown = marks.findLastIndex((mark) => mark !== 'new')
  const firstCovered = marks.indexOf('covered')
  // Unknown rows between known ones came late; or they were removed from `seen`, which goes by when a row was last shown.
  const evidenceEnds = facts.forgottenMs > 0 ? firstCovered : lastKnown
  return page.rows.map((row, index) => {
    const firedAtMs = firedAtOf(row, nowMs)
    const place = (page.page - 1) * page.perPage + index
    const inScope = isInScope({
      firedAtMs,
      fromBottom: page.total - place,
      aboveKnown: index < lastKnown,
      onHead: page.page === 1,
      outside: aside || (firstCovered >= 0 && index > evidenceEnds),
      facts,
    })
    return { inScope, old: isOld(firedAtMs, marks[index] === 'new' ? inScope : null, facts), firedAtMs }
  })
}

/** The firing time in milliseconds since the epoch; null where it is not plausible. */
export function firedAtOf(row: FeedRow, nowMs: number): number | null {
  return believedAt(row.ok ? row.alert.firedAtMs : datedAt(firedAtText(row)), nowMs)
}

/**
 * The instant from which a date means that a row is no history, given the first page ever read and which of its rows count.
 * Where its last rows are history and have dates in the future, as in a feed whose dates are of another zone than they say,
 * the rows beneath would otherwise look, hours later, as if they had fired since the start.
 */
export function sinceBeneath(
  { rows, perPage, total }: FeedPage,
  rowScopes: readonly RowScope[],
  sinceMs: number,
  nowMs: number,
): number {
  if (total <= rows.length) return sinceMs
  const begin = Math.max(0, rows.length - Math.ceil(perPage / 5))
  const last = rows.slice(begin).map((row) => datedAt(firedAtText(row)))
  const ahead = last.filter(
    (ms, index) =>
      rowScopes[begin + index]?.inScope === false &&
      ms !== null &&
      believedAt(ms, nowMs) === null &&
      ms < nowMs + zonesMsMax,
  )
  // A single one may be a mistake of that row.
  return ahead.length < last.length ? sinceMs : Math.max(sinceMs, ...ahead.map((ms) => lastMsOf(ms ?? 0) + 1))
}

/** The difference between the first and the last time zone is 26 hours. */
const zonesMsMax = 26 * 3_600_000

/** As it is written in the row. */
export function firedAtText(row: FeedRow): unknown {
  if (row.ok) return row.alert.row['firedAt']
  return typeof row.raw === 'object' && row.raw !== null && 'firedAt' in row.raw ? row.raw.firedAt : undefined
}

interface Evidence {
  readonly firedAtMs: number | null
  /** The row and those beneath it, by count. */
  readonly fromBottom: number
  readonly aboveKnown: boolean
  /** Page 1 of a poll. */
  readonly onHead: boolean
  /** The page is no part of a walk, or the row is beneath its end. */
  readonly outside: boolean
  readonly facts: ScopeFacts
}

function isInScope(evidence: Evidence): boolean {
  const { firedAtMs, fromBottom, onHead, outside, facts } = evidence
  const { scope, lastCompleteMs } = facts
  const before = totalBefore(facts)
  const isGained = before !== null && fromBottom > before && !(before === 0 && isLongBefore(firedAtMs, scope))
  if (mayBeForgotten(evidence, isGained)) return false
  if (scope.kind === 'all') return true
  if (firedAtMs !== null && !isBefore(firedAtMs, scope.sinceMs)) return true
  if (outside) return false
  if (scope.kind === 'since') return firedAtMs === null
  if (lastCompleteMs !== null) return firedAtMs === null || isGained || evidence.aboveKnown
  // A row without a date on top after a loss came since, or shortly before: better sent a second time than never.
  const { beneath } = scope
  return isGained || (firedAtMs === null && onHead && beneath !== undefined && fromBottom > beneath)
}

/**
 * A feed that showed no rows may have been read while its service started: rows that then come with dates long before the
 * scope are its history, not late rows.
 */
function isLongBefore(firedAtMs: number | null, scope: Scope): boolean {
  return firedAtMs !== null && scope.kind === 'from' && firedAtMs < scope.sinceMs - lateMsMax
}

const lateMsMax = 3_600_000

/** The row may have been handled and removed from `seen`: it would be sent a second time, weeks later. */
function mayBeForgotten({ firedAtMs, outside, facts }: Evidence, isGained: boolean): boolean {
  if (facts.forgottenMs === 0) return false
  if (firedAtMs === null) return outside
  // A known row beneath it proves nothing here: rows are removed by when they were last shown, not by their place.
  return firedAtMs < facts.forgottenMs && (outside || !isGained)
}

/** How many rows the feed had when all of them were handled, or were history; null where that is not known. */
function totalBefore({ total, scope }: ScopeFacts): number | null {
  return total ?? (scope.kind === 'from' ? scope.history : null)
}

/** `inScope` is null for rows that were handled before: for them only the date decides. */
function isOld(firedAtMs: number | null, inScope: boolean | null, { scope }: ScopeFacts): boolean | null {
  if (inScope !== null && firedAtMs !== null) return !inScope
  if (inScope === false) return null
  return firedAtMs !== null && scope.kind !== 'all' && isBefore(firedAtMs, scope.sinceMs)
}

function isBefore(firedAtMs: number, instantMs: number): boolean {
  return lastMsOf(firedAtMs) < instantMs
}

/** A time without milliseconds means its whole second. */
function lastMsOf(firedAtMs: number): number {
  return firedAtMs % 1_000 === 0 ? firedAtMs + 999 : firedAtMs
}
