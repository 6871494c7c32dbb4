import type { PollReason } from '../intake/poll-types.ts'
import type { BudgetDay, Decision, DecisionReason } from '../schedule/schedule.ts'
import { type Hold, resetGuardMs } from '../store/ledger.ts'

/**
 * When the loop acts next, and what it is doing until then; pure. The schedule proposes; limits of the feed, of the budget
 * and of failing calls can only make it later; catching up and a person's request, sooner.
 */
export interface NextPoll {
  readonly atMs: number
  readonly state: 'waiting' | 'held' | 'budget_spent' | 'stopped'
  readonly nextReason: DecisionReason
  /** For people. */
  readonly reason: string
}

export interface NextPollInput {
  readonly nowMs: number
  readonly decision: Decision
  readonly day: BudgetDay
  readonly unitsLeft: number
  /** When a call beyond what the API granted before is tried, while the config allows more; undefined: never. */
  readonly trialAtMs?: number | undefined
  readonly minIntervalMs: number
  readonly maxIntervalMs: number
  /** When the last poll began; null before the first. */
  readonly lastStartMs: number | null
  /** How the last poll ended; null before the first. */
  readonly lastReason: PollReason | null
  readonly hold: Hold | undefined
  /** When the ledger grants units again, if it refused the last poll. */
  readonly refusedUntilMs: number | undefined
  /** Polls in a row that failed. */
  readonly failures: number
  /** Polls in a row whose first page was good, and a later one failed. */
  readonly walkFailures: number
  readonly behind: boolean
  /** Set while a person has to correct something. */
  readonly stopped: { readonly reason: string; readonly retryAtMs: number } | undefined
  /** A person asked for a poll now. */
  readonly pollRequested: boolean
}

export function decideNextPoll(situation: NextPollInput): NextPoll {
  const { nowMs, hold, stopped, pollRequested: wanted, unitsLeft, day } = situation
  const plan = plannedPoll(situation)
  const earliestMs = Math.max(plan.atMs, notBefore(situation))
  if (hold && hold.untilMs > nowMs) {
    const reason = `the API asked to wait: its ${hold.limit === 'minute' ? 'per-minute' : 'daily'} limit is reached`
    return { atMs: Math.max(hold.untilMs, earliestMs), state: 'held', nextReason: plan.nextReason, reason }
  }
  if (unitsLeft <= 0) {
    const reason = "the day's units are spent"
    const atMs = Math.max(situation.trialAtMs ?? day.endMs + resetGuardMs, notBefore(situation))
    return { atMs, state: 'budget_spent', nextReason: 'budget_spent', reason }
  }
  if (stopped && !wanted && !wasSetBack(situation)) {
    const atMs = Math.max(stopped.retryAtMs, notBefore(situation))
    return { atMs, state: 'stopped', nextReason: 'retry', reason: stopped.reason }
  }
  return { ...plan, atMs: earliestMs, state: 'waiting' }
}

/** A decision from a budget day that is over was made with the units of that day, and has to be made again. */
export function dayIsOver(
  { decidedMs }: { decidedMs: number },
  { endMs }: BudgetDay,
  nowMs: number,
): boolean {
  const turnsMs = endMs + resetGuardMs
  return decidedMs < turnsMs && nowMs >= turnsMs
}

/** The first failures are tried again soon by the schedule; a feed that still fails is polled less and less often. */
export function failureDelayMs(failures: number): number {
  if (failures <= quickRetriesMax) return 0
  return Math.min(failureDelayMsMin * 2 ** Math.min(failures - quickRetriesMax, 10), failureDelayMsMax)
}

const quickRetriesMax = 3
const failureDelayMsMin = 2_000
const failureDelayMsMax = 60_000

/** After these, pages are known to wait: the loop waits only for the shortest interval. */
const catchUpReasons: ReadonlySet<PollReason | null> = new Set<PollReason>([
  'page_limit',
  'refused_minute',
  'refused_hold',
])

function plannedPoll(situation: NextPollInput): { atMs: number; nextReason: DecisionReason; reason: string } {
  const { decision, nowMs, day, unitsLeft, pollRequested: wanted, behind, lastReason, failures } = situation
  const { maxIntervalMs, lastStartMs, walkFailures } = situation
  if (wanted) return { atMs: nowMs, nextReason: 'hot', reason: 'a poll was asked for' }
  // The schedule's last poll is in the future: a poll now corrects that, for one unit.
  if (wasSetBack(situation))
    return { atMs: nowMs, nextReason: decision.reason, reason: 'the clock was set back' }
  if (lastReason === 'refused_token')
    return { atMs: nowMs, nextReason: 'retry', reason: 'the token was changed during the last poll' }
  if (behind && failures === 0 && catchUpReasons.has(lastReason)) {
    return { atMs: nowMs, nextReason: 'catch_up', reason: 'more pages are waiting' }
  }
  // Rows are known to wait; after a few tries the plan decides again, so that an outage does not use up the day's units.
  const retries = failures === 0 && walkFailures > 0 && walkFailures <= quickRetriesMax
  const retryMs = (lastStartMs ?? nowMs) + failureDelayMsMin
  if (behind && retries && retryMs < decision.atMs)
    return { atMs: retryMs, nextReason: 'retry', reason: reasonTexts.retry }
  // Whatever a schedule returns: the loop does not wait longer than the longest interval, or than twice what the units that
  // are left allow where that is longer.
  const evenMs = Math.max(0, day.endMs - nowMs) / Math.max(1, unitsLeft)
  const latestMs = Math.min(nowMs, lastStartMs ?? nowMs) + Math.max(maxIntervalMs, 2 * evenMs)
  const { reason: nextReason } = decision
  return { atMs: Math.min(decision.atMs, latestMs), nextReason, reason: reasonTexts[nextReason] }
}

/** By more than the usual difference between the clocks of replicas. */
function wasSetBack({ lastStartMs, nowMs, minIntervalMs }: NextPollInput): boolean {
  return lastStartMs !== null && lastStartMs - nowMs > minIntervalMs
}

function notBefore(situation: NextPollInput): number {
  const { lastStartMs, minIntervalMs, refusedUntilMs = 0, failures, nowMs, pollRequested: wanted } = situation
  // An instant from before the clock was set back is of no use; a ledger without units refuses again.
  if (wasSetBack(situation)) return nowMs
  if (lastStartMs === null || lastStartMs > nowMs) return refusedUntilMs
  const pauseMs = wanted ? minIntervalMs : Math.max(minIntervalMs, failureDelayMs(failures))
  return Math.max(lastStartMs + pauseMs, refusedUntilMs)
}

const reasonTexts: Readonly<Record<DecisionReason, string>> = {
  first: 'the first poll',
  fixed: 'the fixed pace',
  even: 'the units left, spread evenly',
  expected: 'alerts are expected',
  burst: 'alerts just came',
  floor: 'nothing is expected',
  ceiling: 'as fast as allowed',
  announced: 'the API announces an evaluation of rules',
  mark: 'the engine fires on marks',
  hot: 'an operator asked for it',
  catch_up: 'more pages are waiting',
  retry: 'the last call failed',
  budget_spent: "the day's units are spent",
}
