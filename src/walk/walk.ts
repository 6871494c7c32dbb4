import type { FeedPage } from './page.ts'
import { measured, pageAfter, type Stretch } from './stretch.ts'

/**
 * Decides what one page of the feed proves, and where to read on. Pure: takes the page, what is known of its rows and the
 * open stretches; returns what to store and the next step.
 *
 * The feed moves while it is read, and its order is not documented. So nothing here compares ids or dates:
 * - a *covered* row is one below which everything was handled; whatever shares a page with it is handled too;
 * - a *stretch* is a run of handled rows without a hole, of which it is not known what follows its last row, its
 *   *frontier*. It is finished when it reaches a covered row beneath, or the end of the feed, or the start of the scope;
 * - a page continues a stretch only when it contains one of its rows, or begins exactly after the frontier while the
 *   feed's total is the one that the frontier was counted with. Any other page may have new rows, but proves nothing.
 *
 * The head of the feed is a stretch like any other. Several may be open at once, the newest on top: a catch-up that was
 * interrupted stays open under a new head, and when the head reaches it the two are joined, so that the pages between are
 * read only once.
 */

/** What is known of a row: never handled; handled with everything below it; or the number of the stretch it belongs to (0: none). */
export type Mark = 'new' | 'covered' | number

export interface PageView {
  readonly page: FeedPage
  /** One for each row of the page, like the next. */
  readonly marks: readonly Mark[]
  /**
   * Whether the row lies before what `startFrom` includes; null where it is left out without a date. Empty where no date
   * ends the walk.
   */
  readonly old: readonly (boolean | null)[]
}

interface OpenStretches {
  /** Top first. */
  readonly stretches: readonly Stretch[]
  /** The greatest number that a stretch was given. */
  readonly runs: number
}

/** The progress of one walk: the page to read next was counted with `counted` rows in the feed; the last page showed `total`. */
export interface WalkProgress {
  /** How often in a row its place was lost. */
  readonly lost: number
  /** How often the page was asked for again since it was counted. */
  readonly repeats: number
  readonly counted: number
  readonly total: number
}

export interface PageDecision {
  /** The page continues a stretch (or is the head): its place is known. */
  readonly proven: boolean
  /** What the page's rows become: covered, rows of the stretch of that number, or rows of no stretch. */
  readonly rowsBecome: 'covered' | number
  /** Numbers of stretches whose rows become rows of another one. */
  readonly joins: readonly { readonly from: number; readonly to: number }[]
  /** Numbers of stretches whose rows are covered now. */
  readonly finished: readonly number[]
  /** The open stretches after this page. */
  readonly stretches: readonly Stretch[]
  readonly next:
    | { readonly kind: 'read'; readonly page: number }
    | { readonly kind: 'end'; readonly reason: WalkEnd }
  readonly progress: WalkProgress
}

type WalkEnd =
  | 'caught_up'
  | 'end_of_feed'
  | 'start_bound'
  | 'empty_feed'
  | 'empty_page'
  | 'place_lost'
  | 'raced'

/** How often in a row a walk that lost its place searches it; then the next poll walks again. */
const lostMax = 19
/** How often one page is asked for again: one of ten servers that answer in turn would never be met otherwise. */
const repeatsMax = 9
/** After so many pages in vain, two answers with the same total may also be of two servers that lack the same rows. */
const sameServerMax = 4
/** Open stretches that are kept. More would mean that catch-ups were interrupted again and again under new heads. */
const stretchesMax = 4

/** Page 1: the head of the feed. It needs no proof of its place. */
export function decideHead(view: PageView, known: OpenStretches): PageDecision {
  const { page } = view
  if (page.rows.length === 0) return unchanged(known, page, page.total === 0 ? 'empty_feed' : 'empty_page')
  return continueWalk(view, known, stretchesOn(view, known), walkingAt(page))
}

/** Any later page of a walk, read where the topmost open stretch should go on. */
export function decideNext(view: PageView, known: OpenStretches, progress: WalkProgress): PageDecision {
  const { page } = view
  const [current] = known.stretches
  // Another poller finished the walk meanwhile.
  if (current === undefined) return unchanged(known, page, 'raced')
  if (page.rows.length === 0 && page.page < page.lastPage) return unchanged(known, page, 'empty_page')
  if (!isNextTo(view, current)) return relocate(view, known, progress)
  const stretches = stretchesOn(view, known)
  const mine = stretches.includes(current) ? stretches : [current, ...stretches]
  const decision = continueWalk(view, known, mine, walkingAt(page))
  // Deeper than before, so the place is found again.
  const [top] = decision.stretches
  if (top === undefined || top.frontier !== current.frontier) return decision
  const step = search(page, top, progress, true)
  if (step !== undefined) return { ...decision, ...step }
  // The count is wrong, as after a back-fill beneath it: where this page ends is counted anew, for the next poll.
  const counted = [measured(page, top.run, top.frontier), ...decision.stretches.slice(1)]
  return { ...decision, stretches: counted, ...placeLost(page, progress) }
}

/** Whether a later page of a walk continues the topmost open stretch, so that its rows' places are known. */
export function continuesWalk(view: Pick<PageView, 'page' | 'marks'>, known: OpenStretches): boolean {
  const [current] = known.stretches
  return current !== undefined && isNextTo(view, current)
}

/** Any page outside a walk: the look for late rows, the sweep. It finishes nothing. */
export function decideOutsideWalk(marks: readonly Mark[]): 'covered' | 0 {
  return marks.includes('covered') ? 'covered' : 0
}

/**
 * The count is wrong where, since it was made, as many rows were removed above the frontier as were inserted beneath it.
 * Only the sweep finds the rows that a walk then passes over; to read the frontier's page each time would cost every second
 * page of a catch-up that has two units a poll.
 */
function isNextTo({ page, marks }: Pick<PageView, 'page' | 'marks'>, stretch: Stretch): boolean {
  if (marks.includes(stretch.run)) return true
  return page.total === stretch.total && (page.page - 1) * page.perPage === stretch.end
}

/** The open stretches that have a row on the page, top first. */
function stretchesOn({ marks }: PageView, known: OpenStretches): readonly Stretch[] {
  return known.stretches.filter(({ run }) => marks.includes(run))
}

/** The page continues `mine`, stretches that its rows join to one; a head without any begins a new one. */
function continueWalk(
  view: PageView,
  known: OpenStretches,
  mine: readonly Stretch[],
  progress: WalkProgress,
): PageDecision {
  const others = known.stretches.filter((each) => !mine.includes(each))
  const end = endOf(view, mine)
  if (end !== undefined) {
    // Both ends finish only `mine`. After the last page of the feed no other stretch has a place: its rows were removed, or
    // the server that answered does not have them yet. In case they come back, they are not covered.
    const stretches = view.page.page >= view.page.lastPage ? [] : others
    return {
      proven: true,
      rowsBecome: 'covered',
      joins: [],
      finished: mine.map(({ run }) => run),
      stretches,
      next: nextStep(stretches, view.page, end),
      progress,
    }
  }
  const lowest = mine.at(-1)
  const run = lowest?.run ?? known.runs + 1
  const stretches = [extend(view, lowest, run), ...others]
  if (stretches.length > stretchesMax) stretches.splice(shortestBeneath(stretches, view.page), 1)
  return {
    proven: true,
    rowsBecome: run,
    joins: mine.filter((each) => each !== lowest).map((each) => ({ from: each.run, to: run })),
    finished: [],
    stretches,
    next: nextStep(stretches, view.page, 'end_of_feed'),
    progress,
  }
}

/**
 * Of the stretches beneath the top, the place of the one that has the fewest rows at most: a stretch begins beneath the end
 * of the one above. To drop the head that was interrupted last, however long, would make each poll read the same pages for
 * ever where the feed gains more than a page in between.
 */
function shortestBeneath(stretches: readonly Stretch[], page: FeedPage): number {
  const ends = stretches.map(({ end, total }) => end + page.total - total)
  const rowsMax = ends.map((end, index) => end - (ends[index - 1] ?? 0))
  return rowsMax.indexOf(Math.min(...rowsMax.slice(1)), 1)
}

function endOf({ page, marks, old }: PageView, mine: readonly Stretch[]): WalkEnd | undefined {
  const runs = new Set<Mark>(mine.map(({ run }) => run))
  const lastOfMine = marks.findLastIndex((mark) => runs.has(mark))
  if (marks.includes('covered', lastOfMine + 1)) return 'caught_up'
  if (page.page >= page.lastPage) return 'end_of_feed'
  return endsBeforeScope(page.perPage, old) ? 'start_bound' : undefined
}

/** One old row may be out of order; a fifth of a page at its end is not. */
function endsBeforeScope(perPage: number, old: PageView['old']): boolean {
  const tail = old.slice(-Math.ceil(perPage / 5))
  if (tail.length === 0 || tail.includes(false)) return false
  return tail.includes(true) || !old.includes(false)
}

/**
 * The stretch after this page. When the page ends inside the stretch and its frontier must be deeper, the frontier and its
 * count stay, and the pages between are not read again.
 */
function extend({ page, marks }: PageView, stretch: Stretch | undefined, run: number): Stretch {
  const here = measured(page, run, stretch?.frontier)
  if (stretch === undefined || marks.at(-1) !== stretch.run) return here
  if (page.rows.some(({ key }) => key === stretch.frontier)) return here
  return stretch.end + page.total - stretch.total > here.end ? stretch : here
}

/** The page is not at the place that was counted, and proves nothing. */
function relocate(view: PageView, known: OpenStretches, progress: WalkProgress): PageDecision {
  const { page } = view
  const [current, ...others] = known.stretches
  const aside = { proven: false, rowsBecome: decideOutsideWalk(view.marks), joins: [], finished: [] }
  const step = current && search(page, current, progress, false)
  if (step === undefined) return { ...aside, stretches: others, ...placeLost(page, progress) }
  return { ...aside, stretches: known.stretches, ...step }
}

/**
 * Where to look for the frontier after a page that is not at the place that was counted: undefined when it is given up.
 * A page whose total is neither the one that it was counted with nor the one that was read before may come from another
 * server of the API, which has other rows: the page is asked for again, so that the server with that total may answer.
 * Otherwise the place is counted with the total that is shown now; where it was, the count is wrong: a page above.
 */
function search(
  page: FeedPage,
  stretch: Stretch,
  progress: WalkProgress,
  inside: boolean,
): Pick<PageDecision, 'next' | 'progress'> | undefined {
  const lost = progress.lost + 1
  const { total } = page
  const differs = total !== progress.counted
  const mayBeOther =
    differs && total !== stretch.total && (total !== progress.total || progress.lost >= sameServerMax)
  // Inside the stretch, the feed has rather gained more than a page than that another server has answered.
  const again = mayBeOther && progress.repeats < repeatsMax && (!inside || progress.lost > 0)
  const target = again ? page.page : differs || inside ? pageAfter(stretch, page) : page.page - 1
  if (lost > lostMax || target < 1) return undefined
  return {
    next: { kind: 'read', page: target },
    progress: again
      ? { ...progress, lost, repeats: progress.repeats + 1, total }
      : { lost, repeats: 0, counted: total, total },
  }
}

function placeLost({ total }: FeedPage, { lost }: WalkProgress): Pick<PageDecision, 'next' | 'progress'> {
  return {
    next: { kind: 'end', reason: 'place_lost' },
    progress: { lost: lost + 1, repeats: 0, counted: total, total },
  }
}

/** The walk goes on from this page: what comes next is counted with its total. */
function walkingAt({ total }: FeedPage): WalkProgress {
  return { lost: 0, repeats: 0, counted: total, total }
}

function nextStep(stretches: readonly Stretch[], page: FeedPage, reason: WalkEnd): PageDecision['next'] {
  const [top] = stretches
  return top === undefined ? { kind: 'end', reason } : { kind: 'read', page: pageAfter(top, page) }
}

/** The page proves nothing: all stays as it is. */
function unchanged(known: OpenStretches, page: FeedPage, reason: WalkEnd): PageDecision {
  return {
    proven: false,
    rowsBecome: 0,
    joins: [],
    finished: [],
    stretches: known.stretches,
    next: { kind: 'end', reason },
    progress: walkingAt(page),
  }
}
