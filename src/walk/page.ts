import type { Alert } from '../alert/alert.ts'

/** The figures of a page of the API, after the check that they fit each other. */
export interface PageFigures {
  /** From 1. */
  readonly page: number
  readonly perPage: number
  readonly total: number
  readonly lastPage: number
}

/** One page of the delivery feed, newest first, after the check by the wire schema. */
export interface FeedPage extends PageFigures {
  readonly rows: readonly FeedRow[]
}

/**
 * A row of the feed: an alert, or a row that does not parse and is quarantined raw. `key` is its identity for the walk:
 * the id in decimal where there is a usable one, else `raw-` and a hash of the row.
 */
export type FeedRow =
  | { readonly ok: true; readonly key: string; readonly alert: Alert }
  | { readonly ok: false; readonly key: string; readonly raw: unknown; readonly reason: string }
