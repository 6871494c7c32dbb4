import { FeedError, needsPerson } from '../feed/errors.ts'
import type { PollResult } from '../intake/poll-types.ts'
import { toError } from '../lib/errors.ts'
import { pauseAfter } from '../schedule/memory.ts'
import type { PagesLeft, Schedule } from '../schedule/schedule.ts'
import { redisErrorText } from '../store/connection/redis-errors.ts'
import { freshEveryMs, rateMinuteMs, walkRequestsOf } from '../store/ledger/minute.ts'
import { type Lease, type LeaseHolder, type LeaseOptions, tryLease } from '../store/source/lease.ts'
import type { PollerStatus } from '../store/source/source-status.ts'
import { newRulesState, type RulesState } from './announcements.ts'
import { type AvailableBudget, shareOf } from './budget.ts'
import type { Stopped } from './next-poll.ts'
import { type CallTally, waitsForUnits } from './reader.ts'
import type { PollerDeps } from './settings.ts'
import type { Allowance } from './spare.ts'

/** What the replica that polls knows, and what follows from one poll: whether it failed, whether a person is needed. */

export interface Leader {
  readonly lease: Lease
  readonly schedule: Schedule
  /** When the next instant was decided on; a clock that shows less was set back, and it means another one now. */
  decidedMs: number
  lastStartMs: number | null
  /** When the last poll began that rows which wait for a new day's units need not be tried again after. */
  lastShownMs: number | null
  /** How many polls in a row the day's budget refused. */
  unitRefusals: number
  /** How many pages the last poll read, when it was good. */
  lastPages: number | null
  /** How many polls in a row the minute refused before they made a call. */
  minuteRefusals: number
  refusedUntilMs: number | undefined
  /** What pages beneath the first leave of the day to fresh polls, as it was when the catch-up or the day began. */
  keptForHead: { readonly day: string; readonly units: number }
  /** Polls in a row whose first page failed. */
  failures: number
  /**
   * Polls in a row whose first page was good, and a later one failed; and until when, by the monotonic clock, no later one
   * is read.
   */
  walkFailures: number
  walkRestUntilMs: number
  stopped: (Stopped & { readonly tokenFingerprint: string | undefined }) | undefined
  hotUntilMs: number
  /** The budget day in which no more sweeps are made: the round is done, or a sweep failed. */
  sweptDay: string | undefined
  /** Pages of the past were read, or are not wanted; and what is left of those that are being read. */
  historyRead: boolean
  history: Allowance | undefined
  /** Until when, by the monotonic clock, pages wait that no poll waits for; 0: none do. How often the minute refused them in a row. */
  readonly spareRest: { untilMs: number; refusals: number }
  readonly rules: RulesState
  /** The poll whose line is written once the next instant is known. */
  done: { result: PollResult; tally: CallTally; startMs: number; endMs: number } | undefined
}

/** Returns the lease after `prepare` is done; or why this replica does not poll for now. */
export async function takeLease(
  deps: Omit<LeaseOptions, 'ttlMs' | 'taker' | 'onHeld'> & Pick<PollerDeps, 'prepare' | 'onLease'>,
  { ttlMs, taker }: Required<Pick<LeaseOptions, 'ttlMs' | 'taker'>>,
): Promise<Lease | string> {
  let held = ''
  const onHeld = (holder: LeaseHolder) => {
    held = standbyReason(holder)
  }
  const lease = await tryLease({ ...deps, ttlMs, taker, onHeld })
  if (!lease) return held
  try {
    const reason = await deps.prepare()
    if (reason === undefined) {
      deps.onLease(lease)
      return lease
    }
    await lease.release()
    return reason
  } catch (thrown) {
    await lease.release()
    throw thrown
  }
}

function standbyReason(holder: LeaseHolder): string {
  const ends = new Date(holder.endsAtMs).toISOString()
  return `another replica polls${holder.who ? ` (${holder.who})` : ''}; its lease ends at ${ends} unless it is renewed`
}

/** A new leader starts with the status that the last one stored; all else is decided again. */
export function newLeader(lease: Lease, schedule: Schedule, known: PollerStatus): Leader {
  return {
    lease,
    schedule,
    decidedMs: 0,
    lastStartMs: known.lastPollAtMs,
    lastShownMs: known.lastPollAtMs,
    unitRefusals: 0,
    lastPages: null,
    minuteRefusals: 0,
    refusedUntilMs: undefined,
    keptForHead: known.keptForHead ?? { day: '', units: 0 },
    failures: 0,
    walkFailures: 0,
    walkRestUntilMs: 0,
    stopped: undefined,
    // Differs from what an operator may set: so the schedule gets the present value, also where that in its snapshot was cancelled.
    hotUntilMs: -1,
    sweptDay: undefined,
    historyRead: false,
    history: undefined,
    spareRest: { untilMs: 0, refusals: 0 },
    rules: newRulesState(),
    done: undefined,
  }
}

const ownTroubleMs = 5_000

interface ResultDeps extends Pick<PollerDeps, 'clock' | 'freshPauseMs'> {
  readonly limits: { readonly stoppedIntervalMs: number }
}

/** What a poll that is done changes for the next one; returns why it failed, if it did. */
export function applyResult(
  leader: Leader,
  done: NonNullable<Leader['done']>,
  { limits, clock, freshPauseMs }: ResultDeps,
): ReturnType<typeof failureOf> {
  const { result, tally, startMs, endMs } = done
  const error = failureOf(result, tally)
  const stop = stopReason(result, tally)
  leader.done = done
  leader.lastPages = result.ok ? result.pages : null
  const { calls, refused } = tally
  const byMinute = calls === 0 && refused?.limit === 'minute' && !refused.held
  leader.minuteRefusals = byMinute ? leader.minuteRefusals + 1 : 0
  leader.refusedUntilMs = byMinute
    ? retryOfMinute(refused.retryAtMs, leader.minuteRefusals)
    : refusedUntil(tally, startMs + freshPauseMs())
  const askedNothing = calls === 0 && refused !== undefined
  // A later page that always fails must not stop the reading of the first one.
  if (!askedNothing) leader.failures = error === undefined || result.ok ? 0 : leader.failures + 1
  if (error !== undefined && result.ok) {
    leader.walkFailures += 1
    leader.walkRestUntilMs = clock.monotonicMs() + pauseAfter(leader.walkFailures)
  } else if (result.ok && result.reason !== 'refused_rest') leader.walkFailures = 0
  const ownPauseMs = Math.max(ownTroubleMs, pauseAfter(leader.failures))
  const byPlan = !isOwnTrouble(tally)
  const retryAtMs = endMs + (byPlan ? limits.stoppedIntervalMs : ownPauseMs)
  const { tokenFingerprint } = tally
  if (stop !== undefined) leader.stopped = { reason: stop, retryAtMs, byPlan, tokenFingerprint }
  else leader.stopped = askedNothing ? stillStopped(leader.stopped, startMs) : undefined
  observe(leader, done)
  return error
}

/** A try that was refused before its call did not ask whether the person who is needed has acted; it is made as soon as one may be. */
function stillStopped(stopped: Leader['stopped'], triedMs: number): Leader['stopped'] {
  if (stopped?.tokenFingerprint === undefined) return undefined
  return { ...stopped, retryAtMs: Math.min(stopped.retryAtMs, triedMs), byPlan: false }
}

/**
 * A catch-up takes half of the units that are left at most, once a day, so that some are left for what fires until the reset: of the configured
 * day and of the API's own; of what the fixed paces of other sources leave, or a twentieth of all; and a part of two in full beside it.
 */
export function keepForHead(
  leader: Leader,
  { shown, ledgerUsed }: Pick<AvailableBudget, 'shown' | 'ledgerUsed'>,
  {
    limits: { unitsPerDay },
    share,
    backlogShare,
    budgetDay,
    nowMs,
    behind,
  }: Pick<PollerDeps, 'limits' | 'share' | 'backlogShare' | 'budgetDay'> & {
    readonly nowMs: number
    readonly behind: boolean
  },
): void {
  const day = budgetDay(nowMs)
  const key = `${day.key} ${shown.day.key} ${unitsPerDay}`
  if (behind && leader.keptForHead.day === key) return
  const configured = { unitsPerDay, unitsLeft: Math.max(0, unitsPerDay - ledgerUsed), day }
  const walkUnits = [configured, shown].map((budget) => {
    const [own = 0, all = 0] = [share, backlogShare].map((part) => shareOf(budget, nowMs, part).unitsLeft)
    const pages = own > 2 ? all / 2 : Math.min(all, all / 2 + own)
    return Math.ceil(Math.max(pages, budget.unitsLeft * walkShareMin))
  })
  leader.keptForHead = { day: key, units: Math.max(0, unitsPerDay - ledgerUsed - Math.min(...walkUnits)) }
}

const walkShareMin = 0.05

/**
 * How long after the first page of one of so many sources of an account it is read again while its catch-up waits for the minute, in
 * milliseconds. Where they together have no more requests than one each, those that began together would take all of them again and
 * again: so by chance.
 */
export function freshPauseMs(requestsPerMinute: number, sources: number): number {
  const perMinute = Math.max(1, Math.floor(walkRequestsOf(requestsPerMinute) * freshShareMax))
  const pauseMs = (sources * (rateMinuteMs + freshSlackMs)) / perMinute
  const hasEnough = requestsPerMinute > sources
  return Math.max(freshEveryMs, hasEnough ? pauseMs : pauseMs * (1 + Math.random() / 2))
}

/**
 * The share of the walk's part of the minute that these may use, six tenths of the minute: more would leave the walk no call, and spend
 * the units of the day on the first page.
 */
const freshShareMax = 2 / 3
/** So that the first pages of a minute are no more than that where they follow one another exactly. */
const freshSlackMs = 500

/**
 * When a poll that the minute refused is tried again. Sources of one account that want more than its minute all learn of the same
 * instant: the oftener one was refused, the sooner it is there, or it might never have its turn.
 */
export function retryOfMinute(retryAtMs: number, refusals: number): number {
  return retryAtMs + yieldMs / refusals
}

/** More than the timers of a busy process differ, and little beside the minute. */
const yieldMs = 500

/**
 * The first page is read also while a walk waits for the minute or for another day. Not as soon as one call is free: the first page would
 * take that, and each one after it.
 */
function refusedUntil({ refused, calls }: CallTally, freshMs: number): number | undefined {
  if (!refused || refused.limit === 'lease') return undefined
  if (refused.held || calls === 0) return refused.retryAtMs
  return refused.limit === 'budget' ? undefined : freshMs
}

/** What went wrong, also where the first page was read and stored. Refusals, a 429 and our own shutdown are no failure. */
function failureOf(result: PollResult, tally: CallTally): Error | undefined {
  const error = result.error === undefined ? tally.feedError : toError(result.error)
  if (error instanceof FeedError && (error.code === 'aborted' || error.code === 'rate_limited'))
    return undefined
  return error
}

export function describeFailure(error: Error, atMs: number): NonNullable<PollerStatus['lastError']> {
  const code = 'code' in error ? String(error.code) : error.name
  return { atMs, code, message: redisErrorText(error) }
}

export const foreignFeed = 'the token shows another feed than the one that is stored for this source'

/** Why a person is needed, or undefined. */
function stopReason(result: PollResult, { feedError }: CallTally): string | undefined {
  if (result.stopped === 'foreign_feed') return foreignFeed
  return feedError && needsPerson(feedError.code) ? feedError.message : undefined
}

/** A token's file is empty or missing for a moment while it is replaced; to read it again costs nothing. */
function isOwnTrouble({ feedError }: CallTally): boolean {
  return feedError !== undefined && needsPerson(feedError.code) && feedError.status === undefined
}

/** A poll that made no call, that a shutdown interrupted or that waits for units shows nothing about the feed. */
function observe(leader: Leader, { result, tally, startMs, endMs }: NonNullable<Leader['done']>): void {
  if (tally.calls === 0 || tally.feedError?.code === 'aborted') return
  const { fired, ok, pages } = result
  leader.unitRefusals = !ok && waitsForUnits(tally) ? leader.unitRefusals + 1 : 0
  // The API may reset a little later than the bridge's clock, so one more try is soon. More would take the day's units, whatever it says of the wait.
  if (leader.unitRefusals !== 1) leader.lastShownMs = startMs
  if (leader.unitRefusals > 0) return
  const timesOf = (rows: typeof fired) => rows.map(({ firedAtMs }) => firedAtMs)
  const news = fired.filter(({ passedOver }) => !passedOver)
  leader.schedule.observe({
    // A failed call may have taken its whole timeout: the pause before the next begins at its end.
    atMs: ok ? startMs : endMs,
    ok,
    pages,
    pagesLeft: pagesLeftBy(result),
    firedAtMs: timesOf(news),
    ruleIds: news.map(({ ruleIds = [] }) => ruleIds),
  })
  const history = timesOf(fired.filter(({ passedOver }) => passedOver))
  if (history.length > 0) leader.schedule.learnHistory(history)
}

function pagesLeftBy({ behind, reason }: PollResult): PagesLeft {
  switch (reason) {
    case 'refused_token':
      return 'ready'
    case 'page_limit':
    case 'refused_minute':
    case 'refused_hold':
      return behind ? 'ready' : 'none'
    // The pages cannot be read today, or not before their pause is over: no reason to poll sooner.
    case 'refused_budget':
    case 'refused_rest':
      return 'none'
    default:
      return behind ? 'failed' : 'none'
  }
}
