import { decideOutsideWalk } from '../walk/walk.ts'
import { checkOutsideWalk } from './foreign-feed.ts'
import type { ExaminedPage } from './intake.ts'
import { enqueueAndMark, examine, PollStop, readPage, type WalkSnapshot } from './page-steps.ts'
import type { PollDeps, ProcessState } from './poll-types.ts'
import type { Tally } from './tally.ts'

/**
 * Late rows: rows that the feed inserts beneath its head. A walk that ends at a covered row does not read them; but the
 * feed's total shows that there are some, when it has grown by more than the new rows.
 */
export function unexplained(
  { page, looked }: ExaminedPage,
  total: number,
  lastHead: ProcessState['lastHead'],
): number {
  const { expected, lastCompleteMs } = looked.facts
  if (expected === null) return 0
  // All rows above the one that was on top explain a growth: the server that answered then may have had an older view of
  // the feed.
  const isLast = lastHead !== null && lastHead.atMs === lastCompleteMs && expected === looked.facts.total
  const above = isLast ? page.rows.findIndex(({ key }) => key === lastHead.topKey) : -1
  const explained = looked.marks.filter((mark, index) => mark === 'new' || index < above).length
  return Math.max(0, total - expected - explained)
}

/** Looks once for the rows of `tally.feedGap`, beneath the last page of the walk. The sweep looks for those not found. */
export async function lookDeeper(
  deps: PollDeps,
  tally: Tally,
  {
    snapshot,
    from,
    pagesMax,
  }: { readonly snapshot: WalkSnapshot; readonly from: number; readonly pagesMax: number },
): Promise<void> {
  if (tally.feedGap === 0) return
  const { source } = deps.state
  deps.metrics.feedGap.inc({ source })
  deps.log.warn({ source, rows: tally.feedGap }, 'the feed has grown by rows that were not at its head')
  let lastPage = Number.POSITIVE_INFINITY
  for (let number = from; number < from + pagesMax && number <= lastPage; number += 1) {
    if (tally.feedGap === 0) return
    const found = await takeOutsideWalk(deps, tally, snapshot, number)
    if (found === undefined) return
    lastPage = found.lastPage
    tally.feedGap = Math.max(0, tally.feedGap - found.fresh)
  }
}

/** A page outside the walk. undefined: it could not be read, which here is no reason to fail the poll. */
async function takeOutsideWalk(
  deps: PollDeps,
  tally: Tally,
  snapshot: WalkSnapshot,
  number: number,
): Promise<{ fresh: number; lastPage: number } | undefined> {
  try {
    const examined = await examine(deps, await readPage(deps, tally, number, 'walk'), snapshot, 'aside')
    await checkOutsideWalk(deps, tally, examined)
    const { page } = examined
    const { marks } = examined.looked
    await enqueueAndMark(deps, tally, examined, snapshot, {
      proven: false,
      rowsBecome: decideOutsideWalk(marks),
      explains: false,
    })
    return { fresh: marks.filter((mark) => mark === 'new').length, lastPage: page.lastPage }
  } catch (thrown) {
    if (thrown instanceof PollStop && /^(refused|failed)/.test(thrown.reason)) return undefined
    throw thrown
  }
}
