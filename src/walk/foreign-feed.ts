import type { FeedPage } from './page.ts'
import type { Mark } from './walk.ts'

/**
 * Whether a feed can still be the one of this stored walk: when a token suddenly shows another account's feed, that
 * account's history must not be delivered. Suspicious is a page without a known row whose rows were fired before the last
 * complete walk, since everything of that time was handled. A back-fill of the feed looks the same: then the pages where
 * the known rows must be by count are read before any row is handled, then deeper ones, since a feed that drops its oldest
 * rows does not grow by its new ones.
 */
interface LastWalk {
  readonly lastCompleteMs: number | null
  /** `meta.total` at the last complete walk. */
  readonly total: number | null
}

/** Rows that are late by less, and clocks that differ by less, are usual. */
const slackMs = 600_000
/** Fewer rows than these prove nothing about whose feed it is. */
const rowsMin = 5
const witnessesMax = 4
/** The first search has read all pages down to this one, as far as the feed has them. */
export const firstSearchTo = 2

export function looksForeign(
  marks: readonly Mark[],
  firedAtMs: readonly (number | null)[],
  lastWalk: LastWalk,
  nowMs: number,
): boolean {
  if (lastWalk.lastCompleteMs === null || !lastWalk.total) return false
  // The clock was ahead then: its time does not show what was handled.
  if (lastWalk.lastCompleteMs > nowMs) return false
  if (marks.length < rowsMin || marks.some((mark) => mark !== 'new')) return false
  const handledMs = lastWalk.lastCompleteMs - slackMs
  const before = firedAtMs.filter((ms) => ms !== null && ms < handledMs)
  return before.length * 2 >= marks.length
}

/**
 * The pages on which known rows may be if the feed is ours: the head, where a page outside of a walk is asked about; where
 * the old head is by count; then deeper and deeper. Where a poll found none down to `searchedTo`, the next one reads the
 * pages beneath, so that a feed which is ours after all is not stopped for ever.
 */
export function witnessPages(
  page: FeedPage,
  lastWalk: LastWalk,
  searchedTo: number | 'outside walk',
): readonly number[] {
  if (searchedTo !== 'outside walk' && searchedTo > 0) {
    const next = Array.from({ length: witnessesMax }, (_, index) => searchedTo + 1 + index)
    return next.filter((each) => each <= page.lastPage)
  }
  const gained = Math.max(0, page.total - (lastWalk.total ?? 0))
  const counted = Math.floor(gained / page.perPage) + 1
  const deeper = [1, 2, 4, 16].map((pages) => page.page + pages)
  const candidates = [...(searchedTo === 'outside walk' ? [1] : []), counted, counted + 1, ...deeper]
  return [...new Set(candidates)]
    .filter((each) => each !== page.page && each <= page.lastPage)
    .slice(0, witnessesMax)
}
