import type { FeedPage, FeedRow } from './page.ts'
import type { Mark } from './walk.ts'

/**
 * Which rows count. Decided once, when a source is set up (or its memory was lost), and kept: a restart does not move
 * it. A row that is left out is counted, never just dropped.
 *
 * - `all`: everything.
 * - `since`: rows fired at or after an instant. A row without a readable date counts: better sent than lost.
 * - `from`: what appears from an instant on (`startFrom: now`, and what follows a loss). A date alone cannot say
 *   that, because late rows carry old dates; so three kinds of evidence count, and one is enough: its date, or its
 *   place among the rows that the feed has gained since, or that it stands above a row which is known.
 */
export type Scope =
  | { readonly kind: 'all' }
  | { readonly kind: 'since'; readonly sinceMs: number }
  | {
      readonly kind: 'from'
      readonly sinceMs: number
      /** How many rows of the feed were history when the instant was; null until the first page told. */
      readonly history: number | null
    }

export interface ScopeFacts {
  readonly scope: Scope
  /** null until the first walk was complete. */
  readonly lastCompleteMs: number | null
  /** Rows that were last shown before this instant may have been forgotten: 0 when none was. */
  readonly forgottenMs: number
}

export interface Verdict {
  /** Counts, if it is new. */
  readonly inScope: boolean
  /** Lies before the scope, so that a page that ends in such rows ends the walk; null: left out, but without a date. */
  readonly old: boolean | null
  /** Null where the row has no date that can be believed. */
  readonly firedAtMs: number | null
}

/**
 * A date further ahead than clocks differ says nothing of when a row was fired. It must be little: were the feed's dates
 * in another zone than they say, the history of so long would look as if it was fired since the start.
 */
const futureMsMax = 60_000

export function judgeRows(
  page: FeedPage,
  marks: readonly Mark[],
  facts: ScopeFacts,
  reading: { readonly nowMs: number; readonly aside: boolean },
): readonly Verdict[] {
  const lastKnown = marks.findLastIndex((mark) => mark !== 'new')
  return page.rows.map((row, index) => {
    const firedAtMs = firedAtOf(row, reading.nowMs)
    const place = (page.page - 1) * page.perPage + index
    const inScope = counts({
      firedAtMs,
      // Pages deep in the feed hold history beside rows that were passed over: there a neighbour proves nothing.
      aboveKnown: !reading.aside && index < lastKnown,
      fromBottom: page.total - place,
      facts,
      aside: reading.aside,
    })
    return { inScope, old: isOld(firedAtMs, marks[index] === 'new' ? inScope : null, facts), firedAtMs }
  })
}

/** The firing time as it can be believed, in milliseconds since the epoch. */
export function firedAtOf(row: FeedRow, nowMs: number): number | null {
  const firedAtMs = row.ok ? row.alert.firedAtMs : dateIn(row.raw)
  return firedAtMs === null || firedAtMs > nowMs + futureMsMax ? null : firedAtMs
}

interface Evidence {
  readonly firedAtMs: number | null
  readonly aboveKnown: boolean
  /** The row and those beneath it, by count. */
  readonly fromBottom: number
  readonly facts: ScopeFacts
  readonly aside: boolean
}

function counts({ firedAtMs, aboveKnown, fromBottom, facts, aside }: Evidence): boolean {
  const { scope, forgottenMs, lastCompleteMs } = facts
  // Its id may have been seen and forgotten: it would be sent a second time, weeks later.
  if (firedAtMs !== null && firedAtMs < forgottenMs && !aboveKnown) return false
  if (scope.kind === 'all') return true
  if (scope.kind === 'since') return firedAtMs === null || !isBefore(firedAtMs, scope.sinceMs)
  if (firedAtMs !== null && !isBefore(firedAtMs, scope.sinceMs)) return true
  if (scope.history !== null && fromBottom > scope.history) return true
  if (lastCompleteMs === null || aside) return false
  return aboveKnown || firedAtMs === null
}

/** `inScope` is null for rows that were handled before: of them only the date can tell. */
function isOld(firedAtMs: number | null, inScope: boolean | null, facts: ScopeFacts): boolean | null {
  if (inScope !== null && firedAtMs !== null) return !inScope
  if (inScope === false) return null
  return firedAtMs !== null && isBefore(firedAtMs, floorOf(facts))
}

/** What was fired before this instant is beyond the walk, wherever it stands. */
function floorOf({ scope, forgottenMs }: ScopeFacts): number {
  return Math.max(scope.kind === 'all' ? 0 : scope.sinceMs, forgottenMs)
}

/** A time without milliseconds stands for its whole second. */
function isBefore(firedAtMs: number, instantMs: number): boolean {
  return (firedAtMs % 1_000 === 0 ? firedAtMs + 999 : firedAtMs) < instantMs
}

function dateIn(raw: unknown): number | null {
  const text = typeof raw === 'object' && raw !== null && 'firedAt' in raw ? raw.firedAt : undefined
  const ms = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? null : ms
}
