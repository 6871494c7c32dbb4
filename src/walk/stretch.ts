import type { FeedPage } from './page.ts'

/** Handled rows without a hole; see `walk.ts`. */
export interface Stretch {
  /** The number that is stored with its rows; never used twice. */
  readonly run: number
  /** Key of its last row. */
  readonly frontier: string
  /** How many rows were above and including the frontier when the feed had `total` rows: counted, never estimated. */
  readonly end: number
  readonly total: number
}

/** The stretch as far as the end of this page; `frontier` where the page has no row. */
export function measured({ page, rows, perPage, total }: FeedPage, run: number, frontier = ''): Stretch {
  return { run, frontier: rows.at(-1)?.key ?? frontier, end: page * perPage, total }
}

/**
 * The page on which the stretch continues in a feed of `page.total` rows. Where only its frontier can prove that, because
 * the total has changed, it is the frontier's page and not one that would begin just after it.
 */
export function pageAfter(stretch: Stretch, page: Pick<FeedPage, 'total' | 'perPage' | 'lastPage'>): number {
  const after = stretch.end + page.total - stretch.total
  const place = page.total === stretch.total ? after : after - 1
  return clamp(Math.floor(place / page.perPage) + 1, 2, Math.max(2, page.lastPage))
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value))
}
