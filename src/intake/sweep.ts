import type { SweepPosition } from '../store/walk/walk-state.ts'
import { decideOutsideWalk } from '../walk/walk.ts'
import { checkOutsideWalk } from './foreign-feed.ts'
import { openState } from './open-state.ts'
import { enqueueAndMark, examine, PollStop, readPage, snapshotOf, stopOnError } from './page-steps.ts'
import type { PollDeps, PollOptions, PollReason } from './poll-types.ts'
import { createTally, type Tally } from './tally.ts'

/**
 * Looks for late rows where walks do not read any more: beneath the head, page after page, with units that would expire
 * unused. A sweep continues where the last one ended; at the end of the feed, or of what `startFrom` includes, the round is
 * done and the next one begins beneath the head. Late rows that it has not reached yet may be missing, as documented; how deep it
 * has come is logged.
 */
export interface SweepOptions extends Pick<PollOptions, 'source' | 'startFrom' | 'processState'> {
  /** Units that this sweep may spend. */
  readonly pagesMax: number
  /** Where to begin, from 1; left out, where the last sweep ended. */
  readonly fromPage?: number
}

export interface SweepResult {
  readonly reason: SweepReason
  readonly pages: number
  /** Late rows: alerts that no poll had seen, or that were quarantined until now. */
  readonly newAlerts: number
  readonly quarantined: number
  /** Rows from the top that the present round has looked at. */
  readonly depth: number
  readonly error?: unknown
}

export type SweepReason =
  | 'units_spent' // pagesMax; the next sweep continues
  | 'round_done' // the end of the feed, or of what counts
  | 'behind' // polls have not caught up: their units come first, nothing was read
  | Exclude<PollReason, 'caught_up' | 'end_of_feed' | 'start_bound' | 'page_limit' | 'place_lost'>

/** Never rejects for what the feed, Redis or the queues did. */
export async function runSweep(deps: PollDeps, options: SweepOptions): Promise<SweepResult> {
  const tally = createTally()
  const run: Sweep = { deps, tally, depth: 0 }
  try {
    return report(run, await sweep(run, options))
  } catch (thrown) {
    if (!(thrown instanceof PollStop)) throw thrown
    // The reasons that SweepReason leaves out are only those of walks.
    return report(run, thrown.reason as SweepReason, thrown.cause)
  }
}

interface Sweep {
  readonly deps: PollDeps
  readonly tally: Tally
  depth: number
}

async function sweep(run: Sweep, options: SweepOptions): Promise<SweepReason> {
  const { deps, tally } = run
  const { opened } = await stopOnError('state_failed', () => openState(deps, options))
  const { stretches, facts } = opened
  if (stretches.length > 0 || facts.lastCompleteMs === null) return 'behind'
  const snapshot = snapshotOf(opened)
  let place = await stopOnError('state_failed', () => deps.state.sweep())
  run.depth = place.depth
  let number = options.fromPage ?? pageNow(place, facts.total ?? place.total)
  while (tally.pages < options.pagesMax) {
    const examined = await examine(deps, await readPage(deps, tally, number, 'sweep'), snapshot, 'aside')
    await checkOutsideWalk(deps, tally, examined)
    const { page, nowMs } = examined
    const { marks } = examined.looked
    const atEnd = page.page >= page.lastPage || examined.rowScopes.every(({ old }) => old !== false)
    const depth = Math.min(page.page * page.perPage, page.total)
    place = { ...nextPlace(place, page, atEnd, nowMs), depth }
    const rowsBecome = decideOutsideWalk(marks)
    await enqueueAndMark(deps, tally, examined, snapshot, {
      proven: false,
      rowsBecome,
      explains: false,
      sweep: place,
    })
    run.depth = depth
    if (atEnd) return 'round_done'
    number = place.page
  }
  return 'units_spent'
}

/** The number, in a feed of `total` rows, of the page that was to be read next. */
function pageNow({ page, perPage, total: before }: SweepPosition, total: number): number {
  if (page < firstPage) return firstPage
  return Math.max(firstPage, page + Math.floor((total - before) / Math.max(1, perPage)))
}

/** Polls read the page above. */
const firstPage = 2

function nextPlace(
  place: SweepPosition,
  { page, perPage, total }: { page: number; perPage: number; total: number },
  atEnd: boolean,
  nowMs: number,
): SweepPosition {
  const next = { ...place, perPage, total, atMs: nowMs }
  return atEnd ? { ...next, page: firstPage, roundAtMs: nowMs } : { ...next, page: page + 1 }
}

function report({ deps, tally, depth }: Sweep, reason: SweepReason, error?: unknown): SweepResult {
  const { log, metrics, state } = deps
  const { pages, newAlerts, quarantined } = tally
  if (newAlerts > 0) metrics.feedGap.inc({ source: state.source })
  log[newAlerts > 0 ? 'warn' : 'info']({ source: state.source, reason, pages, newAlerts, depth }, 'sweep')
  return { reason, pages, newAlerts, quarantined, depth, ...(error === undefined ? {} : { error }) }
}
