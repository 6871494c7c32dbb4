import type { Clock } from '../lib/clock.ts'
import { freshEveryMs } from '../store/ledger/minute.ts'
import { LeaseLost } from '../store/source/lease.ts'
import type { WalkState } from '../store/walk/walk-state.ts'
import { sinceBeneath } from '../walk/scope.ts'
import {
  decideHead,
  decideNext,
  type Mark,
  type PageDecision,
  type PageView,
  type WalkProgress,
} from '../walk/walk.ts'
import { checkFeed } from './foreign-feed.ts'
import type { ExaminedPage } from './intake.ts'
import { lookDeeper, unexplained } from './late-rows.ts'
import { noteState, openState } from './open-state.ts'
import {
  enqueueAndMark,
  examine,
  PollStop,
  readPage,
  snapshotOf,
  stopOnError,
  type WalkSnapshot,
} from './page-steps.ts'
import type { PollDeps, PollOptions, PollReason, PollResult, ProcessState } from './poll-types.ts'
import { createTally, reportPoll, type Tally, toResult } from './tally.ts'

/** One for each source, when the process starts: `startFrom: now` means this moment, not that of the first poll. */
export function createProcessState(clock: Clock): ProcessState {
  return { startedAtMs: clock.now(), server: '', searchedTo: 0, lastHead: null, known: null }
}

/**
 * Reads what a waiting replica needs to notice a loss when it takes over. Without it, a standby that takes over on an empty
 * Redis walks back to its own start, however long ago. Rejects when Redis does not answer.
 */
export async function refreshProcessState(state: WalkState, processState: ProcessState): Promise<void> {
  const looked = await state.look([])
  // No id: there is no stored walk any more. The next poll needs what was known of it before.
  if (looked.id !== '') noteState(processState, looked)
}

const pagesMaxDefault = 25
const deeperPagesMaxDefault = 2

/**
 * One poll: the head of the feed, and as many pages beneath as the walk needs and may have. Never rejects for what the
 * feed, Redis or the queues did: the result names it. It may run twice at once: that can cost units, never an alert.
 */
export async function runPoll(deps: PollDeps, options: PollOptions): Promise<PollResult> {
  const tally = createTally()
  try {
    return reportPoll(deps, toResult(tally, await walk(deps, options, tally)))
  } catch (thrown) {
    if (!(thrown instanceof PollStop)) throw thrown
    return reportPoll(deps, toResult(tally, thrown.reason, thrown.cause))
  }
}

function whyNotOpened(thrown: unknown): PollReason {
  return thrown instanceof LeaseLost ? 'refused_lease' : 'state_failed'
}

/** What one poll passes from page to page. */
interface PollRun {
  readonly deps: PollDeps
  readonly tally: Tally
  readonly snapshot: WalkSnapshot
  readonly processState: ProcessState
  readonly startMs: number
  /** A page of the walk, or one that was asked for because of it, has shown a row that the stored walk knows. */
  isKnownFeed: boolean
  /** The key of the row on top of the feed. */
  topKey: string | undefined
}

async function walk(deps: PollDeps, options: PollOptions, tally: Tally): Promise<PollReason> {
  // Before a unit is spent: a Redis that does not answer could not store what the page shows.
  const { opened, lost } = await stopOnError(whyNotOpened, () => openState(deps, options))
  tally.lost = lost
  tally.behind = opened.stretches.length > 0
  tally.lastCompleteMs = opened.facts.lastCompleteMs
  const poll: PollRun = {
    deps,
    tally,
    snapshot: snapshotOf(opened),
    processState: options.processState,
    startMs: deps.clock.now(),
    isKnownFeed: false,
    topKey: undefined,
  }
  const freshUntilMs = deps.clock.monotonicMs() + freshEveryMs
  let step = await takePage(poll, 1, 'head')
  while (step.next.kind === 'read') {
    if (tally.pages >= (options.pagesMax ?? pagesMaxDefault)) return 'page_limit'
    // Where pages are slow, the next poll reads the head again; not after the head alone, or a catch-up would never go on.
    if (tally.pages > 1 && deps.clock.monotonicMs() >= freshUntilMs) return 'page_limit'
    step = await takePage(poll, step.next.page, step.progress)
  }
  if (step.complete) {
    const { startMs: atMs, topKey } = poll
    options.processState.lastHead = topKey === undefined ? null : { atMs, topKey }
    noteState(options.processState, {
      id: opened.id,
      facts: { ...opened.facts, lastCompleteMs: poll.startMs, total: tally.total },
    })
    const pagesMax = options.deeperPagesMax ?? deeperPagesMaxDefault
    await lookDeeper(deps, tally, { snapshot: poll.snapshot, from: step.page + 1, pagesMax })
  }
  return step.next.reason
}

interface PageStep extends Pick<PageDecision, 'next' | 'progress'> {
  readonly page: number
  readonly complete: boolean
}

async function takePage(poll: PollRun, number: number, progress: WalkProgress | 'head'): Promise<PageStep> {
  const { deps, tally, snapshot, processState, startMs } = poll
  const isHead = progress === 'head'
  const read = await readPage(deps, tally, number, isHead ? 'poll' : 'walk')
  const examined = await examine(deps, read, snapshot, isHead ? 'head' : 'walk')
  const { page, looked } = examined
  // Beneath the head, rows of an open stretch may be rows that this poll itself has handled.
  const isKnown = (mark: Mark) => (isHead ? mark !== 'new' : mark === 'covered')
  poll.isKnownFeed ||=
    looked.marks.some(isKnown) || (await checkFeed(deps, tally, examined, { isKnown, processState }))
  const decision = isHead
    ? decideHead(viewOf(examined, snapshot), looked)
    : decideNext(viewOf(examined, snapshot), looked, progress)
  if (isHead) tally.total = page.total
  if (isHead) poll.topKey = page.rows[0]?.key
  const total = tally.total ?? page.total
  const complete = isComplete(decision)
  if (!complete) tally.behind = true
  await enqueueAndMark(deps, tally, examined, snapshot, {
    proven: decision.proven,
    rowsBecome: decision.rowsBecome,
    joins: decision.joins,
    finished: decision.finished,
    stretches: sameStretches(examined, decision) ? undefined : decision.stretches,
    explains: true,
    scope: isHead ? scopeWithHistory(examined, startMs) : undefined,
    complete: complete ? { atMs: startMs, total } : undefined,
  })
  tally.headTaken = true
  if (isHead) deps.onHead?.(page)
  if (complete) {
    tally.behind = false
    tally.finished = true
    tally.lastCompleteMs = startMs
    tally.feedGap = unexplained(examined, total, processState.lastHead)
  }
  return { next: decision.next, progress: decision.progress, page: number, complete }
}

/**
 * The bound of `startFrom` ends the first walk alone: whatever appears later has a known row beneath it, and old dates
 * above that row mean that something was published late, not that nothing follows.
 */
function viewOf({ page, looked, rowScopes }: ExaminedPage, { facts }: WalkSnapshot): PageView {
  // The facts of when the poll began, as for the scopes: another poller may have completed a walk since.
  const isFirst = facts.lastCompleteMs === null
  return { page, marks: looked.marks, old: isFirst ? rowScopes.map(({ old }) => old) : [] }
}

/** Whether all that the feed showed when the poll began is handled now. */
function isComplete({ stretches, next }: PageDecision): boolean {
  if (next.kind === 'read') return false
  // In an empty feed nothing is left to walk; its stretches stay, because the feed may be empty by mistake.
  if (next.reason === 'empty_feed') return true
  return stretches.length === 0 && ['caught_up', 'end_of_feed', 'start_bound'].includes(next.reason)
}

function sameStretches({ looked }: ExaminedPage, { stretches, joins, finished }: PageDecision): boolean {
  if (joins.length > 0 || finished.length > 0 || stretches.length !== looked.stretches.length) return false
  return stretches.every((each, index) => each === looked.stretches[index])
}

/**
 * `startFrom: now` counts the rows that the first page shows as history, but for those that were fired since: by that count
 * later walks find the rows that the feed has gained. An empty page is not counted; it may be a mistake of the feed.
 */
function scopeWithHistory({ page, looked, rowScopes }: ExaminedPage, nowMs: number) {
  const { scope } = looked.facts
  if (scope.kind !== 'from' || scope.history !== null || page.rows.length === 0) return undefined
  const sinceMs = sinceBeneath(page, rowScopes, scope.sinceMs, nowMs)
  return { ...scope, sinceMs, history: page.total - rowScopes.filter(({ inScope }) => inScope).length }
}
