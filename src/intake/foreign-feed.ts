import { firstSearchTo, looksForeign, witnessPages } from '../walk/foreign-feed.ts'
import type { Mark } from '../walk/walk.ts'
import type { ExaminedPage } from './intake.ts'
import { PollStop, readPage, stopOnError } from './page-steps.ts'
import type { PollDeps, ProcessState } from './poll-types.ts'
import type { Tally } from './tally.ts'

/**
 * For a page outside of a walk: the token may have changed since the walk. Only where it has rows to be handled, so that it
 * costs nothing elsewhere, and once a poll or sweep, whose pages are all of one token. Rows that were filled in beneath the
 * head look the same: then the head shows that the feed is ours.
 */
export async function checkOutsideWalk(deps: PollDeps, tally: Tally, examined: ExaminedPage): Promise<void> {
  if (tally.outsideIsOurs) return
  if (examined.looked.marks.some(isHandled) || !examined.rowScopes.some(({ inScope }) => inScope)) return
  const pages = pagesToAsk(examined, 'outside walk')
  if (pages === undefined) return
  if ((await findKnown(deps, tally, pages, isHandled)) === undefined) throw new PollStop('foreign_feed')
  tally.outsideIsOurs = true
}

const isHandled = (mark: Mark) => mark !== 'new'

/**
 * Whether the feed is the one of this source's stored walk, where a page shows no row that is known. Rows of a page that
 * looks foreign are not handled until another page shows a known row; without one the poll stops as `foreign_feed`. Nothing
 * of the stop is stored: the next poll checks again, with other pages, and continues by itself when the token is corrected.
 */
export async function checkFeed(
  deps: PollDeps,
  tally: Tally,
  examined: ExaminedPage,
  {
    isKnown,
    processState,
  }: { readonly isKnown: (mark: Mark) => boolean; readonly processState: ProcessState },
): Promise<boolean> {
  const pages = pagesToAsk(examined, processState.searchedTo)
  if (pages === undefined) return false
  const known = await findKnown(deps, tally, pages, isKnown)
  if (known !== undefined) {
    processState.searchedTo = 0
    return true
  }
  // At the end of the feed the search starts again at the top, because the feed moves meanwhile.
  processState.searchedTo =
    pages.length === 0 ? 0 : processState.searchedTo === 0 ? firstSearchTo : (pages.at(-1) ?? 0)
  throw new PollStop('foreign_feed')
}

/** undefined where the page does not look foreign. */
function pagesToAsk(
  { page, nowMs, looked, rowScopes }: ExaminedPage,
  searchedTo: number | 'outside walk',
): readonly number[] | undefined {
  const firedAtMs = rowScopes.map((rowScope) => rowScope.firedAtMs)
  if (!looksForeign(looked.marks, firedAtMs, looked.facts, nowMs)) return undefined
  return witnessPages(page, looked.facts, searchedTo)
}

/** The first of the pages that shows a known row. */
async function findKnown(
  deps: PollDeps,
  tally: Tally,
  pages: readonly number[],
  isKnown: (mark: Mark) => boolean,
): Promise<number | undefined> {
  for (const number of pages) {
    const { page } = await readPage(deps, tally, number, 'walk')
    const keys = page.rows.map(({ key }) => key)
    const { marks } = await stopOnError('state_failed', () => deps.state.look(keys))
    if (marks.some(isKnown)) return number
  }
  return undefined
}
