import type { History } from './history.ts'

/**
 * What the walk promises of one row, and what it must not do with it. Everything that is excepted here is a limit of the
 * promise that README or a docstring names; nothing else is.
 */
export interface RowFacts {
  readonly kind: 'before' | 'top' | 'late' | 'backfill'
  /** The true time; null where the row carries a date that cannot be true, or none. */
  readonly firedMs: number | null
  /** It appeared when the first walk had been complete. */
  readonly afterFirst: boolean
}

interface End {
  /** What the scope takes in from, by the clock that the process had then; 0: everything. */
  readonly sinceMs: number
  readonly forgottenMs: number
  /** Above the row stands one that is not known: it was forgotten, or is too old to be told from such. */
  readonly beneathForgotten: boolean
  /** Rows without a date came before the first walk was complete. */
  readonly undatedFirst: boolean
  /** What counts begins after a date that the first page shows, since the clock of the process was behind it. */
  readonly beginsByDate: boolean
  /** At some time the clock of the process was that far behind the feed's that no date could be believed. */
  readonly wasBehind: boolean
}

export type Promised = 'must be sent' | 'must not be sent' | 'may be sent'

/** How far the dates of rows that came together may be out of order. */
const jitterMsMax = 600

export function promisedOf(row: RowFacts, { startFrom }: History, end: End): Promised {
  // A clock that was behind makes the dates of those days look as if they lay ahead.
  const datedMs = end.wasBehind ? null : row.firedMs
  const hidden = row.kind === 'late' || (row.kind === 'backfill' && startFrom === 'beginning')
  // Where no walk comes by, only a date can tell a late row from one that was handled and forgotten, and a sweep ends
  // where all rows of a page are.
  const isDoubtful = datedMs === null || datedMs < end.forgottenMs || end.beneathForgotten
  if (hidden && end.forgottenMs > 0 && isDoubtful) return 'may be sent'
  switch (startFrom) {
    case 'beginning':
      return 'must be sent'
    case 'since':
      return sinceInstant(row, datedMs, end)
    case 'now':
      return fromNow(row, datedMs, end)
  }
}

function sinceInstant(row: RowFacts, datedMs: number | null, { sinceMs }: End): Promised {
  if (datedMs !== null) return datedMs >= sinceMs ? 'must be sent' : 'must not be sent'
  // Without a date a row counts where a walk passes it: those on top it always does.
  return row.kind === 'top' ? 'must be sent' : 'may be sent'
}

function fromNow(row: RowFacts, datedMs: number | null, end: End): Promised {
  const { sinceMs, undatedFirst } = end
  if (row.kind === 'before' || row.kind === 'backfill') {
    // `now` is what the clock of the process says: one that is an hour behind takes in the last hour.
    return row.firedMs !== null && row.firedMs >= sinceMs ? 'may be sent' : 'must not be sent'
  }
  // That date may mean its whole second, of which a part was history: only its place tells such a row from it.
  if (end.beginsByDate && row.firedMs !== null && row.firedMs < sinceMs && row.firedMs >= sinceMs - 1_000)
    return 'may be sent'
  // On top of what is handled stands what is new, whatever its date: the clock that said `now` may have been ahead.
  if (row.kind === 'top' && row.afterFirst) return 'must be sent'
  // `now` begins when its memory is first stored; an older date may count, but is not promised to.
  if (row.firedMs !== null && row.firedMs < sinceMs + jitterMsMax) return 'may be sent'
  // What is shown without a date while the first walk runs cannot be told from history, nor a late row from it later on.
  if (datedMs === null) return 'may be sent'
  // A whole page of such rows looks like history, and ends the first walk.
  return !row.afterFirst && undatedFirst ? 'may be sent' : 'must be sent'
}
