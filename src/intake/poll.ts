import type { Clock } from '../lib/clock.ts'
import type { WalkState } from '../store/walk-state.ts'
import { sinceBeneath } from '../walk/scope.ts'
import { type Decision, decideHead, decideNext, isOnWay, type PageView, type Progress } from '../walk/walk.ts'
import { openMemory, remember } from './beginning.ts'
import type { Reading } from './intake.ts'
import { lookDeeper, unexplained } from './late-rows.ts'
import { examine, type Memory, memoryOf, orStop, PollStop, readPage, take } from './page-steps.ts'
import type { PollDeps, PollMemory, PollOptions, PollReason, PollResult } from './poll-types.ts'
import { isOurs } from './strangers.ts'
import { createTally, reportPoll, type Tally, toResult } from './tally.ts'

export type {
  PageAnswer,
  PollDeps,
  PollMemory,
  PollOptions,
  PollReason,
  PollResult,
  StartFrom,
} from './poll-types.ts'

/** One for each source, when the process starts: `startFrom: now` means this moment, not that of the first poll. */
export function createPollMemory(clock: Clock): PollMemory {
  return { startedAtMs: clock.now(), searchedTo: 0, known: null }
}

/**
 * For a replica that waits for its turn: what it needs to notice a loss when it takes over. Without it a standby that
 * inherits an empty Redis goes back to its own start, however long ago. Rejects when Redis does not answer.
 */
export async function refreshPollMemory(state: WalkState, memory: PollMemory): Promise<void> {
  const looked = await state.look([])
  // No id: the memory is gone. What was known of it is what the next poll needs.
  if (looked.id !== '') remember(memory, looked)
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

/** What one poll carries from page to page. */
interface Walk {
  readonly deps: PollDeps
  readonly tally: Tally
  readonly memory: Memory
  readonly process: PollMemory
  readonly startMs: number
  /** The feed has shown rows that this memory knows. */
  ours: boolean
}

async function walk(deps: PollDeps, options: PollOptions, tally: Tally): Promise<PollReason> {
  // Before a unit is spent: a Redis that does not answer could not keep what the page shows.
  const { opened, lost } = await orStop('state_failed', () => openMemory(deps, options))
  tally.lost = lost
  tally.behind = opened.stretches.length > 0
  tally.lastCompleteMs = opened.facts.lastCompleteMs
  const poll: Walk = {
    ...{ deps, tally, memory: memoryOf(opened), process: options.memory },
    startMs: deps.clock.now(),
    ours: false,
  }
  let step = await takePage(poll, 1, 'head')
  while (step.next.kind === 'read') {
    if (tally.pages >= (options.pagesMax ?? pagesMaxDefault)) return 'page_limit'
    step = await takePage(poll, step.next.page, step.progress)
  }
  if (step.complete) {
    remember(options.memory, {
      id: opened.id,
      facts: { ...opened.facts, lastCompleteMs: poll.startMs, total: tally.total },
    })
    const pagesMax = options.deeperPagesMax ?? deeperPagesMaxDefault
    await lookDeeper(deps, tally, { memory: poll.memory, from: step.page + 1, pagesMax })
  }
  return step.next.reason
}

interface Step extends Pick<Decision, 'next' | 'progress'> {
  readonly page: number
  readonly complete: boolean
}

async function takePage(poll: Walk, number: number, progress: Progress | 'head'): Promise<Step> {
  const { deps, tally, memory, startMs } = poll
  const isHead = progress === 'head'
  const page = await readPage(deps, tally, number, isHead ? 'poll' : 'walk')
  const reading = await examine(
    deps,
    page,
    memory,
    (marks, known) => !isHead && !isOnWay({ page, marks }, known),
  )
  poll.ours ||= await isOurs(deps, tally, reading, { isHead, memory: poll.process })
  const { looked } = reading
  const decision = isHead
    ? decideHead(viewOf(reading, memory), looked)
    : decideNext(viewOf(reading, memory), looked, progress)
  if (isHead) tally.total = page.total
  const total = tally.total ?? page.total
  const complete = isComplete(decision)
  if (!complete) tally.behind = true
  const gap = complete ? unexplained(reading, total) : 0
  await take(deps, tally, reading, memory, {
    proven: decision.proven,
    rowsBecome: decision.rowsBecome,
    joins: decision.joins,
    finished: decision.finished,
    stretches: sameStretches(reading, decision) ? undefined : decision.stretches,
    explains: true,
    scope: isHead ? scopeWithHistory(reading, startMs) : undefined,
    complete: complete ? { atMs: startMs, total } : undefined,
  })
  tally.headTaken = true
  if (complete) {
    tally.behind = false
    tally.finished = true
    tally.lastCompleteMs = startMs
    tally.feedGap = gap
  }
  return { next: decision.next, progress: decision.progress, page: number, complete }
}

/**
 * The bound of `startFrom` ends the first walk alone: whatever appears later has a row beneath it that is known, and old
 * dates above that one say that something was published late, not that nothing follows.
 */
function viewOf({ page, looked, verdicts }: Reading, { facts }: Memory): PageView {
  // As the poll began, like the verdicts: another poller may have completed a walk since.
  const isFirst = facts.lastCompleteMs === null
  return { page, marks: looked.marks, old: isFirst ? verdicts.map(({ old }) => old) : [] }
}

/** Whether all that the feed showed when the poll began is handled now. */
function isComplete({ stretches, next }: Decision): boolean {
  if (next.kind === 'read') return false
  // Of an empty feed nothing is left to walk; its stretches stay, because it may be a slip of the feed.
  if (next.reason === 'empty_feed') return true
  return stretches.length === 0 && ['caught_up', 'end_of_feed', 'start_bound'].includes(next.reason)
}

function sameStretches({ looked }: Reading, { stretches, joins, finished }: Decision): boolean {
  if (joins.length > 0 || finished.length > 0 || stretches.length !== looked.stretches.length) return false
  return stretches.every((each, index) => each === looked.stretches[index])
}

/**
 * `startFrom: now` takes the rows that the first page shows for history, but for those that were fired since: counting
 * tells later which rows the feed has gained. An empty page says nothing; it may be a slip of the feed.
 */
function scopeWithHistory({ page, looked, verdicts }: Reading, nowMs: number) {
  const { scope } = looked.facts
  if (scope.kind !== 'from' || scope.history !== null || page.rows.length === 0) return undefined
  const sinceMs = sinceBeneath(page, scope.sinceMs, nowMs)
  return { ...scope, sinceMs, history: page.total - verdicts.filter(({ inScope }) => inScope).length }
}
