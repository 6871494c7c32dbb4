import { firstSearchTo, looksForeign, witnessPages } from '../walk/foreign-feed.ts'
import type { Mark } from '../walk/walk.ts'
import type { ExaminedPage } from './intake.ts'
import { PollStop, readPage, stopOnError } from './page-steps.ts'
import type { PollDeps, ProcessState } from './poll-types.ts'
import type { Tally } from './tally.ts'

/**
 * For a page outside of a walk: the token may have changed since the walk. Only where it has rows to be handled, so that it
 * costs nothing elsewhere.
 */
export async function checkOutsideWalk(
  deps: PollDeps,
  tally: Tally,
  examined: ExaminedPage,
  processState: ProcessState,
): Promise<void> {
  const isKnown = (mark: Mark) => mark !== 'new'
  if (examined.looked.marks.some(isKnown) || !examined.rowScopes.some(({ inScope }) => inScope)) return
  await checkFeed(deps, tally, examined, { isKnown, processState })
}

/**
 * Whether the feed is the one of this source's stored walk, where a page shows no row that is known. Rows of a page that
 * looks foreign are not handled until another page shows a known row; without one the poll stops as `foreign_feed`. Nothing
 * of the stop is stored: the next poll checks again, with other pages, and continues by itself when the token is corrected.
 */
export async function checkFeed(
  deps: PollDeps,
  tally: Tally,
  { page, nowMs, looked, rowScopes }: ExaminedPage,
  {
    isKnown,
    processState,
  }: { readonly isKnown: (mark: Mark) => boolean; readonly processState: ProcessState },
): Promise<boolean> {
  const firedAtMs = rowScopes.map((rowScope) => rowScope.firedAtMs)
  if (!looksForeign(looked.marks, firedAtMs, looked.facts, nowMs)) return false
  const pages = witnessPages(page, looked.facts, processState.searchedTo)
  for (const number of pages) {
    const { page: witness } = await readPage(deps, tally, number, 'walk')
    const keys = witness.rows.map(({ key }) => key)
    const { marks } = await stopOnError('state_failed', () => deps.state.look(keys))
    if (!marks.some(isKnown)) continue
    processState.searchedTo = 0
    return true
  }
  // At the end of the feed the search starts again at the top, because the feed moves meanwhile.
  processState.searchedTo =
    pages.length === 0 ? 0 : processState.searchedTo === 0 ? firstSearchTo : (pages.at(-1) ?? 0)
  throw new PollStop('foreign_feed')
}
