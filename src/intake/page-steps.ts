import type { Assign } from '../alert/assignment.ts'
import { FeedError } from '../feed/errors.ts'
import { LeaseLost } from '../store/source/lease.ts'
import type { OpenedWalk, WalkChange, WalkFacts } from '../store/walk/walk-state.ts'
import type { Purpose } from '../telemetry/metrics.ts'
import type { FeedPage } from '../walk/page.ts'
import { scopeOfRows } from '../walk/scope.ts'
import { continuesWalk } from '../walk/walk.ts'
import { type ExaminedPage, type IntakeDeps, isUnrouted, jobsOf, sortRows } from './intake.ts'
import type { PollDeps, PollReason } from './poll-types.ts'
import { countPage, type Tally } from './tally.ts'

/**
 * The effects of one page, in the only order that loses nothing: read, look up, enqueue, and when every job is stored, one
 * change of the stored walk. Whatever fails ends the poll by a PollStop; the next poll begins at the stored walk.
 */
export class PollStop extends Error {
  override readonly name = 'PollStop'
  readonly reason: PollReason

  constructor(reason: PollReason, cause?: unknown) {
    super(reason, { cause })
    this.reason = reason
  }
}

/** A page as it was read, and what handles its alerts. */
interface PageRead {
  readonly page: FeedPage
  /** When it was read. */
  readonly nowMs: number
  readonly intake: IntakeDeps
  readonly assign: Assign
}

/** Reads a page, for a unit. */
export async function readPage(
  deps: PollDeps,
  tally: Tally,
  number: number,
  purpose: Purpose,
): Promise<PageRead> {
  const { intake: before } = deps.inForce
  const prepared = await before.prepareAssign()
  const answer = await deps.readPage(number, purpose)
  if (answer.kind === 'refused') throw new PollStop(`refused_${answer.why}`)
  if (answer.kind === 'failed') throw new PollStop('failed', answer.error)
  tally.pages += 1
  const { intake } = deps.inForce
  const assign = intake === before ? prepared : await intake.prepareAssign()
  return { page: answer.page, nowMs: deps.clock.now(), intake, assign }
}

/**
 * The stored walk as it was before the page was read. A change of another poller since may be about rows that the page
 * could not show yet: so a change is decided on the stretches of before, or not made.
 */
export interface WalkSnapshot {
  readonly id: string
  readonly facts: WalkFacts
  version: number
  marked: number
}

export function snapshotOf({ id, facts, version, marked }: OpenedWalk): WalkSnapshot {
  return { id, facts, version, marked }
}

/**
 * Looks up the page's rows. `part`: the head of the feed, a later page of a walk, or a page aside from it, whose place
 * proves nothing.
 */
export async function examine(
  deps: PollDeps,
  read: PageRead,
  snapshot: WalkSnapshot,
  part: 'head' | 'walk' | 'aside',
): Promise<PageRead & ExaminedPage> {
  const { page, nowMs } = read
  const keys = page.rows.map(({ key }) => key)
  const looked = await stopOnError('state_failed', () => deps.state.look(keys))
  if (looked.id !== snapshot.id)
    throw new PollStop(looked.replacedIds.includes(snapshot.id) ? 'raced' : 'state_lost')
  const { marks } = looked
  // Any change may remove old rows, also between two pages of one poll: so `forgottenMs` must be of the same moment as the
  // marks.
  const { forgottenMs } = looked.facts
  const facts = { ...snapshot.facts, forgottenMs }
  const aside = part === 'aside' || (part === 'walk' && !continuesWalk({ page, marks }, looked))
  const rowScopes = scopeOfRows(page, marks, facts, { nowMs, aside })
  if (looked.marked === snapshot.marked) return { ...read, looked, rowScopes }
  // What another poller marked since the page was read proves nothing about the rows above it. Where that matters, the next
  // poll reads the page again: to pass over a row that counts would lose it.
  const alone = scopeOfRows(page, marks, facts, { nowMs, aside: true })
  if (rowScopes.some(({ inScope }, index) => inScope !== alone[index]?.inScope)) throw new PollStop('raced')
  return { ...read, looked, rowScopes }
}

/** What the walk makes of the page, beside what follows from its rows. */
type PageChange = Pick<WalkChange, 'rowsBecome' | 'explains'> &
  Partial<Pick<WalkChange, 'joins' | 'finished' | 'stretches' | 'scope' | 'complete' | 'sweep'>> & {
    readonly proven: boolean
  }

/** Enqueues what is new, and what was quarantined until now, then marks the page. */
export async function enqueueAndMark(
  deps: PollDeps,
  tally: Tally,
  examined: PageRead & ExaminedPage,
  snapshot: WalkSnapshot,
  { proven, ...given }: PageChange,
): Promise<void> {
  const { nowMs, intake, assign } = examined
  const sorted = sortRows(examined, proven)
  const { alerts, mark, shown, quarantine, readable, passedOver } = sorted
  const fresh = examined.looked.marks.filter((each) => each === 'new').length
  // A row that is not marked may be beneath one that is, which then covers nothing.
  const change = mark.length < fresh ? { ...given, rowsBecome: 0 } : given
  const assignments = await stopOnError(whyUnassigned, () => assign(alerts, nowMs, deps.ending))
  const { page } = examined.page
  const { createdMs } = examined.looked.facts
  const seen = { seenAtMs: nowMs, createdMs, ...(page === 1 ? {} : { page }) }
  const jobs = jobsOf(alerts, assignments, intake.targets, seen)
  await stopOnError('queue_failed', () => intake.queues.enqueue(jobs))
  const base = { ...snapshot, server: examined.looked.server }
  const committed = await stopOnError('state_failed', () =>
    deps.state.commit(base, {
      nowMs,
      joins: [],
      finished: [],
      ...change,
      mark,
      shown,
      quarantine,
      readable,
      passedOver,
      unrouted: assignments.filter(isUnrouted).length,
    }),
  )
  if (committed.kind === 'lost') throw new PollStop('state_lost')
  if (committed.kind === 'replaced') throw new PollStop('raced')
  snapshot.version = committed.version
  snapshot.marked += committed.added
  countPage(tally, deps, { examined, sorted, assignments, fellOut: committed.fellOut })
  intake.onHandled(alerts)
  if (committed.kind === 'raced') throw new PollStop('raced')
}

export async function stopOnError<T>(
  reason: PollReason | ((thrown: unknown) => PollReason),
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    throw new PollStop(typeof reason === 'string' ? reason : reason(thrown), thrown)
  }
}

/** Comparing was broken off, as a call of the feed would be; or something that the routes ask for could not be had. */
function whyUnassigned(thrown: unknown): PollReason {
  if (thrown instanceof LeaseLost) return 'refused_lease'
  return thrown instanceof FeedError && thrown.code === 'aborted' ? 'failed' : 'queue_failed'
}
