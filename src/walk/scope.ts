import { believedAt, datedAt } from '../alert/fired-at.ts'
import type { FeedPage, FeedRow } from './page.ts'
import type { Mark } from './walk.ts'

/**
 * Which rows count. Decided once, when a source is set up (or its memory was lost), and kept: a restart does not move
 * it. A row that is left out is counted, never just dropped.
 *
 * - `all`: everything.
 * - `since`: rows fired at or after an instant. A row without a firing time that can be believed counts: better sent
 *   than lost.
 * - `from`: what appears from an instant on (`startFrom: now`, and what follows a loss). A date alone cannot say
 *   that, because late rows carry old dates; so three kinds of evidence count, and one is enough: its date, or its
 *   place among the rows that the feed has gained since, or that it stands above a row which is known.
 *
 * Place and neighbours are evidence within a walk only, which passes every row from the head down to a covered one. On a
 * page outside of one (the look for late rows, the sweep), and beneath the known rows of a page where a walk ends, a row
 * that is not known may be history that nobody ever read, or one that was handled and forgotten, and has moved up; there
 * only its date can tell that it is neither.
 */
export type Scope =
  | { readonly kind: 'all' }
  | { readonly kind: 'since'; readonly sinceMs: number }
  | {
      readonly kind: 'from'
      readonly sinceMs: number
      /** How many rows of the feed were history when the instant was; null until the first page told. */
      readonly history: number | null
      /** After a loss: how many of these were history at the first start, and never counted; left out where nobody knows. */
      readonly beneath?: number | undefined
    }

export interface ScopeFacts {
  readonly scope: Scope
  /** null until the first walk was complete. */
  readonly lastCompleteMs: number | null
  /** `meta.total` at that time. */
  readonly total: number | null
  /** Rows that fired before this instant may have been handled and forgotten: 0 when none was. */
  readonly forgottenMs: number
}

export interface RowScope {
  /** Counts, if it is new. */
  readonly inScope: boolean
  /**
   * Lies before the scope, so that a page that ends in such rows has nothing beneath; null: left out, but without a date.
   */
  readonly old: boolean | null
  /** Null where the row has no date that can be believed. */
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
  // Between known rows stands what came late; or what was forgotten, once something was, since it goes by last showing.
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

/** The firing time as it can be believed, in milliseconds since the epoch. */
export function firedAtOf(row: FeedRow, nowMs: number): number | null {
  return believedAt(row.ok ? row.alert.firedAtMs : datedAt(firedAtText(row)), nowMs)
}

/**
 * From when a date says that a row is no history, given the first page ever read, of which all rows are. Where its last rows
 * are dated ahead, as by a feed whose dates are in another zone than they say, the rows beneath would else look, hours
 * later, as if they had fired since the start.
 */
export function sinceBeneath({ rows, perPage, total }: FeedPage, sinceMs: number, nowMs: number): number {
  if (total <= rows.length) return sinceMs
  const last = rows.slice(-Math.ceil(perPage / 5)).map((row) => datedAt(firedAtText(row)))
  const ahead = last.filter((ms) => ms !== null && believedAt(ms, nowMs) === null && ms < nowMs + zonesMsMax)
  // A single one is an odd row.
  return ahead.length < last.length ? sinceMs : Math.max(sinceMs, ...ahead.map((ms) => (ms ?? 0) + 1_000))
}

/** Between the first and the last zone of the earth lie 26 hours. */
const zonesMsMax = 26 * 3_600_000

/** As the row holds it. */
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
  /** No walk passes here. */
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
  // What stands on top after a loss without a date came since, or shortly before: sent a second time rather than never.
  const { beneath } = scope
  return isGained || (firedAtMs === null && onHead && beneath !== undefined && fromBottom > beneath)
}

/**
 * A feed that showed nothing at all may have been asked while its service started: what then comes with dates of long before
 * the scope is its history, and no row that came late.
 */
function isLongBefore(firedAtMs: number | null, scope: Scope): boolean {
  return firedAtMs !== null && scope.kind === 'from' && firedAtMs < scope.sinceMs - lateMsMax
}

const lateMsMax = 3_600_000

/** Its id may have been seen and forgotten: it would be sent a second time, weeks later. */
function mayBeForgotten({ firedAtMs, outside, facts }: Evidence, isGained: boolean): boolean {
  if (facts.forgottenMs === 0) return false
  if (firedAtMs === null) return outside
  // Standing above a known row tells nothing here: rows are forgotten by when they were shown, not by their place.
  return firedAtMs < facts.forgottenMs && (outside || !isGained)
}

/** How many rows the feed had when all of them were handled, or were history; null where nobody knows. */
function totalBefore({ total, scope }: ScopeFacts): number | null {
  return total ?? (scope.kind === 'from' ? scope.history : null)
}

/** `inScope` is null for rows that were handled before: of them only the date can tell. */
function isOld(firedAtMs: number | null, inScope: boolean | null, { scope }: ScopeFacts): boolean | null {
  if (inScope !== null && firedAtMs !== null) return !inScope
  if (inScope === false) return null
  return firedAtMs !== null && scope.kind !== 'all' && isBefore(firedAtMs, scope.sinceMs)
}

/** A time without milliseconds stands for its whole second. */
function isBefore(firedAtMs: number, instantMs: number): boolean {
  return (firedAtMs % 1_000 === 0 ? firedAtMs + 999 : firedAtMs) < instantMs
}
